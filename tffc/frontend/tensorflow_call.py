"""Calls of TensorFlow computations from traced ones, which import their graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tffc.frontend import context as contexts
from tffc.frontend.operands import check_operand
from tffc.frontend.tensorflow_trace import TensorFlowTrace
from tffc.frontend.tensorflow_values import Capture, captured_tensors
from tffc.frontend.type_conversions import fill
from tffc.graphs.functions import name_functions_by_content
from tffc.graphs.resources import ATTRIBUTE, is_resource, resources_among
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, TensorType, Type
from tffc.linking.section import read_section
from tffc.runtime.frameworks.tensorflow.datasets import open_dataset
from tffc.runtime.frameworks.tensorflow.load import Tensor, tensor_name
from tffc.runtime.frameworks.tensorflow.quiet import quiet_if_loud
from tffc.support.errors import LanguageValueError
from tffc.support.trampoline import run

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


def import_section(section: Compiled, signature: FunctionType, argument: Any) -> Any:
    """Add the graph of a TensorFlow section to the one being traced; return the section's result.

    Raises:
      TypeNotAssignableError: the argument is not of the section's parameter type.
      LanguageValueError: the graph cannot be added here.
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
        self.content = read_section(section)
        self.index = trace.calls
        trace.calls += 1

    def carry_out(self, argument: Any) -> Any:
        inputs = {} if self.signature.parameter is None else self._inputs(argument)
        inputs = {**self._resources(), **inputs}
        names = [tensor_name(edge) for edge in self.content.result]
        tensors_by_name = dict(inputs)
        missing = [name for name in dict.fromkeys(names) if name not in inputs]
        tensors_by_name.update(zip(missing, self._import(inputs, missing), strict=True))
        tensors = iter([tensors_by_name[name] for name in names])
        return fill(self.signature.result, lambda type: self._leaf(type, next(tensors)))

    def _inputs(self, argument: Any) -> dict[str, Any]:
        """Return the tensors of the argument, by the names of those that they replace."""
        assert self.signature.parameter is not None
        captured = run(Capture(self.tf).take(argument))
        check_operand(self.signature.parameter, captured.type, "the argument of the call")
        names = (tensor_name(edge) for edge in self.content.parameter)
        return dict(zip(names, captured_tensors(captured), strict=True))

    def _resources(self) -> dict[str, Any]:
        """Return the tensors of the trace that replace those of the section's resources."""
        return {
            f"{name}:0": self.tf.identity(self.trace.resource(resource))
            for name, resource in resources_among(self.content.graph.node)
        }

    def _import(self, inputs: dict[str, Any], names: list[str]) -> list[Any]:
        """Add the graph and return its tensors of these names.

        Tensors of the trace have become those of the function that is being traced, if it is one.
        """
        is_body = self.tf.compat.v1.get_default_graph() is self.trace.graph
        initialize_op = self.content.initialize_op
        if initialize_op and not is_body:
            raise LanguageValueError(
                "E455",
                "a computation that makes variables or tables is called inside of a tf.function, "
                "or of a function that a dataset applies",
                help="call it in the body of the computation itself",
            )
        operands = dict(inputs)
        if self.content.session_token:
            # Inside of a tf.function the token has to become an input of that function first.
            token = self.trace.session_token
            name = tensor_name(self.content.session_token)
            operands[name] = token if is_body else self.tf.identity(token)
        controls = {f"^{name.partition(':')[0]}": tensor for name, tensor in operands.items()}
        graph = _graph_apart(self.content.graph, self.index)
        with quiet_if_loud():
            tensors = self.tf.graph_util.import_graph_def(
                self.tf.compat.v1.GraphDef.FromString(graph),
                input_map={**operands, **controls},
                return_elements=[*names, initialize_op] if initialize_op else names,
                name="subcomputation",
            )
        if initialize_op:
            self.trace.called_initializers.append(tensors.pop())
        return tensors

    def _leaf(self, type: Type, tensor: Tensor) -> Any:
        """Return a tensor or sequence of the result."""
        if isinstance(type, SequenceType):
            return open_dataset(self.tf, tensor, type)
        known = TensorType(tensor.dtype, tensor.shape)
        if not type.is_assignable_from(known):
            raise LanguageValueError(
                "E456",
                f"the result of the computation that is called is of type `{type}`, but inside of "
                f"another graph TensorFlow knows it as `{known}` only",
                help="fix its shape with tf.ensure_shape in the computation that is called",
            )
        return tensor


def _graph_apart(graph: GraphDef, index: int) -> bytes:
    """Return the serialized graph with its functions and resources renamed to be distinct from
    others.

    Functions are named by their content, so that a section called twice adds them once.
    """
    name_functions_by_content(graph, f"call_{index}_")
    for node in filter(is_resource, graph.node):
        # It is only a name now, for which a tensor of the trace stands.
        del node.attr[ATTRIBUTE]
    unnamed = 0
    for node in graph.node:
        if "shared_name" in node.attr:
            shared = node.attr["shared_name"].s or f"empty_{unnamed}".encode()
            unnamed += not node.attr["shared_name"].s
            node.attr["shared_name"].s = shared + f"__tffshared_{index}".encode()
    return graph.SerializeToString()
