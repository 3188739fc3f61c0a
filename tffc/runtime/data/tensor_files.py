"""Writing named tensors as JSON, as a CSV table, or as a `.npy` file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.types import TensorType
from tffc.runtime.data.json_values import cell, tensor_to_json
from tffc.support.errors import DataError
from tffc.support.printable import json_text, printable

MOST_NAMES = 20
"""The most names that an error lists."""


class NamedTensor(NamedTuple):
    """A tensor in its form in memory, and its name."""

    name: str
    type: TensorType
    value: Any

    def array(self) -> np.ndarray[Any, Any]:
        """Return the tensor as an array, also where it is a single number or string."""
        return np.asarray(self.value, dtype=self.type.element_type.dtype)


def encode_json(tensors: Sequence[NamedTensor], about: Mapping[str, Any]) -> bytes:
    """Return a JSON object with the tensors under `values`, by name, and the entries of `about`."""
    values = {name: tensor_to_json(value, type.element_type) for name, type, value in tensors}
    return (json_text({**about, "values": values}, allow_nan=False) + "\n").encode()


def encode_csv(tensors: Sequence[NamedTensor]) -> bytes:
    """Return a CSV table: a column for each tensor, or for each element of its rows.

    Raises:
      DataError: the tensors are of different lengths.
    """
    lengths = {tensor.name: (*tensor.array().shape, 1)[0] for tensor in tensors}
    if len(set(lengths.values())) > 1:
        few = list(lengths.items())[:MOST_NAMES]
        raise DataError(
            "E816",
            "tensors of different lengths cannot be the columns of one table",
            notes=(", ".join(f"{name} has length {length}" for name, length in few),),
            help="choose one, or those of one length; or write JSON",
        )
    tables = [_table(tensor) for tensor in tensors]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header = [printable(name) for names, _ in tables for name in names]
    writer.writerow(header)
    for parts in zip(*(rows for _, rows in tables), strict=True) if header else ():
        writer.writerow([cell(item) for part in parts for item in part])
    return stream.getvalue().encode()


def _table(tensor: NamedTensor) -> tuple[list[str], list[list[Any]]]:
    """Return the column names and the rows; `w[0,1]` is one element of every row of `w`."""
    dtype, array = tensor.type.element_type, np.atleast_1d(tensor.array())
    inner = array.shape[1:]
    if inner and not array.size:
        return [], [[] for _ in array]
    table = array.reshape(len(array), math.prod(inner))
    rows = table.astype(np.float64).tolist() if dtype.is_floating else tensor_to_json(table, dtype)
    if not inner:
        return [tensor.name], rows
    return [f"{tensor.name}[{','.join(map(str, index))}]" for index in np.ndindex(inner)], rows


def encode_npy(tensors: Sequence[NamedTensor]) -> bytes:
    """Return one tensor in NumPy's format: strings as byte strings, bfloat16 as float32.

    Raises:
      DataError: there is not exactly one tensor, or a string ends in a zero byte, which NumPy
        drops.
    """
    if len(tensors) != 1:
        names = ", ".join(tensor.name for tensor in tensors[:MOST_NAMES])
        raise DataError(
            "E816",
            f"a .npy file holds one array, and there are {len(tensors)}",
            notes=(f"they are {names}",) if names else (),
            help="choose one",
        )
    (tensor,) = tensors
    array = tensor.array()
    if tensor.type.element_type is DType.STRING:
        if any(item.endswith(b"\0") for item in array.ravel().tolist()):
            raise DataError(
                "E816",
                f"the strings of {tensor.name!r} end in zero bytes, which a .npy file does not "
                "keep",
                help="write JSON, which does",
            )
        array = array.astype(np.bytes_)
    elif tensor.type.element_type is DType.BFLOAT16:
        array = array.astype(np.float32)
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
