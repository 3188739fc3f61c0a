"""The module `tff.framework`: parts of TFF's core, for programs that extend it.

TFF's executors are not included.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tffc.errors import LanguageTypeError
from tffc.frontend.building_blocks import (
    Block,
    Call,
    CompiledComputation,
    ComputationBuildingBlock,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Reference,
    Selection,
    UnexpectedBlockError,
    to_call_dominant,
    transform_postorder,
    transform_preorder,
    unique_name_generator,
)
from tffc.frontend.building_blocks import PlacementBlock as Placement
from tffc.frontend.building_blocks import StructBlock as Struct
from tffc.frontend.cardinalities import CardinalitiesType, merge_cardinalities
from tffc.frontend.computation import (
    Computation,
)
from tffc.frontend.computation import (
    deserialize_computation as computation_from_bytes,
)
from tffc.frontend.conversion import infer_type
from tffc.frontend.data_descriptor import CardinalityFreeDataDescriptor, DataDescriptor
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
from tffc.frontend.mergeable import MergeableCompExecutionContext, MergeableCompForm
from tffc.frontend.source import entry_point
from tffc.frontend.type_conversions import type_to_tf_tensor_specs
from tffc.frontend.type_queries import (
    PlacementLiteral,
    TypedObject,
    deserialize_type,
    serialize_type,
)
from tffc.ir.intrinsics import INTRINSICS

__all__ = [
    "FEDERATED_AGGREGATE",
    "FEDERATED_APPLY",
    "FEDERATED_BROADCAST",
    "FEDERATED_EVAL_AT_CLIENTS",
    "FEDERATED_EVAL_AT_SERVER",
    "FEDERATED_MAP",
    "FEDERATED_MAP_ALL_EQUAL",
    "FEDERATED_SUM",
    "FEDERATED_VALUE_AT_CLIENTS",
    "FEDERATED_VALUE_AT_SERVER",
    "FEDERATED_ZIP_AT_CLIENTS",
    "FEDERATED_ZIP_AT_SERVER",
    "AsyncContext",
    "AsyncExecutionContext",
    "Block",
    "Call",
    "CardinalitiesType",
    "CardinalityFreeDataDescriptor",
    "CompiledComputation",
    "ComputationBuildingBlock",
    "ConcreteComputation",
    "ContextStack",
    "Data",
    "DataDescriptor",
    "Intrinsic",
    "Lambda",
    "Literal",
    "MergeableCompExecutionContext",
    "MergeableCompForm",
    "Placement",
    "PlacementLiteral",
    "Reference",
    "RetryableError",
    "Selection",
    "Struct",
    "SyncContext",
    "SyncExecutionContext",
    "TypedObject",
    "UnexpectedBlockError",
    "deserialize_computation",
    "deserialize_type",
    "get_context_stack",
    "merge_cardinalities",
    "serialize_computation",
    "serialize_type",
    "set_default_context",
    "to_call_dominant",
    "transform_postorder",
    "transform_preorder",
    "type_from_tensors",
    "type_to_tf_tensor_specs",
    "unique_name_generator",
]

FEDERATED_AGGREGATE = INTRINSICS["federated_aggregate"]
FEDERATED_APPLY = INTRINSICS["federated_apply"]
FEDERATED_BROADCAST = INTRINSICS["federated_broadcast"]
FEDERATED_EVAL_AT_CLIENTS = INTRINSICS["federated_eval_at_clients"]
FEDERATED_EVAL_AT_SERVER = INTRINSICS["federated_eval_at_server"]
FEDERATED_MAP = INTRINSICS["federated_map"]
FEDERATED_MAP_ALL_EQUAL = INTRINSICS["federated_map_all_equal"]
FEDERATED_SUM = INTRINSICS["federated_sum"]
FEDERATED_VALUE_AT_CLIENTS = INTRINSICS["federated_value_at_clients"]
FEDERATED_VALUE_AT_SERVER = INTRINSICS["federated_value_at_server"]
FEDERATED_ZIP_AT_CLIENTS = INTRINSICS["federated_zip_at_clients"]
FEDERATED_ZIP_AT_SERVER = INTRINSICS["federated_zip_at_server"]


class RetryableError(Exception):
    """TFF's error for failures worth a retry, raised by its executors; tffc never raises it."""


ConcreteComputation = Computation
"""TFF's name for the class of computations that have a program."""

type_from_tensors = entry_point(infer_type)
"""Returns the type of tensors, variables and NumPy arrays, alone or in Python containers."""


@entry_point
def serialize_computation(computation: Computation) -> Any:
    """Return the computation as a `Computation` message; see `tff.serialize_computation`."""
    return Computation.get_proto(computation)


@entry_point
def deserialize_computation(
    computation_proto: Any, *, allow_effects: Collection[str] = ()
) -> Computation:
    """Return the computation in a `Computation` message, of this or another package's class.

    See `tff.deserialize_computation`.
    """
    if not hasattr(computation_proto, "SerializeToString"):
        raise LanguageTypeError(
            "E198",
            "a computation is read from a message `Computation`, not from "
            f"{described(computation_proto)}",
            help="give what tff.framework.serialize_computation returns",
        )
    data = computation_proto.SerializeToString()
    return computation_from_bytes(data, allow_effects=allow_effects)
