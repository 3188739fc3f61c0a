"""The table of replacements for the modules of TensorFlow Federated's core.

It holds those of all releases: none uses a path for something else than another.  Modules are named
as text, so that none is imported before a program needs it.
"""

from __future__ import annotations

from tffc.tff.package import Package

LIBRARIES = frozenset({"aggregators", "analytics", "learning", "program", "simulation"})
"""TFF's own libraries, whose files run on tffc unchanged."""

_PYTHON = "tensorflow_federated.python"
_CORE = f"{_PYTHON}.core"
_IMPL = f"{_CORE}.impl"
_FRONTEND = f"{_CORE}.environments.tensorflow_frontend"
_BACKEND = f"{_CORE}.environments.tensorflow_backend"
_COMPUTATION = "tffc.frontend.computation"
_EXECUTION = "tffc.frontend.execution"
_TEMPLATES = "tffc.frontend.templates"

OWN_FILES = frozenset(
    {
        f"{_BACKEND}.tensorflow_test_utils",
        f"{_PYTHON}.common_libs.async_utils",
        f"{_PYTHON}.common_libs.deprecation",
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
        f"{_PYTHON}.tensorflow_libs.tensorflow_test_utils",
        "tensorflow_federated.proto.v0.array_pb2",
        "tensorflow_federated.proto.v0.data_type_pb2",
    }
)
"""Modules of TFF's core that depend only on others listed here, and run unchanged."""

MIRRORS = {
    f"{_CORE}.backends.mapreduce": "tffc.tff.backends.mapreduce",
    f"{_CORE}.backends.native": "tffc.tff.backends.native",
    f"{_CORE}.backends.test": "tffc.tff.backends.test",
    f"{_CORE}.environments.jax": "tffc.tff.jax",
    f"{_CORE}.environments.tensorflow": "tffc.tff.tensorflow",
    f"{_CORE}.framework": "tffc.tff.framework",
    f"{_CORE}.templates": "tffc.frontend.templates",
    f"{_CORE}.test": "tffc.tff.test",
    f"{_IMPL}.types": "tffc.tff.types",
    f"{_CORE}.backends.mapreduce.form_utils": "tffc.tff.backends.mapreduce",
    f"{_CORE}.backends.mapreduce.forms": "tffc.tff.backends.mapreduce",
    f"{_CORE}.backends.native.compiler": "tffc.tff.backends.native",
    f"{_CORE}.backends.native.cpp_execution_contexts": "tffc.tff.backends.native",
    f"{_CORE}.backends.native.execution_contexts": "tffc.tff.backends.native",
    f"{_CORE}.backends.test.compiler": "tffc.tff.backends.test",
    f"{_CORE}.backends.test.cpp_execution_contexts": "tffc.tff.backends.test",
    f"{_CORE}.backends.test.execution_contexts": "tffc.tff.backends.test",
    f"{_CORE}.test.static_assert": "tffc.tff.test",
    f"{_IMPL}.compiler.building_blocks": "tffc.tff.framework",
    f"{_IMPL}.executors.data_descriptor": "tffc.tff.data_descriptor",
    f"{_IMPL}.execution_contexts.mergeable_comp_execution_context": "tffc.tff.mergeable",
}
"""Modules of TFF's core that export the public names of a module of tffc; TFF documents most of
them."""

