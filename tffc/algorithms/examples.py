"""The types of clients' examples, from declared types, a data frame or arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import tffc
from tffc.support.errors import LanguageTypeError, MissingElementError
from tffc.support.near import nearest


def columns_of(examples: Any, names: Collection[str] | None = None) -> OrderedDict[str, Any]:
    """Return the types of the columns of examples by name; with `names`, of these alone.

    `examples` maps names to types or to arrays with a row for each example, or is such a type of
    the language, or a data frame.

    Raises:
      LanguageTypeError: it has no columns, or some that are no tensors.
      MissingElementError: it has no column of one of the names.
    """
    held = _held(examples)
    if names is None:
        names = held
    for name in names:
        if name not in held:
            raise MissingElementError(
                "E441",
                f"the examples have no column {name!r}",
                help=nearest(name, held),
            )
    return OrderedDict((name, _type_of(name, held[name])) for name in held if name in names)


def _held(examples: Any) -> Mapping[str, Any]:
    kinds = getattr(examples, "dtypes", None)
    if kinds is not None and hasattr(kinds, "items"):
        return {str(name): kind for name, kind in kinds.items()}
    if isinstance(examples, tffc.SequenceType):
        examples = examples.element
    if isinstance(examples, tffc.StructType):
        examples = {name: getattr(examples, name) for name in examples.fields()}
    if not isinstance(examples, Mapping) or not all(isinstance(name, str) for name in examples):
        raise LanguageTypeError(
            "E714",
            f"{type(examples).__name__!r} does not say what columns examples have",
            help="give a mapping from names to types, such as "
            '{"x": (np.float32, [2]), "label": np.int64}, or a data frame',
        )
    return examples


def shape_of(type: tffc.TensorType) -> list[int | None]:
    """Return the shape of a column's value in one example."""
    return list(type.shape or ())


def _type_of(name: str, column: Any) -> tffc.TensorType:
    if isinstance(column, np.ndarray) and column.ndim > 0:
        column = (column.dtype.type, list(column.shape[1:]))
    if isinstance(column, np.dtype):
        column = column.type
    type = tffc.to_type(column)
    if not isinstance(type, tffc.TensorType) or type.shape is None:
        raise LanguageTypeError(
            "E714",
            f"the column {name!r} of examples is of type `{type}`, and not a tensor",
            help="give a column the type of its value in one example",
        )
    return type
