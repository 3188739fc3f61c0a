"""Suggestions for unknown names, and for paths that do not exist."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

LONGEST_NAME = 60
"""Nothing is suggested for longer names, and longer names are not suggested."""

MOST_NAMES = 1000
"""If there are more names, only those of the most similar lengths are compared."""


def near_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known names that are most similar to a name, the most similar first."""
    import difflib  # imported late: only errors need it

    if len(name) > LONGEST_NAME:
        return []
    likely = {each for each in known if len(each) <= LONGEST_NAME}
    nearest = sorted(likely, key=lambda each: (abs(len(each) - len(name)), each))[:MOST_NAMES]
    return difflib.get_close_matches(name, sorted(nearest), count)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a help for an error that asks whether a known name was meant, None if none is
    similar."""
    return did_you_mean_by({each: each for each in known}, name)


def did_you_mean_by(meanings: Mapping[str, str], name: str) -> str | None:
    """Return a help for an error that suggests the meaning of the known name most similar to
    `name`.

    None if no known name is similar.
    """
    near = near_names(name, meanings)
    return f"did you mean {meanings[near[0]]!r}?" if near else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a line of help for a name that is not among the known ones."""
    names = sorted(set(known))
    return did_you_mean(name, names) or f"there are {', '.join(names) or 'none'}"


MAX_NEAR_FILES = 1000
"""Nothing is suggested for a path in a folder with more files than this."""


def near_file(
    path: str | os.PathLike[str], fits: Callable[[str], bool] = os.path.exists
) -> str | None:
    """Return a help for an error that asks whether another file or folder was meant by a path.

    None if the path exists, or nothing beside it has a similar name and `fits`.
    """
    folder, name = os.path.split(os.fspath(path).rstrip(os.sep))
    try:
        names = {} if os.path.exists(path) else {n.lower(): n for n in os.listdir(folder or ".")}
    except OSError:
        return None
    if len(names) > MAX_NEAR_FILES:
        return None
    near = (os.path.join(folder, names[each]) for each in near_names(name.lower(), names, 3))
    return next((f"did you mean {each}?" for each in near if fits(each)), None)
