"""Paths to the parts of nested Python values, as errors show them."""

from __future__ import annotations

from typing import TypeAlias

AccessPath: TypeAlias = "tuple[AccessPath, str | int | None] | None"
"""The path to a part: the path to its container, and its index or name in that.

None is the whole value.  Paths are linked lists, so that walking into a value costs nothing.
"""


def access_text(place: AccessPath) -> str:
    """Return the path as an expression on the whole, such as `.weights[0]`; empty for the whole."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f".{step}" if isinstance(step, str) else f"[{step}]")
    return "".join(reversed(steps))
