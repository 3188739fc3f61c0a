"""The table of replacements for the modules of `federated_language`, today's TFF's language."""

from __future__ import annotations

from tffc.tff.package import Package

LANGUAGE_RELEASE = "0.5.4"
"""The release of federated_language whose names tffc has."""

_LANGUAGE = "federated_language"
_OWN = "tffc.tff.federated_language"
_EXECUTION = "tffc.frontend.execution"
_COMPUTATION = "tffc.frontend.computation"

OWN_FILES = frozenset(
    {
        f"{_LANGUAGE}.common_libs.async_utils",
        f"{_LANGUAGE}.common_libs.py_typecheck",
        f"{_LANGUAGE}.common_libs.retrying",
        f"{_LANGUAGE}.compiler.transformation_utils",
        f"{_LANGUAGE}.computation.computation_wrapper",
        f"{_LANGUAGE}.computation.function_utils",
        f"{_LANGUAGE}.executor.async_execution_context",
        f"{_LANGUAGE}.executor.sync_execution_context",
        f"{_LANGUAGE}.types.type_factory",
    }
)
"""Modules of the language that depend only on others listed here, and run unchanged."""

MIRRORS = {
    f"{_LANGUAGE}.framework": f"{_OWN}.framework",
    f"{_LANGUAGE}.proto.array_pb2": f"{_OWN}.messages",
    f"{_LANGUAGE}.proto.computation_pb2": f"{_OWN}.messages",
    f"{_LANGUAGE}.proto.data_type_pb2": f"{_OWN}.messages",
}
"""Modules of the language that export the public names of a module of tffc."""

STAND_INS: dict[str, tuple[str, ...]] = {
    f"{_LANGUAGE}.common_libs.serializable": (f"{_OWN}.serializable",),
    f"{_LANGUAGE}.common_libs.structure": ("tffc.tff.structure",),
    f"{_LANGUAGE}.common_libs.tracing": (f"{_OWN}.tracing",),
    f"{_LANGUAGE}.compiler.array": (f"{_OWN}.array",),
    f"{_LANGUAGE}.compiler.building_block_analysis": (f"{_OWN}.analysis",),
    f"{_LANGUAGE}.compiler.building_block_factory": (
        "tffc.tff.building_blocks",
        f"{_OWN}.factories",
    ),
    f"{_LANGUAGE}.compiler.building_blocks": ("tffc.tff.building_blocks",),
    f"{_LANGUAGE}.compiler.intrinsic_defs": ("tffc.tff.intrinsic_defs",),
    f"{_LANGUAGE}.compiler.tree_analysis": (f"{_OWN}.analysis",),
    f"{_LANGUAGE}.computation.computation_analysis": (f"{_OWN}.analysis",),
    f"{_LANGUAGE}.computation.computation_base": (f"{_OWN}.computation_base",),
    f"{_LANGUAGE}.computation.computation_impl": (f"{_OWN}.computations",),
    f"{_LANGUAGE}.computation.polymorphic_computation": (f"{_OWN}.computations",),
    f"{_LANGUAGE}.context_stack.context": (_EXECUTION, "tffc.support.errors"),
    f"{_LANGUAGE}.context_stack.context_stack_impl": (_EXECUTION,),
    f"{_LANGUAGE}.context_stack.context_stack_test_utils": ("tffc.tff.test",),
    f"{_LANGUAGE}.context_stack.runtime_error_context": (_EXECUTION,),
    f"{_LANGUAGE}.context_stack.symbol_binding_context": (f"{_OWN}.traces",),
    f"{_LANGUAGE}.executor.cardinalities_utils": ("tffc.tff.cardinalities",),
    f"{_LANGUAGE}.executor.executor_base": (f"{_OWN}.executors",),
    f"{_LANGUAGE}.executor.executor_factory": (f"{_OWN}.executors",),
    f"{_LANGUAGE}.executor.executor_value_base": (f"{_OWN}.executors",),
    f"{_LANGUAGE}.federated_context.federated_computation": (_COMPUTATION,),
    f"{_LANGUAGE}.federated_context.federated_computation_context": (f"{_OWN}.traces",),
    f"{_LANGUAGE}.federated_context.federated_computation_utils": (f"{_OWN}.traces",),
    f"{_LANGUAGE}.federated_context.intrinsics": ("tffc",),
    f"{_LANGUAGE}.federated_context.value_impl": ("tffc",),
    f"{_LANGUAGE}.federated_context.value_utils": (f"{_OWN}.traces",),
    f"{_LANGUAGE}.types.array_shape": (f"{_OWN}.shapes",),
    f"{_LANGUAGE}.types.computation_types": ("tffc.tff.types",),
    f"{_LANGUAGE}.types.dtype_utils": (f"{_OWN}.dtypes",),
    f"{_LANGUAGE}.types.placements": ("tffc.frontend.type_queries", "tffc"),
    f"{_LANGUAGE}.types.type_analysis": (
        "tffc.tff.types",
        "tffc.frontend.type_checks",
        "tffc.tff.type_instances",
        "tffc.frontend.type_queries",
    ),
    f"{_LANGUAGE}.types.type_conversions": (f"{_OWN}.structures",),
    f"{_LANGUAGE}.types.type_transformations": ("tffc.frontend.type_queries",),
    f"{_LANGUAGE}.types.typed_object": ("tffc.frontend.type_queries",),
}
"""Modules of the language that tffc replaces, and the modules of tffc that have their names."""

SHARED = {
    f"{_LANGUAGE}.computation.computation_wrapper": {
        "ComputationReturnedNoneError": "tffc.support.errors"
    }
}
"""Names in such modules that tffc has, so that there is one class of a name."""

FEDERATED_LANGUAGE = Package(
    name=_LANGUAGE,
    mirrored="tffc.tff.federated_language",
    libraries=frozenset({f"{_LANGUAGE}.program"}),
    own_files=OWN_FILES,
    mirrors=MIRRORS,
    stand_ins=STAND_INS,
    shared=SHARED,
)
"""The language: its core in tffc, `program` from its own files."""
