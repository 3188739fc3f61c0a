"""Paths of values, and shorter names for many of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence


def gathered(names: Sequence[str], leaves: Counter[str]) -> list[tuple[str, int]]:
    """Return names, with one name for a part all of whose leaves are among them.

    `leaves` has the number of leaves below each part.  Each name comes with the number of leaves
    that it stands for.
    """
    there = below(name for name in dict.fromkeys(names) if name in leaves)
    shown: dict[str, int] = {}
    for name in names:
        parts = (prefix for prefix in prefixes(name) if there[prefix] == leaves[prefix] > 1)
        whole = next(parts, name)
        shown[whole] = leaves[whole] if whole != name else 1
    return list(shown.items())


def below(names: Iterable[str]) -> Counter[str]:
    """Return the number of leaves below each part, and 1 for each leaf."""
    return Counter(prefix for name in names for prefix in prefixes(name))


def prefixes(path: str) -> list[str]:
    """Return the paths of all that a path is part of, longest last, and the path itself."""
    return [*(path[: step.start()] for step in re.finditer(r"[.[]", path)), path]
