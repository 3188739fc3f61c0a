"""The types of clients' examples, from declared types, a data frame or arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import tffc
from tffc.support.errors import LanguageTypeError, MissingElementError, TffcError
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
    if hasattr(getattr(examples, "dtypes", None), "items"):
        return {str(name): column for name, column in examples.items()}
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


def _cells_of(column: Any) -> np.ndarray[Any, Any]:
    """Return the cells of a column of a data frame as an array; without gaps, if it has some."""
    kind = getattr(column.dtype, "numpy_dtype", column.dtype)
    if isinstance(kind, np.dtype) and kind.kind != "O":
        return np.empty(0, kind)
    cells = [np.asarray(cell) for cell in column[column.notna()].to_numpy(object)]
    if any(cell.shape != cells[0].shape for cell in cells):
        raise LanguageTypeError(
            "E714",
            f"the cells of the column {column.name!r} of examples have several shapes",
            help='give the types of columns, such as {"words": (np.int64, [None])}',
        )
    return np.stack(cells) if cells else np.empty(0, object)


def _element_type(column: np.ndarray[Any, Any]) -> Any:
    is_text = column.dtype == object and all(isinstance(each, str | bytes) for each in column.flat)
    return np.str_ if is_text else column.dtype.type


def _type_of(name: str, column: Any) -> tffc.TensorType:
    if hasattr(column, "to_numpy"):
        column = _cells_of(column)
    if isinstance(column, np.ndarray) and column.ndim > 0:
        column = (_element_type(column), list(column.shape[1:]))
    try:
        type = tffc.to_type(column)
    except TffcError as error:
        raise LanguageTypeError(
            "E714",
            f"the column {name!r} of examples has no type: {error.message}",
            help="give numbers, booleans, texts or arrays of one shape, or the types of columns: "
            '{"x": (np.float32, [2]), "label": np.int64}; times and categories are numbers first',
        ) from error
    if not isinstance(type, tffc.TensorType) or type.shape is None:
        raise LanguageTypeError(
            "E714",
            f"the column {name!r} of examples is of type `{type}`, and not a tensor",
            help="give a column the type of its value in one example",
        )
    return type
