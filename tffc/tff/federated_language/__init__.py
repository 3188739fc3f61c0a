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
