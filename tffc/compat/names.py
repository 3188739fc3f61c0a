"""The table of replacements for the modules of TensorFlow Federated's core.

Modules of rooms above are named as text, so that nothing is imported before a program needs it.
"""

from __future__ import annotations

from tffc.compat.stand_in import ALL, Homes

RELEASE = "0.87"
"""The release of TensorFlow Federated whose core tffc replaces, and whose libraries it runs."""

WHEELS = (
    f"tensorflow-federated=={RELEASE}.0",
    "tensorflow-privacy==0.9.0",
    "tensorflow-model-optimization==0.8.0",
)
"""The requirements that install TFF's libraries, and those dependencies of theirs that require old
releases of others."""

LIBRARIES = frozenset({"aggregators", "analytics", "learning", "program", "simulation"})
"""TFF's own libraries, whose files run on tffc unchanged."""

_PYTHON = "tensorflow_federated.python"
_CORE = f"{_PYTHON}.core"
_IMPL = f"{_CORE}.impl"
_FRONTEND = f"{_CORE}.environments.tensorflow_frontend"
_EXECUTION = "tffc.frontend.execution"
_TEMPLATES = "tffc.frontend.templates"

OWN_FILES = frozenset(
    {
        f"{_PYTHON}.common_libs.async_utils",
        f"{_PYTHON}.common_libs.py_typecheck",
        f"{_PYTHON}.common_libs.retrying",
        f"{_PYTHON}.common_libs.serializable",
        f"{_PYTHON}.common_libs.tracing",
        f"{_FRONTEND}.variable_utils",
        f"{_IMPL}.executors.cardinality_carrying_base",
        f"{_IMPL}.executors.executor_base",
        f"{_IMPL}.executors.executor_value_base",
        f"{_IMPL}.executors.ingestable_base",
        f"{_IMPL}.types.array_shape",
        f"{_IMPL}.computation.function_utils",
        f"{_IMPL}.types.dtype_utils",
        f"{_IMPL}.types.type_factory",
        f"{_IMPL}.types.type_conversions",
        "tensorflow_federated.proto.v0.array_pb2",
        "tensorflow_federated.proto.v0.data_type_pb2",
    }
)
"""Modules of TFF's core that depend only on others listed here, and run unchanged."""

MIRRORS = {
    f"{_CORE}.backends.mapreduce": "tffc.backends.mapreduce",
    f"{_CORE}.backends.native": "tffc.backends.native",
    f"{_CORE}.backends.test": "tffc.backends.test",
    f"{_CORE}.environments.jax": "tffc.frontend.jax",
    f"{_CORE}.environments.tensorflow": "tffc.frontend.tensorflow",
    f"{_CORE}.framework": "tffc.frontend.framework",
    f"{_CORE}.templates": "tffc.frontend.templates",
    f"{_CORE}.test": "tffc.frontend.test",
    f"{_IMPL}.types": "tffc.frontend.types",
    f"{_CORE}.backends.mapreduce.form_utils": "tffc.backends.mapreduce",
    f"{_CORE}.backends.mapreduce.forms": "tffc.backends.mapreduce",
    f"{_CORE}.backends.native.compiler": "tffc.backends.native",
    f"{_CORE}.backends.native.execution_contexts": "tffc.backends.native",
    f"{_CORE}.backends.test.compiler": "tffc.backends.test",
    f"{_CORE}.backends.test.execution_contexts": "tffc.backends.test",
    f"{_CORE}.test.static_assert": "tffc.frontend.test",
    f"{_IMPL}.compiler.building_blocks": "tffc.frontend.framework",
    f"{_IMPL}.executors.data_descriptor": "tffc.frontend.data_descriptor",
    f"{_IMPL}.execution_contexts.mergeable_comp_execution_context": "tffc.frontend.mergeable",
}
"""Modules of TFF's core that export the public names of a module of tffc; TFF documents most of
them."""

