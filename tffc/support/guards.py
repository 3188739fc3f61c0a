"""Tests for the kinds of Python's containers, which tell type checkers that the content is unknown.

After `isinstance`, type checkers would not check what is done with the content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

if TYPE_CHECKING:
    import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""An array of NumPy, of any shape and element type."""


def is_dict(value: object) -> TypeGuard[dict[object, object]]:
    """Return whether a value is a dictionary."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Return whether a value is a tuple."""
    return isinstance(value, tuple)


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is an array of NumPy."""
    import numpy as np

    return isinstance(value, np.ndarray)
