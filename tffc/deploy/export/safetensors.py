"""The arrays of a trained state as a file of safetensors, which PyTorch and others read.

The name of an array is its path in the part that is exported: `0.weight`, or `model/0.weight` in
the whole state.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tffc.deploy.export.kind import Exported
from tffc.deploy.export.trained import StatePart
from tffc.language.types import StructType
from tffc.language.values.concrete import flatten
from tffc.runtime.data.arrays import ArrayLayout
from tffc.support.errors import ExportError, MissingExtraError
from tffc.support.extras import installation
from tffc.support.printable import counted

SUFFIX = ".safetensors"


def export_safetensors(part: StatePart) -> Exported:
    """Return the arrays of a part of a state, by their paths in it.

    Raises:
      ExportError: the part is no struct of arrays of numbers.
      MissingExtraError: safetensors is not installed.
    """
    if not isinstance(part.type, StructType) or not part.type:
        raise _no_arrays(part, f"it is of type `{part.type}`, which is no struct")
    fields = ArrayLayout(part.type).fields
    values = [np.asarray(value) for value in flatten(part.value, part.type)]
    for field, value in zip(fields, values, strict=True):
        if field.sequence is not None:
            raise _no_arrays(part, f"{field.name} is in a sequence")
        if value.dtype.kind in "OSUT":
            raise _no_arrays(part, f"{field.name} is text")
    arrays = {
        field.name: np.ascontiguousarray(value).reshape(value.shape)
        for field, value in zip(fields, values, strict=True)
    }
    content: bytes = _load().save(arrays)
    return Exported({"": content}, f"a file of {counted(len(arrays), 'array')}")


def _load() -> Any:
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError as error:
        raise MissingExtraError(
            "E701",
            "the export needs safetensors, which cannot be imported",
            notes=(str(error),),
            help=installation("torch"),
        ) from None


def _no_arrays(part: StatePart, reason: str) -> ExportError:
    return ExportError(
        "E875",
        f"{part} cannot be written as safetensors: {reason}",
        help="name a part of the state that is a struct of arrays of numbers, such as model",
    )
