"""Places inside of nested Python values, as errors name them."""

from __future__ import annotations

from typing import Any, TypeAlias

AccessPath: TypeAlias = tuple[Any, Any] | None
"""How a part was reached: the place of what it is in, and its index or name there.

None is the whole.  Places are linked, so that walking into a value costs nothing."""


def access_text(place: AccessPath) -> str:
    """Return the place as an expression on the whole, such as `.weights[0]`; empty for the
    whole."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f".{step}" if isinstance(step, str) else f"[{step}]")
    return "".join(reversed(steps))
