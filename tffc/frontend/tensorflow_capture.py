"""TensorFlow computations: a Python function becomes a graph by running on symbolic tensors.

The graph starts with a placeholder for a session token, then has one for each tensor of the
parameter (`arg`, `arg_x`, `arg_None`), a variant one for each sequence, what the function built,
what initialises its variables and tables, and one `Identity` for each tensor of the result.

Operations with side effects are chained in the order in which the function performed them, so a
variable read after an assignment has the assigned value, as in eager TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tffc.errors import ContextError, LanguageValueError
from tffc.execution.containers import build_container, default_container
from tffc.execution.datasets import open_dataset
from tffc.execution.tensorflow import chain_side_effects, load_tensorflow
from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.signature import Argument, function_name
from tffc.frontend.source import definition_span
from tffc.frontend.tensorflow_effects import free_initializers, require_visible_effects
from tffc.frontend.tensorflow_values import (
    Capture,
    Captured,
    captured_tensors,
    check_parameter,
    placeholders,
    tensor_names,
)
from tffc.ir.nodes import Compiled
from tffc.ir.struct import Struct
from tffc.ir.trampoline import Task, run
from tffc.ir.types import (
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
    without_containers,
)
from tffc.ir.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    read_tensorflow,
    write_tensorflow,
)

SESSION_TOKEN = "session_token_tensor"
MAX_INITIALIZER_NAME = 50
UNSET_GRAPH_SEED = 87654321
"""What TensorFlow stores as the graph's seed where only an operation was given one."""


class TensorFlowTrace(CompiledContext):
    """The trace of one TensorFlow computation: its graph and what must be run before it."""

    def __init__(self, tf: Any) -> None:
        super().__init__("tensorflow")
        self.tf = tf
        self.graph: Any = tf.Graph()
        self.session_token: Any = None
        self.variables: list[Any] = []
        self.calls = 0
        self.called_initializers: list[Any] = []

    def create_variable(self, create: Callable[..., Any], **options: Any) -> Any:
        """Records a variable that the function makes; TensorFlow calls this."""
        variable = create(**options)
        self.variables.append(variable)
        return variable

    def add_initializer(self) -> str:
        """Adds the operation that initialises everything, and gives its name; empty for none."""
        tf = self.tf
        initializers: list[Any] = []
        if self.variables:
            names = [variable.op.name for variable in self.variables]
            name = "init_op_for_" + "_".join(names)
            if len(name) > MAX_INITIALIZER_NAME:
                name = f"init_op_for_{len(names)}_variables"
            assignments = [variable.initializer for variable in self.variables]
            initializers.append(self._group(assignments, name))
        initializers += self.graph.get_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS)
        if initializers:
            group = self._group([*initializers, *self.called_initializers], "grouped_initializers")
        elif self.called_initializers:
            group = self._group(self.called_initializers, "subcomputation_init_ops")
        else:
            return ""
        return group.name

    def _group(self, operations: list[Any], name: str) -> Any:
        with self.graph.control_dependencies(operations):
            return self.tf.no_op(name=name)


