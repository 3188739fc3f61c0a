"""Tracing of TensorFlow computations: running a Python function on symbolic tensors gives a graph.

The graph has a placeholder for a session token, one for each tensor of the parameter (`arg`,
`arg_x`, `arg_None`), a variant one for each sequence, the operations of the function, the
initialisation of variables and tables, and one `Identity` for each tensor of the result.

The code has the semantics of eager TensorFlow.  Operations with side effects run in the order in
which the function performed them: a variable read after an assignment has the assigned value, and
checks run although no result needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tffc.frontend import context as contexts
from tffc.frontend.definitions import result_span
from tffc.frontend.eager_semantics import eager_semantics
from tffc.frontend.python_functions import keep_python_functions, noting_lines
from tffc.frontend.signature import call_arguments, function_name, passed_type
from tffc.frontend.tensorflow_effects import (
    free_initializers,
    release_from_placeholders,
    require_visible_effects,
)
from tffc.frontend.tensorflow_trace import TensorFlowTrace, is_about_outside, made_outside
from tffc.frontend.tensorflow_values import (
    Capture,
    Captured,
    check_parameter,
    placeholders,
    tensor_names,
)
from tffc.graphs.functions import name_functions_by_content
from tffc.language.nodes import Compiled
from tffc.language.type_parts import without_containers
from tffc.language.types import FunctionType, Type
from tffc.language.wire import SectionBinding, TensorFlowSection, write_tensorflow
from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.runtime.user_code.source import raised_span
from tffc.support.errors import ComputationReturnedNoneError, LanguageValueError, TffcError
from tffc.support.trampoline import run

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


SESSION_TOKEN = "session_token_tensor"
UNSET_GRAPH_SEED = 87654321
"""The graph seed that TensorFlow stores if only an operation was given a seed."""


def capture(
    function: Callable[..., object],
    parameter: Type | None,
    splatted: bool = False,
) -> tuple[Compiled, Type]:
    """Trace `function` on symbolic tensors; return the compiled section and the result's type.

    The type names the Python containers that the function returned.  A parameter that is
    `splatted` is given as its elements.  Exceptions of the function pass through unchanged.

    Raises:
      LanguageTypeError: the parameter or the result is not made of tensors, structs and sequences.
      LanguageValueError: the function returned None, set a seed for the whole graph, or calls a
        function of Python that TensorFlow does not have.
      ContextError: it uses a tensor or variable that was made outside of it.
    """
    if parameter is not None:
        check_parameter(parameter)
    trace = TensorFlowTrace(load_tensorflow())
    tf = trace.tf
    with (
        trace.graph.as_default(),
        tf.variable_creator_scope(trace.create_variable),
        eager_semantics(),
        noting_lines,
    ):
        trace.session_token = tf.compat.v1.placeholder(tf.string, [], SESSION_TOKEN)
        type = passed_type(parameter, splatted)
        symbolic = None if type is None else run(placeholders(tf, type, "arg"))
        args, kwargs = call_arguments(type, None if symbolic is None else symbolic.value, splatted)
        returned = _run(trace, function, args, kwargs)
        if returned is None:
            raise _returned_none(function)
        initialize_op = trace.add_initializer()
        result = _taken(tf, function, returned)
    graph_def = trace.graph.as_graph_def()
    _check_seeds(graph_def)
    keep_python_functions(graph_def)
    if initialize_op:
        free_initializers(graph_def, initialize_op)
    own = [*([] if symbolic is None else _nodes_of(symbolic.binding)), SESSION_TOKEN]
    own += trace.resource_names()
    stuck = release_from_placeholders(graph_def, frozenset(own))
    require_visible_effects(graph_def, _nodes_of(result.binding), stuck)
    name_functions_by_content(graph_def)
    payload = write_tensorflow(
        TensorFlowSection(
            graph_def.SerializeToString(deterministic=True),
            None if symbolic is None else symbolic.binding,
            result.binding,
            initialize_op,
            f"{SESSION_TOKEN}:0",
        )
    )
    signature = without_containers(FunctionType(parameter, result.type))
    return Compiled("tensorflow", payload, signature), result.type


def _run(
    trace: TensorFlowTrace, function: Callable[..., object], args: list[Any], kwargs: dict[str, Any]
) -> Any:
    try:
        return contexts.run_within(trace, function, *args, **kwargs)
    except Exception as error:
        # AutoGraph replaces an error of ours that passes through it with its own.
        replaced = error.__context__
        if type(error).__module__.startswith("tensorflow.") and isinstance(replaced, TffcError):
            raise replaced from None
        if is_about_outside(error):
            refused = made_outside(raised_span(error), error)
            raise refused.with_traceback(error.__traceback__) from None
        raise


def _returned_none(function: Callable[..., object]) -> ComputationReturnedNoneError:
    name = function_name(function) or "the traced callable"
    return ComputationReturnedNoneError(
        "E415",
        f"{name!r} returned None, which is not a value of a program",
        help="return the result; a function without a return statement returns None",
        span=result_span(function),
    )


def _taken(tf: TensorFlow, function: Callable[..., object], returned: Any) -> Captured:
    try:
        return run(Capture(tf).take(returned))
    except TffcError as error:
        error.span = error.span or result_span(function)
        raise
    except (RuntimeError, ValueError) as error:
        if is_about_outside(error):
            raise made_outside(result_span(function)) from None
        raise


def _check_seeds(graph_def: GraphDef) -> None:
    """Refuse the traces of `tf.random.set_seed`: every run would draw the same numbers.

    As in TFF, functions may have them, such as those in which Keras makes its layers.
    """
    for node in graph_def.node:
        if "seed" in node.attr and node.attr["seed"].i not in (0, UNSET_GRAPH_SEED):
            raise LanguageValueError(
                "E451",
                f"the operation {node.name!r} draws from a seed set for the whole graph",
                help="leave out tf.random.set_seed: an operation or layer with a seed of its own, "
                "as in tf.random.uniform([], seed=4) or Dropout(0.5, seed=4), needs no other",
            )


def _nodes_of(binding: SectionBinding) -> list[str]:
    """Return the nodes that compute the tensors of a binding."""
    return [name.partition(":")[0] for name in tensor_names(binding)]
