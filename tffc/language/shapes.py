"""The shapes of tensors."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, cast

from tffc.support.errors import LanguageTypeError

Shape = tuple[int | None, ...] | None
"""The sizes of the dimensions, None for an unknown size; None alone for an unknown rank."""


def to_shape(source: Any) -> Shape:
    """Return the shape that None (unknown rank), a sequence of sizes or a TensorShape stands for.

    Raises:
      LanguageTypeError: it is none of these.
    """
    if source is None:
        return None
    if hasattr(source, "rank") and hasattr(source, "as_list"):
        return None if source.rank is None else tuple(source.as_list())
    if not is_shape_like(source):
        raise LanguageTypeError(
            "E112", f"{source!r} is not a shape; expected a sequence of sizes or None"
        )
    return tuple(None if size is None else int(size) for size in source)


def is_shape_like(source: Any) -> bool:
    """Tell whether `to_shape` reads this Python object."""
    if source is None or (hasattr(source, "rank") and hasattr(source, "as_list")):
        return True
    if isinstance(source, str):
        return source == ""
    if not isinstance(source, (list, tuple, range)) and getattr(source, "ndim", 0) != 1:
        return False
    sizes = cast("Iterable[Any]", source)
    return all(size is None or isinstance(size, numbers.Integral) for size in sizes)


def shape_is_assignable(target: Shape, source: Shape) -> bool:
    """Tell whether every tensor of shape `source` is also of shape `target`."""
    if target is None:
        return True
    if source is None or len(target) != len(source):
        return False
    return all(t is None or t == s for t, s in zip(target, source, strict=True))


def shapes_may_agree(one: Sequence[int | None] | None, other: Sequence[int | None] | None) -> bool:
    """Tell whether a tensor may be of both shapes."""
    if one is None or other is None:
        return True
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(None in pair or pair[0] == pair[1] for pair in pairs)
