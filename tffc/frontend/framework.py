"""What users write as `tff.framework`: what programs that extend TFF need of its core.

Of TFF's own parts, such as executors and building blocks, there is nothing here; tffc's nodes are
in `tffc.ir`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tffc.errors import LanguageTypeError
from tffc.frontend.computation import (
    Computation,
)
from tffc.frontend.computation import (
    deserialize_computation as computation_from_bytes,
)
from tffc.frontend.conversion import infer_type
from tffc.frontend.execution import (
    AsyncContext,
    AsyncExecutionContext,
    ContextStack,
    SyncContext,
    SyncExecutionContext,
    get_context_stack,
    set_default_context,
)
from tffc.frontend.hints import described
from tffc.frontend.source import entry_point
from tffc.frontend.type_conversions import type_to_tf_tensor_specs
from tffc.frontend.type_queries import (
    PlacementLiteral,
    TypedObject,
    deserialize_type,
    serialize_type,
)

__all__ = [
    "AsyncContext",
    "AsyncExecutionContext",
    "ConcreteComputation",
    "ContextStack",
    "PlacementLiteral",
    "SyncContext",
    "SyncExecutionContext",
    "TypedObject",
    "deserialize_computation",
    "deserialize_type",
    "get_context_stack",
    "serialize_computation",
    "serialize_type",
    "set_default_context",
    "type_from_tensors",
    "type_to_tf_tensor_specs",
]

ConcreteComputation = Computation
"""The class of computations, as TFF names the one that has a program."""

type_from_tensors = entry_point(infer_type)
"""Returns the type of tensors, variables and NumPy arrays, in Python containers or alone."""


@entry_point
def serialize_computation(computation: Computation) -> Any:
    """Return the computation as a message `Computation`; see `tff.serialize_computation`."""
    return Computation.get_proto(computation)


@entry_point
def deserialize_computation(
    computation_proto: Any, *, allow_effects: Collection[str] = ()
) -> Computation:
    """Return the computation in a message `Computation`, of this or another package; see
    `tff.deserialize_computation`."""
    if not hasattr(computation_proto, "SerializeToString"):
        raise LanguageTypeError(
            "E198",
            "a computation is read from a message `Computation`, not from "
            f"{described(computation_proto)}",
            help="give what tff.framework.serialize_computation returns",
        )
    data = computation_proto.SerializeToString()
    return computation_from_bytes(data, allow_effects=allow_effects)
