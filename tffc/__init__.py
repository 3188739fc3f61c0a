"""A compiler for federated programs: `import tffc as tff` and write them as for TFF.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tffc import backends
    from tffc.engines.api import load, load_state, run
    from tffc.frontend import jax, structure, templates, tensorflow, types
    from tffc.frontend.aggregations import (
        federated_aggregate,
        federated_max,
        federated_mean,
        federated_min,
        federated_secure_sum,
        federated_secure_sum_bitwidth,
        federated_sum,
    )
    from tffc.frontend.computation import (
        Computation,
        deserialize_computation,
        federated_computation,
        jax_computation,
        serialize_computation,
        tf_computation,
    )
    from tffc.frontend.conversion import to_value
    from tffc.frontend.operators import (
        federated_broadcast,
        federated_eval,
        federated_map,
        federated_secure_select,
        federated_select,
        federated_value,
        federated_zip,
    )
    from tffc.frontend.sequences import sequence_map, sequence_reduce, sequence_sum
    from tffc.frontend.value import Value
    from tffc.ir.struct import Struct
    from tffc.ir.types import (
        CLIENTS,
        SERVER,
        AbstractType,
        FederatedType,
        FunctionType,
        PlacementType,
        SequenceType,
        StructType,
        StructWithPythonType,
        TensorType,
        Type,
        to_type,
    )

__version__ = "0.1.0"

_MODULES = {
    "backends": "tffc.backends",
    "jax": "tffc.frontend.jax",
    "structure": "tffc.frontend.structure",
    "templates": "tffc.frontend.templates",
    "tensorflow": "tffc.frontend.tensorflow",
    "types": "tffc.frontend.types",
}
"""Names that stand for a whole module."""

_NAMES = {
    "tffc.engines.api": ("load", "load_state", "run"),
    "tffc.frontend.aggregations": (
        "federated_aggregate",
        "federated_max",
        "federated_mean",
        "federated_min",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
        "federated_sum",
    ),
    "tffc.frontend.computation": (
        "Computation",
        "deserialize_computation",
        "federated_computation",
        "jax_computation",
        "serialize_computation",
        "tf_computation",
    ),
    "tffc.frontend.conversion": ("to_value",),
    "tffc.frontend.operators": (
        "federated_broadcast",
        "federated_eval",
        "federated_map",
        "federated_secure_select",
        "federated_select",
        "federated_value",
        "federated_zip",
    ),
    "tffc.frontend.sequences": ("sequence_map", "sequence_reduce", "sequence_sum"),
    "tffc.frontend.value": ("Value",),
    "tffc.ir.convert": ("to_type",),
    "tffc.ir.struct": ("Struct",),
    "tffc.ir.types": (
        "CLIENTS",
        "SERVER",
        "AbstractType",
        "FederatedType",
        "FunctionType",
        "PlacementType",
        "SequenceType",
        "StructType",
        "StructWithPythonType",
        "TensorType",
        "Type",
    ),
}
"""The other names, by the module that defines them."""

_LIBRARIES = frozenset(
    {
        "aggregators",
        "analytics",
        "framework",
        "learning",
        "program",
        "simulation",
        "test",
    }
)
"""What TFF has besides the language."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CLIENTS",
    "SERVER",
    "AbstractType",
    "Computation",
    "FederatedType",
    "FunctionType",
    "PlacementType",
    "SequenceType",
    "Struct",
    "StructType",
    "StructWithPythonType",
    "TensorType",
    "Type",
    "Value",
    "backends",
    "deserialize_computation",
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
    "jax",
    "jax_computation",
    "load",
    "load_state",
    "run",
    "sequence_map",
    "sequence_reduce",
    "sequence_sum",
    "serialize_computation",
    "structure",
    "templates",
    "tensorflow",
    "tf_computation",
    "to_type",
    "to_value",
    "types",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise _unknown(name)
    globals()[name] = value
    return value


def _unknown(name: str) -> AttributeError:
    message = f"module 'tffc' has no attribute {name!r}"
    if name.startswith("__"):
        # Python asks every module for some of these.
        return AttributeError(message)
    from tffc.errors import MissingElementError, near_names
    from tffc.frontend import types
    from tffc.frontend.source import user_span

    places = {"IterativeProcess": "templates.IterativeProcess"}
    places |= {each: f"types.{each}" for each in types.__all__}
    places |= {each: each for each in __all__}
    near = near_names(name, places)
    help = f"did you mean {places[near[0]]!r}?" if near else None
    if name in _LIBRARIES:
        help = "tffc has the language of TFF, not its libraries; see `tffc explain E469`"
    return MissingElementError("E469", message, help=help, span=user_span())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
