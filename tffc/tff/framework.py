"""The module `tff.framework`: parts of TFF's core, for programs that extend it.

TFF's executors are not included.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tffc.frontend.computation import Computation, computation_of_message
from tffc.frontend.conversion import infer_type
from tffc.frontend.execution import AsyncContext as AsyncContext
from tffc.frontend.execution import AsyncExecutionContext as AsyncExecutionContext
from tffc.frontend.execution import ContextStack as ContextStack
from tffc.frontend.execution import SyncContext as SyncContext
from tffc.frontend.execution import SyncExecutionContext as SyncExecutionContext
from tffc.frontend.execution import get_context_stack as get_context_stack
from tffc.frontend.execution import set_default_context as set_default_context
from tffc.frontend.type_conversions import type_to_tf_tensor_specs as type_to_tf_tensor_specs
from tffc.frontend.type_queries import PlacementLiteral as PlacementLiteral
from tffc.frontend.type_queries import TypedObject as TypedObject
from tffc.frontend.type_queries import deserialize_type as deserialize_type
from tffc.frontend.type_queries import serialize_type as serialize_type
from tffc.runtime.user_code.source import entry_point
from tffc.tff import intrinsic_defs
from tffc.tff.building_blocks import Block as Block
from tffc.tff.building_blocks import Call as Call
from tffc.tff.building_blocks import CompiledComputation as CompiledComputation
from tffc.tff.building_blocks import ComputationBuildingBlock as ComputationBuildingBlock
from tffc.tff.building_blocks import Data as Data
from tffc.tff.building_blocks import Intrinsic as Intrinsic
from tffc.tff.building_blocks import Lambda as Lambda
from tffc.tff.building_blocks import Literal as Literal
from tffc.tff.building_blocks import Placement as Placement
from tffc.tff.building_blocks import Reference as Reference
from tffc.tff.building_blocks import Selection as Selection
from tffc.tff.building_blocks import Struct as Struct
from tffc.tff.building_blocks import UnexpectedBlockError as UnexpectedBlockError
from tffc.tff.building_blocks import to_call_dominant as to_call_dominant
from tffc.tff.building_blocks import transform_postorder as transform_postorder
from tffc.tff.building_blocks import transform_preorder as transform_preorder
from tffc.tff.building_blocks import unique_name_generator as unique_name_generator
from tffc.tff.cardinalities import CardinalitiesType as CardinalitiesType
from tffc.tff.cardinalities import merge_cardinalities as merge_cardinalities
from tffc.tff.data_descriptor import CardinalityFreeDataDescriptor as CardinalityFreeDataDescriptor
from tffc.tff.data_descriptor import DataDescriptor as DataDescriptor
from tffc.tff.federated_language.computations import ConcreteComputation as ConcreteComputation
from tffc.tff.mergeable import MergeableCompExecutionContext as MergeableCompExecutionContext
from tffc.tff.mergeable import MergeableCompForm as MergeableCompForm

FEDERATED_AGGREGATE = intrinsic_defs.FEDERATED_AGGREGATE
FEDERATED_APPLY = intrinsic_defs.FEDERATED_APPLY
FEDERATED_BROADCAST = intrinsic_defs.FEDERATED_BROADCAST
FEDERATED_EVAL_AT_CLIENTS = intrinsic_defs.FEDERATED_EVAL_AT_CLIENTS
FEDERATED_EVAL_AT_SERVER = intrinsic_defs.FEDERATED_EVAL_AT_SERVER
FEDERATED_MAP = intrinsic_defs.FEDERATED_MAP
FEDERATED_MAP_ALL_EQUAL = intrinsic_defs.FEDERATED_MAP_ALL_EQUAL
FEDERATED_SUM = intrinsic_defs.FEDERATED_SUM
FEDERATED_VALUE_AT_CLIENTS = intrinsic_defs.FEDERATED_VALUE_AT_CLIENTS
FEDERATED_VALUE_AT_SERVER = intrinsic_defs.FEDERATED_VALUE_AT_SERVER
FEDERATED_ZIP_AT_CLIENTS = intrinsic_defs.FEDERATED_ZIP_AT_CLIENTS
FEDERATED_ZIP_AT_SERVER = intrinsic_defs.FEDERATED_ZIP_AT_SERVER


class RetryableError(Exception):
    """TFF's error for failures worth a retry, raised by its executors; tffc never raises it."""


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
    return computation_of_message(computation_proto, allow_effects=allow_effects)