def capture(
    function: Callable[..., Any],
    parameter: Type | None,
    passed: Sequence[Argument] | None = None,
) -> tuple[Compiled, Type]:
    """Runs `function` on symbolic tensors: the compiled section, and its result type with the
    Python containers that the function returned.

    `passed` says which elements of the parameter the function is given, None that it is given the
    whole.  Exceptions of the function pass unchanged.

    Raises:
      LanguageTypeError: the parameter or the result is not made of tensors, structs and sequences.
      LanguageValueError: the function returned None, or set a seed for the whole graph.
    """
    if parameter is not None:
        check_parameter(parameter)
    trace = TensorFlowTrace(load_tensorflow())
    tf = trace.tf
    with (
        trace.graph.as_default(),
        tf.variable_creator_scope(trace.create_variable),
        chain_side_effects(),
    ):
        trace.session_token = tf.compat.v1.placeholder(tf.string, [], SESSION_TOKEN)
        handed = _handed_over(parameter, passed)
        given = None if handed is None else run(placeholders(tf, handed, "arg"))
        args, kwargs = _call_arguments(given, passed)
        returned = contexts.run_within(trace, function, *args, **kwargs)
        if returned is None:
            raise _returned_none(function)
        initialize_op = trace.add_initializer()
        result = run(Capture(tf).take(returned))
    graph_def = trace.graph.as_graph_def()
    _check_seeds(graph_def)
    if initialize_op:
        free_initializers(graph_def, initialize_op)
    require_visible_effects(
        graph_def, (name.partition(":")[0] for name in tensor_names(result.binding))
    )
    payload = write_tensorflow(
        TensorFlowSection(
            graph_def.SerializeToString(deterministic=True),
            None if given is None else given.binding,
            result.binding,
            initialize_op,
            f"{SESSION_TOKEN}:0",
        )
    )
    signature = without_containers(FunctionType(parameter, result.type))
    return Compiled("tensorflow", payload, signature), result.type


def _returned_none(function: Callable[..., Any]) -> LanguageValueError:
    name = function_name(function) or "the traced callable"
    return LanguageValueError(
        "E450",
        f"{name!r} returned None, which is no value of a program",
        help="return the result; a function without a return statement returns None",
        span=definition_span(function),
    )


def _check_seeds(graph_def: Any) -> None:
    """Refuses what `tf.random.set_seed` leaves behind: every run would draw the same numbers."""
    functions = (function.node_def for function in graph_def.library.function)
    for nodes in (graph_def.node, *functions):
        for node in nodes:
            if "seed" in node.attr and node.attr["seed"].i not in (0, UNSET_GRAPH_SEED):
                raise LanguageValueError(
                    "E451",
                    f"the operation {node.name!r} draws from a seed set for the whole graph",
                    help="in place of tf.random.set_seed, give a seed to the operation, or use "
                    "tf.random.stateless_uniform and its like",
                )


def _handed_over(parameter: Type | None, passed: Sequence[Argument] | None) -> Type | None:
    """The parameter's type, without the outermost container where that is taken apart anyway."""
    if passed is not None and isinstance(parameter, StructType):
        return StructType.of(parameter.names, parameter.types)
    return parameter


def _call_arguments(
    given: Captured | None, passed: Sequence[Argument] | None
) -> tuple[list[Any], dict[str, Any]]:
    """What the function is called with: the elements of the parameter, or the whole."""
    if given is None:
        return [], {}
    if passed is None:
        return [given.value], {}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in passed:
        value, type = given.value[argument.index], given.type.children()[argument.index]
        if argument.keyword is not None:
            kwargs[argument.keyword] = value
        elif isinstance(value, Struct) and isinstance(type, StructType):
            args.append(default_container(type, value))
        else:
            args.append(value)
    return args, kwargs


# Calls.


def import_section(section: Compiled, signature: FunctionType, argument: Any) -> Any:
    """Adds the graph of a TensorFlow section to the one being traced: the section's result, as the
    function being traced sees it.

    Raises:
      TypeNotAssignableError: the argument is not of the section's parameter type.
      LanguageValueError: the graph can not be added here.
    """
    trace = contexts.current()
    assert isinstance(trace, TensorFlowTrace)
    return _Call(trace, section, signature).carry_out(argument)


