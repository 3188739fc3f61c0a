"""The state of tracing one TensorFlow computation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.eager_semantics import create_variable
from tffc.graphs.resources import ATTRIBUTE, ResourceNode
from tffc.runtime.user_code.exception_hints import MAKE_OUTSIDE
from tffc.runtime.user_code.source import (
    entry_point,
    exception_text,
    is_in_library_of_tff,
    user_span,
)
from tffc.support.errors import ContextError, Span

if TYPE_CHECKING:
    from tffc.runtime.frameworks.tensorflow.load import TensorFlow


MAX_INITIALIZER_NAME = 50

OUTSIDE = ("Attempting to capture an EagerTensor", "must be from the same graph")
"""TensorFlow's messages about an operand from outside the graph."""


INSIDE_OF_FUNCTION = (
    "tf.function only supports singleton tf.Variables",
    "Tensor-typed variable initializers must either be wrapped in an init_scope",
)
"""TensorFlow's messages about a tf.function that would create a variable at every call."""


MAKE_IN_MODEL_FN = (
    "tff.learning calls model_fn anew in each of its computations: make the model, with its "
    "layers, losses and metrics, inside of model_fn"
)


def is_about_outside(error: Exception) -> bool:
    """Return whether TensorFlow refused a tensor, variable, table or dataset from outside the
    graph."""
    return isinstance(error, (RuntimeError, ValueError)) and any(
        words in exception_text(error) for words in OUTSIDE
    )


def made_outside(span: Span | None = None, error: Exception | None = None) -> ContextError:
    """Return the error for a tensor that cannot be used in the graph being built; `error` is that
    of TensorFlow, if it says so."""
    return ContextError(
        "E458",
        "a TensorFlow computation uses a tensor, variable, table or dataset that was made outside "
        "of it",
        help=MAKE_IN_MODEL_FN
        if is_in_library_of_tff(error)
        else "make it inside, or make it an argument; a constant can be a NumPy array",
        span=span,
    )


def made_at_every_call() -> ContextError:
    """Return the error for a variable created in a function under tf.function.

    It has no span: only after it has passed AutoGraph is the line known, and the boundary adds it.
    """
    return ContextError(
        "E830",
        "a variable, or a model that has some, is made inside of a function that @tf.function "
        "decorates, which would make it again at every call",
        help=MAKE_OUTSIDE,
    )


@functools.cache
def _graph_class(tf: TensorFlow) -> Any:
    class TraceGraph(tf.Graph):
        """A graph whose operations refuse tensors of other graphs.

        TensorFlow checks that for most operations, but not for calls of functions: a tensor
        captured from another graph would be looked up here by name, and a wrong one found.
        """

        def _control_dependencies_for_inputs(self, inputs: Any) -> Any:
            # TensorFlow calls this for every operation before it adds it.
            if any(tensor.graph is not self for tensor in inputs):
                raise made_outside(user_span())
            return tf.Graph._control_dependencies_for_inputs(self, inputs)

    return TraceGraph


class TensorFlowTrace(CompiledContext):
    """The trace of one TensorFlow computation: its graph, and what must be initialised before it
    runs."""

    def __init__(self, tf: TensorFlow) -> None:
        super().__init__("tensorflow")
        self.tf = tf
        self.graph: Any = _graph_class(tf)()
        self.session_token: Any = None
        self.variables: list[Any] = []
        self.calls = 0
        self.called_initializers: list[Any] = []
        self._resources: dict[ResourceNode, Any] = {}

    def create_variable(self, create: Callable[..., object], **options: Any) -> Any:
        """Create and record a variable; TensorFlow calls this when the function makes one.

        Raises:
          ContextError: it is made inside a function decorated with tf.function.
        """
        try:
            variable = create_variable(create, **options)
        except ValueError as error:
            if not any(words in exception_text(error) for words in INSIDE_OF_FUNCTION):
                raise
            raise made_at_every_call() from None
        self.variables.append(variable)
        return variable

    def resource(self, resource: ResourceNode) -> Any:
        """Return the tensor of a resource, which is in the graph once and of which functions get an
        argument."""
        if resource not in self._resources:
            with self.graph.as_default(), self.tf.control_dependencies(None):
                placeholder = self.tf.compat.v1.placeholder
                tensor = placeholder(resource.dtype, resource.shape, "resource")
            value = self.tf.compat.v1.AttrValue(s=resource.digest.encode())
            tensor.op._set_attr(ATTRIBUTE, value)
            self._resources[resource] = tensor
        return self._resources[resource]

    def resource_names(self) -> list[str]:
        """Return the names of the nodes of resources."""
        return [tensor.op.name for tensor in self._resources.values()]

    def add_initializer(self) -> str:
        """Add the operation that initialises everything; return its name, empty if there is
        nothing."""
        tf = self.tf
        initializers: list[Any] = []
        if self.variables:
            names = [variable.op.name for variable in self.variables]
            # The names of the operations are part of the graph, so of the bundle's bytes: keep
            # them.
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


@entry_point
def get_session_token() -> Any:
    """Return the string tensor that identifies the session, for operations that need it.

    Raises:
      ContextError: no TensorFlow computation is being traced.
    """
    trace = contexts.current()
    if isinstance(trace, TensorFlowTrace):
        return trace.session_token
    raise ContextError(
        "E457",
        "get_session_token can be used in a TensorFlow computation only",
        help="call it in a function decorated with @tff.tensorflow.computation",
    )
