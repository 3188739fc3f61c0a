"""The relations of neighbours: which two sets of clients are to look alike."""

from __future__ import annotations

import enum


class Neighbours(enum.Enum):
    """Which two sets of clients are told apart no better than ε and δ say."""

    ADD_OR_REMOVE = "a client added or removed"
    REPLACE = "a client's data replaced by any other"
    ZERO_OUT = "a client's contributions replaced by zero"


NEIGHBOURS = {each.name.lower().replace("_", "-"): each for each in Neighbours}
"""The relations of neighbours, by their names in policies and options."""
