"""Conversion between our records and Flower's.

Arrays become Flower's arrays, which it sends in chunks.  Because it makes separate requests for
each array, all arrays of one element type are joined into one, named after the type.  Their types
and shapes are in a separate entry.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

# An extra, not installed with the rest.
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.federation.messages import Record, malformed
from tffc.support.errors import ExecutionError, reader
from tffc.support.guards import Array as Numbers
from tffc.support.guards import is_list

ABOUT, ARRAYS, SHAPES = "tffc", "arrays", "shapes"

NUMPY = "numpy.ndarray"
"""What Flower calls arrays as NumPy writes them."""

HEAD_BEGINS = b"\x93NUMPY\x01\x00??"
"""What stands before the part of a header that it gives the size of."""

SHAPE = re.compile(r"[<|][biufc]\d{1,2}(?: \d{1,18}){0,32}", re.ASCII)
"""Matches the element type and sizes of an array."""

HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(?s:(..))\{'descr': '([<|][biufc]\d{1,2})', 'fortran_order': False, "
    rb"'shape': \((\d{1,18}),\), \} *\n"
)
"""Matches what precedes the numbers of a flat array, as every NumPy writes it."""


def to_flower(record: Record) -> RecordDict:
    """Convert a record to Flower's."""
    together: dict[str, list[Numbers]] = {}
    shapes: list[str] = []
    for array in map(np.asarray, record.arrays):
        together.setdefault(array.dtype.str, []).append(array.ravel())
        shapes.append(" ".join([array.dtype.str, *map(str, array.shape)]))
    arrays = {dtype: Array(np.concatenate(flat)) for dtype, flat in together.items()}
    about = ConfigRecord(cast("dict[str, Any]", {**record.entries, SHAPES: shapes}))
    return RecordDict({ABOUT: about, ARRAYS: ArrayRecord(arrays)})


@reader("a message of a federation", ExecutionError)
def from_flower(content: RecordDict) -> Record:
    """Convert an untrusted record of Flower's to ours.

    Raises:
      ExecutionError: it is not one of ours.
    """
    about, arrays = content.get(ABOUT), content.get(ARRAYS)
    if not isinstance(about, ConfigRecord) or not isinstance(arrays, ArrayRecord):
        raise malformed("it does not have our two records")
    entries = dict(about)
    shapes = entries.pop(SHAPES, None)
    if not is_list(shapes):
        raise malformed("it does not say which arrays it has")
    flat = {name: _flat(array) for name, array in arrays.items()}
    return Record(entries, _apart(flat, shapes))


def _apart(together: Mapping[str, Numbers], shapes: list[object]) -> list[Numbers]:
    """Split the joined arrays, one for each element type, into arrays of these shapes.

    Raises:
      ExecutionError: there are too few or too many numbers, or some of another type.
    """
    used = dict.fromkeys(together, 0)
    arrays: list[Numbers] = []
    for text in shapes:
        if not isinstance(text, str) or SHAPE.fullmatch(text) is None:
            raise malformed("what it says of its arrays cannot be read")
        dtype, *sizes = text.split()
        shape = tuple(map(int, sizes))
        flat = together.get(dtype)
        begin = used.get(dtype, 0)
        end = used[dtype] = begin + math.prod(shape)
        if flat is None or flat.dtype.str != dtype or end > len(flat):
            raise malformed("an array of numbers is missing beside the value")
        try:
            arrays.append(flat[begin:end].reshape(shape))
        except ValueError:
            raise malformed("one of its arrays has a shape that no array has") from None
    if used != {dtype: flat.size for dtype, flat in together.items()}:
        raise malformed("it has more numbers than it says")
    return arrays


def _flat(array: Array) -> Numbers:
    """Return the numbers of a flat array, of which there are as many as it claims.

    Flower's own reading would allocate what is claimed first, and read archives of arrays too.
    """
    head = HEAD.match(array.data) if array.stype == NUMPY else None
    if head is None or head.end() != len(HEAD_BEGINS) + int.from_bytes(head[1], "little"):
        raise malformed("one of its arrays is not a flat array of numbers")
    try:
        dtype = np.dtype(head[2].decode())
    except TypeError:
        raise malformed("one of its arrays is of numbers that do not exist") from None
    if len(array.data) - head.end() != int(head[3]) * dtype.itemsize:
        raise malformed("one of its arrays has another size than it claims")
    flat = np.frombuffer(array.data, dtype, offset=head.end())
    if dtype == np.bool_ and flat.view(np.uint8).max(initial=0) > 1:
        raise malformed("one of its arrays has booleans that are neither true nor false")
    return flat
