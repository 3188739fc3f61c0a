"""The names of `federated_language`, the language of today's TensorFlow Federated."""

from __future__ import annotations

import importlib
from typing import Any

import tffc

NAMES = frozenset(
    {
        "AbstractType",
        "CLIENTS",
        "Computation",
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

OWN = {
    "Array": ("array", "Array"),
    "ArrayShape": ("shapes", "ArrayShape"),
    "Serializable": ("serializable", "Serializable"),
    "array_from_proto": ("array", "from_proto"),
    "array_from_proto_content": ("array", "from_proto_content"),
    "array_is_compatible_dtype": ("array", "is_compatible_dtype"),
    "array_is_compatible_shape": ("array", "is_compatible_shape"),
    "array_shape_from_proto": ("shapes", "from_proto"),
    "array_shape_is_compatible_with": ("shapes", "is_compatible_with"),
    "array_shape_is_fully_defined": ("shapes", "is_shape_fully_defined"),
    "array_shape_is_scalar": ("shapes", "is_shape_scalar"),
    "array_shape_to_proto": ("shapes", "to_proto"),
    "array_to_proto": ("array", "to_proto"),
    "array_to_proto_content": ("array", "to_proto_content"),
    "can_cast_dtype": ("dtypes", "can_cast"),
    "dtype_from_proto": ("dtypes", "from_proto"),
    "dtype_to_proto": ("dtypes", "to_proto"),
    "infer_dtype": ("dtypes", "infer_dtype"),
    "is_valid_dtype": ("dtypes", "is_valid_dtype"),
    "num_elements_in_array_shape": ("shapes", "num_elements_in_shape"),
}
"""The other names: the modules beside this one that have them, and the names there."""

PARTS = ("framework", "program")
"""The modules in it, which programs use without importing them."""


def __getattr__(name: str) -> Any:
    if name in PARTS:
        return importlib.import_module(f"federated_language.{name}")
    if name in NAMES:
        return getattr(tffc, name)
    if name in OWN:
        module, own = OWN[name]
        return getattr(importlib.import_module(f"{__name__}.{module}"), own)
    raise AttributeError(f"module 'federated_language' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES, *OWN, *PARTS])
