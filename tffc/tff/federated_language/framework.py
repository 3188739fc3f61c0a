"""The names of `federated_language.framework`: parts of the core, for programs that extend it."""

from __future__ import annotations

import importlib
from typing import Any

import tffc.tff.framework
import tffc.tff.types
from tffc.frontend.execution import RuntimeErrorContext as RuntimeErrorContext
from tffc.frontend.execution import set_no_default_context as set_no_default_context
from tffc.frontend.type_checks import (
    check_is_structure_of_integers as check_is_structure_of_integers,
)
from tffc.frontend.type_checks import is_generic_op_compatible_type as is_generic_op_compatible_type
from tffc.frontend.type_checks import (
    is_single_integer_or_matches_structure as is_single_integer_or_matches_structure,
)
from tffc.frontend.type_checks import preorder_types as preorder_types
from tffc.frontend.type_queries import contains as type_contains
from tffc.frontend.type_queries import contains_federated_types as contains_federated_types
from tffc.frontend.type_queries import contains_only as type_contains_only
from tffc.frontend.type_queries import contains_tensor_types as contains_tensor_types
from tffc.frontend.type_queries import count as type_count
from tffc.frontend.type_queries import transform_type_postorder as transform_type_postorder
from tffc.frontend.type_queries import uri_to_placement_literal as uri_to_placement_literal
from tffc.support.errors import ComputationReturnedNoneError as ComputationReturnedNoneError
from tffc.support.errors import ContextError as ContextError
from tffc.tff import intrinsic_defs
from tffc.tff.cardinalities import infer_cardinalities as infer_cardinalities
from tffc.tff.federated_language.analysis import NonuniqueNameError as NonuniqueNameError
from tffc.tff.federated_language.analysis import (
    check_aggregate_not_dependent_on_aggregate as check_aggregate_not_dependent_on_aggregate,
)
from tffc.tff.federated_language.analysis import (
    check_broadcast_not_dependent_on_aggregate as check_broadcast_not_dependent_on_aggregate,
)
from tffc.tff.federated_language.analysis import (
    check_contains_no_new_unbound_references as check_contains_no_new_unbound_references,
)
from tffc.tff.federated_language.analysis import (
    check_contains_no_unbound_references as check_contains_no_unbound_references,
)
from tffc.tff.federated_language.analysis import (
    check_contains_only_reducible_intrinsics as check_contains_only_reducible_intrinsics,
)
from tffc.tff.federated_language.analysis import (
    check_has_single_placement as check_has_single_placement,
)
from tffc.tff.federated_language.analysis import check_has_unique_names as check_has_unique_names
from tffc.tff.federated_language.analysis import computation_contains as computation_contains
from tffc.tff.federated_language.analysis import (
    computation_contains_secure_aggregation as computation_contains_secure_aggregation,
)
from tffc.tff.federated_language.analysis import (
    computation_contains_unsecure_aggregation as computation_contains_unsecure_aggregation,
)
from tffc.tff.federated_language.analysis import (
    contains_called_intrinsic as contains_called_intrinsic,
)
from tffc.tff.federated_language.analysis import (
    contains_no_unbound_references as contains_no_unbound_references,
)
from tffc.tff.federated_language.analysis import count as computation_count
from tffc.tff.federated_language.analysis import (
    find_aggregations_in_tree as find_aggregations_in_tree,
)
from tffc.tff.federated_language.analysis import (
    get_map_of_unbound_references as get_map_of_unbound_references,
)
from tffc.tff.federated_language.analysis import is_called_aggregation as is_called_aggregation
from tffc.tff.federated_language.analysis import is_identity_function as is_identity_function
from tffc.tff.federated_language.analysis import visit_postorder as visit_postorder
from tffc.tff.federated_language.analysis import visit_preorder as visit_preorder
from tffc.tff.federated_language.computation_base import Computation as Computation
from tffc.tff.federated_language.computations import ConcreteComputation as ConcreteComputation
from tffc.tff.federated_language.computations import (
    PolymorphicComputation as PolymorphicComputation,
)
from tffc.tff.federated_language.executors import Executor as Executor
from tffc.tff.federated_language.executors import ExecutorFactory as ExecutorFactory
from tffc.tff.federated_language.executors import ExecutorValue as ExecutorValue
from tffc.tff.federated_language.factories import Path as Path
from tffc.tff.federated_language.factories import (
    create_federated_aggregate as create_federated_aggregate,
)
from tffc.tff.federated_language.factories import create_federated_apply as create_federated_apply
from tffc.tff.federated_language.factories import (
    create_federated_broadcast as create_federated_broadcast,
)
from tffc.tff.federated_language.factories import create_federated_map as create_federated_map
from tffc.tff.federated_language.factories import (
    create_federated_map_all_equal as create_federated_map_all_equal,
)
from tffc.tff.federated_language.factories import (
    create_federated_map_or_apply as create_federated_map_or_apply,
)
from tffc.tff.federated_language.factories import create_federated_mean as create_federated_mean
from tffc.tff.federated_language.factories import (
    create_federated_secure_sum as create_federated_secure_sum,
)
from tffc.tff.federated_language.factories import (
    create_federated_secure_sum_bitwidth as create_federated_secure_sum_bitwidth,
)
from tffc.tff.federated_language.factories import create_federated_select as create_federated_select
from tffc.tff.federated_language.factories import create_federated_sum as create_federated_sum
from tffc.tff.federated_language.factories import create_federated_unzip as create_federated_unzip
from tffc.tff.federated_language.factories import create_federated_value as create_federated_value
from tffc.tff.federated_language.factories import create_federated_zip as create_federated_zip
from tffc.tff.federated_language.factories import create_identity as create_identity
from tffc.tff.federated_language.factories import create_named_tuple as create_named_tuple
from tffc.tff.federated_language.factories import create_sequence_map as create_sequence_map
from tffc.tff.federated_language.factories import (
    select_output_from_lambda as select_output_from_lambda,
)
from tffc.tff.federated_language.structures import infer_type as infer_type
from tffc.tff.federated_language.structures import structure_with_type as structure_with_type
from tffc.tff.federated_language.structures import to_structure_with_type as to_structure_with_type
from tffc.tff.federated_language.structures import type_to_py_container as type_to_py_container
from tffc.tff.federated_language.traces import (
    FederatedComputationContext as FederatedComputationContext,
)
from tffc.tff.federated_language.traces import SymbolBindingContext as SymbolBindingContext
from tffc.tff.federated_language.traces import ensure_federated_value as ensure_federated_value
from tffc.tff.federated_language.tracing import TraceResult as TraceResult
from tffc.tff.federated_language.tracing import TracingProvider as TracingProvider
from tffc.tff.federated_language.tracing import (
    propagate_trace_context_task_factory as propagate_trace_context_task_factory,
)
from tffc.tff.federated_language.tracing import set_tracing_providers as set_tracing_providers
from tffc.tff.federated_language.tracing import span as span
from tffc.tff.federated_language.tracing import trace as trace
from tffc.tff.federated_language.tracing import (
    wrap_coroutine_in_current_trace_context as wrap_coroutine_in_current_trace_context,
)
from tffc.tff.federated_language.tracing import (
    wrap_rpc_in_trace_context as wrap_rpc_in_trace_context,
)
from tffc.tff.intrinsic_defs import AggregationKind as AggregationKind
from tffc.tff.intrinsic_defs import IntrinsicDef as IntrinsicDef
from tffc.tff.intrinsic_defs import get_aggregation_intrinsics as get_aggregation_intrinsics
from tffc.tff.intrinsic_defs import get_broadcast_intrinsics as get_broadcast_intrinsics
from tffc.tff.test import with_context as with_context
from tffc.tff.type_instances import check_concrete_instance_of as check_concrete_instance_of

