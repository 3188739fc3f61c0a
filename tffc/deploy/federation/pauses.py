"""Polling intervals: a tenth of the time waited so far.

So long waits poll rarely, and polling lengthens a wait by at most a tenth, or `SHORTEST`.
"""

from __future__ import annotations

SHORTEST = 0.05
"""The shortest pause in seconds."""


def pause_after(waited: float, longest: float) -> float:
    """Return how long to pause after having waited for this many seconds."""
    return min(longest, max(SHORTEST, waited / 10))