STAND_INS: dict[str, Homes] = {
    f"{_PYTHON}.common_libs.structure": {"tffc.frontend.structure": ALL},
    f"{_CORE}.backends.mapreduce.intrinsics": {
        "tffc.backends.mapreduce": ("federated_secure_modular_sum",)
    },
    f"{_CORE}.templates.aggregation_process": {
        f"{_TEMPLATES}.aggregation_process": ("AggregationProcess",),
        f"{_TEMPLATES}.errors": ("AggregationNotFederatedError", "AggregationPlacementError"),
    },
    f"{_CORE}.templates.errors": {
        f"{_TEMPLATES}.errors": (
            "TemplateInitFnParamNotEmptyError",
            "TemplateNextFnNumArgsError",
            "TemplateNotFederatedError",
            "TemplateNotMeasuredProcessOutputError",
            "TemplatePlacementError",
            "TemplateStateNotAssignableError",
        )
    },
    f"{_CORE}.templates.estimation_process": {
        f"{_TEMPLATES}.estimation_process": ("EstimationProcess",),
        f"{_TEMPLATES}.errors": ("EstimateNotAssignableError",),
    },
    f"{_CORE}.templates.iterative_process": {
        f"{_TEMPLATES}.iterative_process": ("IterativeProcess", "is_stateful")
    },
    f"{_CORE}.templates.measured_process": {
        f"{_TEMPLATES}.measured_process": (
            "MeasuredProcess",
            "MeasuredProcessOutput",
            "chain_measured_processes",
            "concatenate_measured_processes",
        )
    },
    f"{_CORE}.backends.mapreduce.compiler": {
        "tffc.backends.mapreduce": ("consolidate_and_extract_local_processing", "parse_tff_to_tf")
    },
    f"{_CORE}.environments.jax_frontend.jax_computation": {
        "tffc.frontend.computation": ("jax_computation",)
    },
    f"{_FRONTEND}.tensorflow_computation": {
        "tffc": ("tf_computation",),
        "tffc.frontend.tensorflow": ("transform_args", "transform_result"),
    },
    f"{_FRONTEND}.tensorflow_computation_context": {
        "tffc.frontend.tensorflow": ("get_session_token",)
    },
    f"{_IMPL}.compiler.intrinsic_defs": {
        "tffc.ir.intrinsics": (
            "FEDERATED_AGGREGATE",
            "FEDERATED_APPLY",
            "FEDERATED_BROADCAST",
            "FEDERATED_EVAL_AT_CLIENTS",
            "FEDERATED_EVAL_AT_SERVER",
            "FEDERATED_MAP",
            "FEDERATED_MAP_ALL_EQUAL",
            "FEDERATED_MAX",
            "FEDERATED_MEAN",
            "FEDERATED_MIN",
            "FEDERATED_SECURE_SELECT",
            "FEDERATED_SECURE_SUM",
            "FEDERATED_SECURE_SUM_BITWIDTH",
            "FEDERATED_SELECT",
            "FEDERATED_SUM",
            "FEDERATED_VALUE_AT_CLIENTS",
            "FEDERATED_VALUE_AT_SERVER",
            "FEDERATED_WEIGHTED_MEAN",
            "FEDERATED_ZIP_AT_CLIENTS",
            "FEDERATED_ZIP_AT_SERVER",
            "GENERIC_DIVIDE",
            "GENERIC_MULTIPLY",
            "GENERIC_PLUS",
            "GENERIC_ZERO",
            "IntrinsicDefinition",
            "SEQUENCE_MAP",
            "SEQUENCE_REDUCE",
            "SEQUENCE_SUM",
            "definition_of",
        )
    },
    f"{_IMPL}.compiler.building_block_factory": {
        "tffc.frontend.building_blocks": ("unique_name_generator",)
    },
    f"{_IMPL}.compiler.transformation_utils": {
        "tffc.frontend.building_blocks": ("transform_postorder", "transform_preorder")
    },
    f"{_IMPL}.compiler.transformations": {"tffc.frontend.building_blocks": ("to_call_dominant",)},
    f"{_IMPL}.computation.computation_wrapper": {"tffc.errors": ("ComputationReturnedNoneError",)},
    f"{_IMPL}.computation.polymorphic_computation": {
        "tffc.frontend.computation": ("PolymorphicComputation",)
    },
    f"{_IMPL}.executors.cardinalities_utils": {
        "tffc.frontend.cardinalities": (
            "InvalidNonAllEqualValueError",
            "infer_cardinalities",
            "merge_cardinalities",
        )
    },
    f"{_IMPL}.computation.computation_base": {"tffc": ("Computation",)},
    f"{_IMPL}.computation.computation_impl": {"tffc.frontend.framework": ("ConcreteComputation",)},
    f"{_IMPL}.computation.computation_serialization": {
        "tffc.frontend.framework": ("deserialize_computation", "serialize_computation")
    },
    f"{_IMPL}.context_stack.context_base": {
        _EXECUTION: ("AsyncContext", "SyncContext"),
        "tffc.errors": ("ContextError",),
    },
    f"{_IMPL}.context_stack.context_stack_base": {_EXECUTION: ("ContextStack",)},
    f"{_IMPL}.context_stack.context_stack_impl": {
        _EXECUTION: ("ContextStackImpl", "context_stack")
    },
    f"{_IMPL}.context_stack.context_stack_test_utils": {
        "tffc.frontend.test": ("with_context", "with_contexts")
    },
    f"{_IMPL}.context_stack.get_context_stack": {_EXECUTION: ("get_context_stack",)},
    f"{_IMPL}.context_stack.runtime_error_context": {
        _EXECUTION: ("RuntimeErrorContext", "create_runtime_error_context")
    },
    f"{_IMPL}.context_stack.set_default_context": {
        _EXECUTION: ("set_default_context", "set_no_default_context")
    },
    f"{_IMPL}.execution_contexts.async_execution_context": {_EXECUTION: ("AsyncExecutionContext",)},
    f"{_IMPL}.execution_contexts.sync_execution_context": {_EXECUTION: ("SyncExecutionContext",)},
    f"{_IMPL}.federated_context.federated_computation": {"tffc": ("federated_computation",)},
    f"{_IMPL}.federated_context.intrinsics": {
        "tffc": (
            "federated_aggregate",
            "federated_broadcast",
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
        )
    },
    f"{_IMPL}.federated_context.value_impl": {"tffc": ("Value", "to_value")},
    f"{_IMPL}.types.computation_types": {
        "tffc.frontend.types": (
            "AbstractType",
            "FederatedType",
            "FunctionType",
            "PlacementType",
            "SequenceType",
            "StructType",
            "StructWithPythonType",
            "TensorType",
            "Type",
            "TypeNotAssignableError",
            "TypeRelation",
            "TypesNotEquivalentError",
            "TypesNotIdenticalError",
            "UnexpectedTypeError",
            "tensorflow_to_type",
            "to_type",
            "type_mismatch_error_message",
        )
    },
    f"{_IMPL}.types.placements": {
        "tffc": ("CLIENTS", "SERVER"),
        "tffc.frontend.type_queries": ("PlacementLiteral", "uri_to_placement_literal"),
    },
    f"{_IMPL}.types.type_analysis": {
        "tffc.frontend.type_checks": (
            "SumIncompatibleError",
            "check_federated_type",
            "check_is_structure_of_floats",
            "check_is_structure_of_integers",
            "check_is_sum_compatible",
            "check_tensorflow_compatible_type",
            "check_type",
            "check_valid_federated_weighted_mean_argument_tuple_type",
            "count_tensors_in_type",
            "is_average_compatible",
            "is_binary_op_with_upcast_compatible_pair",
            "is_generic_op_compatible_type",
            "is_min_max_compatible",
            "is_single_integer_or_matches_structure",
            "is_struct_with_py_container",
            "is_sum_compatible",
            "preorder_types",
        ),
        "tffc.frontend.type_instances": (
            "MismatchedConcreteTypesError",
            "MismatchedStructureError",
            "MissingDefiningUsageError",
            "NotConcreteTypeError",
            "UnassignableConcreteTypesError",
            "check_all_abstract_types_are_bound",
            "check_concrete_instance_of",
        ),
        "tffc.frontend.type_queries": ("contains_federated_types", "contains_tensor_types"),
        "tffc.frontend.types": (
            "contains",
            "contains_only",
            "count",
            "is_structure_of_floats",
            "is_structure_of_integers",
            "is_structure_of_tensors",
            "is_tensorflow_compatible_type",
        ),
    },
    f"{_IMPL}.types.type_serialization": {
        "tffc.frontend.types": ("deserialize_type", "serialize_type")
    },
    f"{_IMPL}.types.type_transformations": {
        "tffc.frontend.type_queries": (
            "strip_placement",
            "transform_type_postorder",
            "visit_preorder",
        )
    },
    f"{_IMPL}.types.type_test_utils": {
        "tffc.frontend.test": (
            "assert_type_assignable_from",
            "assert_types_equivalent",
            "assert_types_identical",
        )
    },
    f"{_IMPL}.types.typed_object": {"tffc": ("TypedObject",)},
    "tensorflow_federated.proto.v0.computation_pb2": {
        "tffc.proto.computation": ("Computation", "Type")
    },
}
"""Modules of TFF's core that tffc replaces: the names in use, by the module of tffc that has
them."""
