"""What was probably meant by a name that is not known, or by a path where nothing is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

LONGEST_NAME = 60
"""Names of more characters are not searched for the one that was meant."""

MOST_NAMES = 1000
"""Among more names, only those are searched whose lengths are nearest."""


def near_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return those of the known names that were probably meant by a name, the nearest first."""
    import difflib  # which nothing needs that goes well

    if len(name) > LONGEST_NAME:
        return []
    likely = {each for each in known if len(each) <= LONGEST_NAME}
    nearest = sorted(likely, key=lambda each: (abs(len(each) - len(name)), each))[:MOST_NAMES]
    return difflib.get_close_matches(name, sorted(nearest), count)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the question, as the help of an error, whether a known name was meant.

    None if nothing known is like the name.
    """
    return did_you_mean_by({each: each for each in known}, name)


def did_you_mean_by(meanings: Mapping[str, str], name: str) -> str | None:
    """Return the question, as the help of an error, whether the meaning of a name was meant.

    None if no name that has a meaning is like this one.
    """
    near = near_names(name, meanings)
    return f"did you mean {meanings[near[0]]!r}?" if near else None


MAX_NEAR_FILES = 1000
"""Folders of more files than this are not searched for the one that was meant."""


def near_file(
    path: str | os.PathLike[str], fits: Callable[[str], bool] = os.path.exists
) -> str | None:
    """Return the question, as the help of an error, whether another file or folder was meant by a
    path.

    None if the path exists, or nothing beside it has a name like its own and fits.
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
