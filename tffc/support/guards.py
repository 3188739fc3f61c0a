"""Tests for the kinds of Python's containers, which tell type checkers that the content is unknown.

After `isinstance`, type checkers would not check what is done with the content.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

if TYPE_CHECKING:
    import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""An array of NumPy, of any shape and element type."""

ElementType: TypeAlias = "np.dtype[Any]"
"""An element type of NumPy."""

Scalar: TypeAlias = "np.generic[Any]"
"""A scalar of NumPy, of any element type."""


def is_dict(value: object) -> TypeGuard[dict[object, object]]:
    """Return whether a value is a dictionary."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


def is_listing(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a value is a path or a text that may be one."""
    return isinstance(value, (str, os.PathLike))


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a sequence."""
    return isinstance(value, Sequence)


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Return whether a value is a tuple."""
    return isinstance(value, tuple)


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is an array of NumPy."""
    import numpy as np

    return isinstance(value, np.ndarray)


def is_numpy(value: object) -> TypeGuard[Array | Scalar]:
    """Return whether a value is an array or a scalar of NumPy."""
    import numpy as np

    return isinstance(value, (np.ndarray, np.generic))


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Return whether a value is a scalar of NumPy."""
    import numpy as np

    return isinstance(value, np.generic)
