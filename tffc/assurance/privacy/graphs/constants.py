"""Constants in graphs, as arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tffc.assurance.proof.constants import constant_of_tensor
from tffc.language.dtypes import DType

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView

DTYPES = {dtype.number: dtype for dtype in DType}
"""The element types by their numbers."""

MOST_ELEMENTS = 1_000_000
"""The largest constant that is looked at."""


def constant_of_node(node: NodeView) -> Any:
    """Return the array of a constant node, or None if it is no array of numbers."""
    tensor = node.attr["value"].tensor if "value" in node.attr else None
    if tensor is None:
        return None
    content = constant_of_tensor(tensor)
    if not isinstance(content, tuple) or len(content) != 3 or not isinstance(content[2], bytes):
        return None
    number, shape, elements = content
    try:
        dtype = DTYPES[number].dtype
    except (KeyError, ValueError):
        return None
    count = math.prod(shape)
    if count > MOST_ELEMENTS:
        return None
    listed = np.frombuffer(elements, dtype)
    if not len(listed):
        return np.zeros(shape, dtype)
    array = np.full(count, listed[-1], dtype)
    array[: len(listed)] = listed
    return array.reshape(shape)