__all__ = [
    "AggregationKind",
    "Computation",
    "ComputationReturnedNoneError",
    "ConcreteComputation",
    "ContextError",
    "Executor",
    "ExecutorFactory",
    "ExecutorValue",
    "FederatedComputationContext",
    "IntrinsicDef",
    "NonuniqueNameError",
    "Path",
    "PolymorphicComputation",
    "RuntimeErrorContext",
    "SymbolBindingContext",
    "TraceResult",
    "TracingProvider",
    "check_aggregate_not_dependent_on_aggregate",
    "check_broadcast_not_dependent_on_aggregate",
    "check_concrete_instance_of",
    "check_contains_no_new_unbound_references",
    "check_contains_no_unbound_references",
    "check_contains_only_reducible_intrinsics",
    "check_has_single_placement",
    "check_has_unique_names",
    "check_is_structure_of_integers",
    "computation_contains",
    "computation_contains_secure_aggregation",
    "computation_contains_unsecure_aggregation",
    "computation_count",
    "contains_called_intrinsic",
    "contains_federated_types",
    "contains_no_unbound_references",
    "contains_tensor_types",
    "create_federated_aggregate",
    "create_federated_apply",
    "create_federated_broadcast",
    "create_federated_map",
    "create_federated_map_all_equal",
    "create_federated_map_or_apply",
    "create_federated_mean",
    "create_federated_secure_sum",
    "create_federated_secure_sum_bitwidth",
    "create_federated_select",
    "create_federated_sum",
    "create_federated_unzip",
    "create_federated_value",
    "create_federated_zip",
    "create_identity",
    "create_named_tuple",
    "create_sequence_map",
    "ensure_federated_value",
    "find_aggregations_in_tree",
    "get_aggregation_intrinsics",
    "get_broadcast_intrinsics",
    "get_map_of_unbound_references",
    "infer_cardinalities",
    "infer_type",
    "is_called_aggregation",
    "is_generic_op_compatible_type",
    "is_identity_function",
    "is_single_integer_or_matches_structure",
    "preorder_types",
    "propagate_trace_context_task_factory",
    "select_output_from_lambda",
    "set_no_default_context",
    "set_tracing_providers",
    "span",
    "structure_with_type",
    "to_structure_with_type",
    "trace",
    "transform_type_postorder",
    "type_contains",
    "type_contains_only",
    "type_count",
    "type_to_py_container",
    "uri_to_placement_literal",
    "visit_postorder",
    "visit_preorder",
    "with_context",
    "wrap_coroutine_in_current_trace_context",
    "wrap_rpc_in_trace_context",
]

IN_FILES = {
    "AsyncExecutionContext": "executor.async_execution_context",
    "BoundVariableTracker": "compiler.transformation_utils",
    "ComputationWrapper": "computation.computation_wrapper",
    "SymbolTree": "compiler.transformation_utils",
    "SyncExecutionContext": "executor.sync_execution_context",
    "TransformReturnType": "compiler.transformation_utils",
    "pack_args_into_struct": "computation.function_utils",
    "transform_postorder_with_symbol_bindings": "compiler.transformation_utils",
    "unpack_arg": "computation.function_utils",
    "unpack_args_from_struct": "computation.function_utils",
    "wrap_as_zero_or_one_arg_callable": "computation.function_utils",
}
"""Names of machinery that runs from the package's own files, and its modules."""


def __getattr__(name: str) -> Any:
    if name in IN_FILES:
        return getattr(importlib.import_module(f"federated_language.{IN_FILES[name]}"), name)
    for home in (tffc.tff.framework, tffc.tff.types, intrinsic_defs):
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module 'federated_language.framework' has no attribute {name!r}")