class _Call:
    """One call of a TensorFlow section inside a trace."""

    def __init__(self, trace: TensorFlowTrace, section: Compiled, signature: FunctionType) -> None:
        self.trace = trace
        self.tf = trace.tf
        self.signature = signature
        self.content = read_tensorflow(section.payload)
        self.index = trace.calls
        trace.calls += 1

    def carry_out(self, argument: Any) -> Any:
        inputs = {} if self.signature.parameter is None else self._inputs(argument)
        operands = dict(inputs)
        if self.content.session_token_tensor_name:
            # Inside of a tf.function the token has to become an input of that function first.
            here = self.tf.compat.v1.get_default_graph() is self.trace.graph
            token = self.trace.session_token
            operands[self.content.session_token_tensor_name] = (
                token if here else self.tf.identity(token)
            )
        names = [name for name in tensor_names(self.content.result) if name not in inputs]
        found = self._import(operands, names)
        tensors = {**inputs, **dict(zip(names, found, strict=True))}
        return run(self._result(self.signature.result, self.content.result, tensors))

    def _inputs(self, argument: Any) -> dict[str, Any]:
        """The tensors of the argument, by the names of those that they replace."""
        assert self.signature.parameter is not None
        assert self.content.parameter is not None
        given = run(Capture(self.tf).take(argument))
        self.signature.parameter.check_assignable_from(given.type)
        return dict(zip(tensor_names(self.content.parameter), captured_tensors(given), strict=True))

    def _import(self, operands: dict[str, Any], names: list[str]) -> list[Any]:
        """Adds the graph and gives its tensors of these names."""
        graph_def = self.tf.compat.v1.GraphDef.FromString(self.content.graph_def)
        _rename_shared(graph_def, f"__tffshared_{self.index}")
        initialize_op = self.content.initialize_op
        if initialize_op and self.tf.compat.v1.get_default_graph() is not self.trace.graph:
            raise LanguageValueError(
                "E455",
                "a computation that makes variables or tables is called inside of a tf.function, "
                "or of a function that a dataset applies",
                help="call it in the body of the computation itself",
            )
        controls = {f"^{name.partition(':')[0]}": tensor for name, tensor in operands.items()}
        found = self.tf.graph_util.import_graph_def(
            graph_def,
            input_map={**operands, **controls},
            return_elements=[*names, initialize_op] if initialize_op else names,
            name="subcomputation",
        )
        if initialize_op:
            self.trace.called_initializers.append(found.pop())
        return found

    def _result(self, type: Type, binding: SectionBinding, tensors: dict[str, Any]) -> Task[Any]:
        """The part of the result that is at `binding`, in the containers of its type."""
        match type, binding:
            case StructType(), StructBinding():
                values: list[Any] = []
                for inner, element in zip(type.types, binding.elements, strict=True):
                    values.append((yield self._result(inner, element, tensors)))
                return build_container(type, values)
            case SequenceType(), SequenceBinding():
                return open_dataset(self.tf, tensors[binding.variant], type)
            case TensorType(), TensorBinding(str() as name):
                return self._checked(type, tensors[name])
        raise LanguageValueError(
            "E456", f"the graph that is called has no value of type `{type}` where it says so"
        )

    def _checked(self, type: TensorType, tensor: Any) -> Any:
        found = TensorType(tensor.dtype, tensor.shape)
        if not type.is_assignable_from(found):
            raise LanguageValueError(
                "E457",
                f"the result of the computation that is called is of type `{type}`, but inside of "
                f"another graph TensorFlow knows it as `{found}` only",
                help="fix its shape with tf.ensure_shape in the computation that is called",
            )
        return tensor


def _rename_shared(graph_def: Any, suffix: str) -> None:
    """Sets the resources of a graph apart from those of other calls of the same section."""
    unnamed = 0
    for node in graph_def.node:
        if "shared_name" not in node.attr:
            continue
        name = node.attr["shared_name"]
        if not name.s:
            name.s = f"empty_{unnamed}".encode()
            unnamed += 1
        name.s += suffix.encode()


def get_session_token() -> Any:
    """The string tensor that names the session, for operations that need one.

    Raises:
      ContextError: no TensorFlow computation is being traced.
    """
    trace = contexts.current()
    if isinstance(trace, TensorFlowTrace):
        return trace.session_token
    raise ContextError(
        "E458",
        "get_session_token can be used in a TensorFlow computation only",
        help="call it in a function decorated with @tff.tensorflow.computation",
    )
