"""The names of `federated_language`, the language of today's TensorFlow Federated."""

from __future__ import annotations

import importlib
from typing import Any

import tffc
from tffc.tff.federated_language import type_messages as type_messages  # types get them
from tffc.tff.federated_language.array import Array as Array
from tffc.tff.federated_language.array import from_proto as array_from_proto
from tffc.tff.federated_language.array import from_proto_content as array_from_proto_content
from tffc.tff.federated_language.array import is_compatible_dtype as array_is_compatible_dtype
from tffc.tff.federated_language.array import is_compatible_shape as array_is_compatible_shape
from tffc.tff.federated_language.array import to_proto as array_to_proto
from tffc.tff.federated_language.array import to_proto_content as array_to_proto_content
from tffc.tff.federated_language.computation_base import Computation as Computation
from tffc.tff.federated_language.dtypes import can_cast as can_cast_dtype
from tffc.tff.federated_language.dtypes import from_proto as dtype_from_proto
from tffc.tff.federated_language.dtypes import infer_dtype as infer_dtype
from tffc.tff.federated_language.dtypes import is_valid_dtype as is_valid_dtype
from tffc.tff.federated_language.dtypes import to_proto as dtype_to_proto
from tffc.tff.federated_language.serializable import Serializable as Serializable
from tffc.tff.federated_language.shapes import ArrayShape as ArrayShape
from tffc.tff.federated_language.shapes import from_proto as array_shape_from_proto
from tffc.tff.federated_language.shapes import is_compatible_with as array_shape_is_compatible_with
from tffc.tff.federated_language.shapes import (
    is_shape_fully_defined as array_shape_is_fully_defined,
)
from tffc.tff.federated_language.shapes import is_shape_scalar as array_shape_is_scalar
from tffc.tff.federated_language.shapes import num_elements_in_shape as num_elements_in_array_shape
from tffc.tff.federated_language.shapes import to_proto as array_shape_to_proto

__all__ = [  # those that tffc itself has under other names, in another form or not at all
    "Array",
    "ArrayShape",
    "Computation",
    "Serializable",
    "array_from_proto",
    "array_from_proto_content",
    "array_is_compatible_dtype",
    "array_is_compatible_shape",
    "array_shape_from_proto",
    "array_shape_is_compatible_with",
    "array_shape_is_fully_defined",
    "array_shape_is_scalar",
    "array_shape_to_proto",
    "array_to_proto",
    "array_to_proto_content",
    "can_cast_dtype",
    "dtype_from_proto",
    "dtype_to_proto",
    "infer_dtype",
    "is_valid_dtype",
    "num_elements_in_array_shape",
]

NAMES = frozenset(
    {
        "AbstractType",
        "CLIENTS",
        "FederatedType",
        "FunctionType",
        "PlacementType",
        "SERVER",
        "SequenceType",
        "StructType",
        "StructWithPythonType",
        "TensorType",
        "Type",
        "TypedObject",
        "Value",
        "federated_aggregate",
        "federated_broadcast",
        "federated_computation",
        "federated_eval",
        "federated_map",
        "federated_max",
        "federated_mean",
        "federated_min",
        "federated_secure_select",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
        "federated_select",
        "federated_sum",
        "federated_value",
        "federated_zip",
        "sequence_map",
        "sequence_reduce",
        "sequence_sum",
        "to_type",
        "to_value",
    }
)
"""The names that it shares with tffc."""

PARTS = ("framework", "program")
"""The modules in it, which programs use without importing them."""


def __getattr__(name: str) -> Any:
    if name in PARTS:
        return importlib.import_module(f"federated_language.{name}")
    if name in NAMES:
        return getattr(tffc, name)
    raise AttributeError(f"module 'federated_language' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES, *PARTS])