STAND_INS: dict[str, tuple[str, ...]] = {
    f"{_PYTHON}.common_libs.structure": ("tffc.tff.structure",),
    f"{_CORE}.backends.mapreduce.compiler": ("tffc.tff.backends.mapreduce",),
    f"{_CORE}.backends.mapreduce.intrinsics": ("tffc.tff.backends.mapreduce",),
    f"{_CORE}.environments.jax_frontend.jax_computation": (_COMPUTATION,),
    f"{_CORE}.templates.aggregation_process": (f"{_TEMPLATES}.aggregation_process",),
    f"{_CORE}.templates.errors": (f"{_TEMPLATES}.errors",),
    f"{_CORE}.templates.estimation_process": (f"{_TEMPLATES}.estimation_process",),
    f"{_CORE}.templates.iterative_process": (f"{_TEMPLATES}.iterative_process",),
    f"{_CORE}.templates.measured_process": (f"{_TEMPLATES}.measured_process",),
    f"{_BACKEND}.type_conversions": ("tffc.tff.types",),
    f"{_FRONTEND}.tensorflow_types": ("tffc.tff.types",),
    f"{_FRONTEND}.tensorflow_computation": ("tffc", "tffc.tff.tensorflow"),
    f"{_FRONTEND}.tensorflow_computation_context": ("tffc.tff.tensorflow",),
    f"{_IMPL}.compiler.building_block_factory": ("tffc.tff.building_blocks",),
    f"{_IMPL}.compiler.intrinsic_defs": ("tffc.tff.intrinsic_defs",),
    f"{_IMPL}.compiler.transformation_utils": ("tffc.tff.building_blocks",),
    f"{_IMPL}.compiler.transformations": ("tffc.tff.building_blocks",),
    f"{_IMPL}.computation.computation_base": (_COMPUTATION,),
    f"{_IMPL}.computation.computation_impl": ("tffc.tff.framework",),
    f"{_IMPL}.computation.computation_serialization": ("tffc.tff.framework",),
    f"{_IMPL}.computation.computation_wrapper": ("tffc.support.errors",),
    f"{_IMPL}.computation.polymorphic_computation": (_COMPUTATION,),
    f"{_IMPL}.context_stack.context_base": (_EXECUTION,),
    f"{_IMPL}.context_stack.context_stack_base": (_EXECUTION,),
    f"{_IMPL}.context_stack.context_stack_impl": (_EXECUTION,),
    f"{_IMPL}.context_stack.context_stack_test_utils": ("tffc.tff.test",),
    f"{_IMPL}.context_stack.get_context_stack": (_EXECUTION,),
    f"{_IMPL}.context_stack.runtime_error_context": (_EXECUTION,),
    f"{_IMPL}.context_stack.set_default_context": (_EXECUTION,),
    f"{_IMPL}.execution_contexts.async_execution_context": (_EXECUTION,),
    f"{_IMPL}.execution_contexts.sync_execution_context": (_EXECUTION,),
    f"{_IMPL}.executors.cardinalities_utils": ("tffc.tff.cardinalities",),
    f"{_IMPL}.federated_context.federated_computation": (_COMPUTATION,),
    f"{_IMPL}.federated_context.intrinsics": ("tffc",),
    f"{_IMPL}.federated_context.value_impl": ("tffc",),
    f"{_IMPL}.types.computation_types": ("tffc.tff.types",),
    f"{_IMPL}.types.placements": ("tffc.frontend.type_queries", "tffc"),
    f"{_IMPL}.types.type_analysis": (
        "tffc.tff.types",
        "tffc.frontend.type_checks",
        "tffc.tff.type_instances",
        "tffc.frontend.type_queries",
    ),
    f"{_IMPL}.types.type_serialization": ("tffc.tff.types",),
    f"{_IMPL}.types.type_test_utils": ("tffc.tff.test",),
    f"{_IMPL}.types.type_transformations": ("tffc.frontend.type_queries",),
    f"{_IMPL}.types.typed_object": ("tffc.frontend.type_queries",),
    "tensorflow_federated.proto.v0.computation_pb2": ("tffc.graphs.proto.computation",),
}
"""Modules of TFF's core that tffc replaces, and the modules of tffc that have their names."""

TENSORFLOW_FEDERATED = Package(
    name="tensorflow_federated",
    mirrored="tffc",
    libraries=frozenset(f"{_PYTHON}.{library}" for library in LIBRARIES),
    own_files=OWN_FILES,
    mirrors=MIRRORS,
    stand_ins=STAND_INS,
    shared={},
)
"""TFF: the core in tffc, the libraries from its own files."""
