"""What operations show of the values that they compute with, besides their outputs.

`shown.txt` lists those that print or check, and those whose errors tell no element of their inputs.
Any other operation of TensorFlow may tell elements in the texts of its errors, and one that
TensorFlow does not have may print them.
"""

from __future__ import annotations

import enum
import pathlib

from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import read_table

TABLE = pathlib.Path(__file__).with_suffix(".txt")


class Showing(enum.Enum):
    """A way in which an operation shows what it computes with."""

    PRINTS = "prints its inputs"
    CHECKS = "fails with a text about its inputs"
    MAY_TELL = "may have elements of its inputs in the texts of its errors"
    UNKNOWN = "is not known to show nothing"


def showing(op: str) -> Showing | None:
    """Return the way in which an operation shows its inputs; None if only shapes may be in its
    errors.

    The name of a library function counts as an operation that TensorFlow does not have: ask about
    the operations in the function instead.
    """
    heading = read_table(TABLE).get(op, "")
    if heading == "quiet":
        return None
    if heading:
        return Showing[heading.upper()]
    return Showing.UNKNOWN if op_table.find(op) is None else Showing.MAY_TELL


def shows(op: str) -> bool:
    """Tell whether an operation is there to show its inputs, or is not known to TensorFlow.

    The many whose errors may tell elements, such as a gather, are not among them; see `showing`.
    """
    return showing(op) not in (None, Showing.MAY_TELL)
