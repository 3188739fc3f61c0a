"""The names of TFF's `backends.mapreduce`, which `tffc.tff.backends.callable_forms` implements."""

from __future__ import annotations

from tffc.tff.backends.callable_forms import (
    CallableBroadcastForm,
    CallableDistributeAggregateForm,
    CallableMapReduceForm,
    check_computation_compatible_with_map_reduce_form,
    consolidate_and_extract_local_processing,
    get_broadcast_form_for_computation,
    get_computation_for_broadcast_form,
    get_computation_for_distribute_aggregate_form,
    get_computation_for_map_reduce_form,
    get_distribute_aggregate_form_for_computation,
    get_map_reduce_form_for_computation,
    get_state_initialization_computation,
    parse_tff_to_tf,
)
from tffc.tff.modular_sum import federated_secure_modular_sum

__all__ = [
    "BroadcastForm",
    "DistributeAggregateForm",
    "MapReduceForm",
    "check_computation_compatible_with_map_reduce_form",
    "consolidate_and_extract_local_processing",
    "federated_secure_modular_sum",
    "get_broadcast_form_for_computation",
    "get_computation_for_broadcast_form",
    "get_computation_for_distribute_aggregate_form",
    "get_computation_for_map_reduce_form",
    "get_distribute_aggregate_form_for_computation",
    "get_map_reduce_form_for_computation",
    "get_state_initialization_computation",
    "parse_tff_to_tf",
]

BroadcastForm = CallableBroadcastForm
DistributeAggregateForm = CallableDistributeAggregateForm
MapReduceForm = CallableMapReduceForm
