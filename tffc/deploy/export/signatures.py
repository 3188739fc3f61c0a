"""Linking all components of a form into one graph with a signature for each.

Calls of a signature are independent.  Tables are new in each call.  Variables are not: TensorFlow
in Python renames nodes when it loads a model, including the shared names by which a new variable
could be requested.  So variables are initialised within each call, and concurrent calls of a
component with variables wait for one another.

The name of an input is `arg` and its path by the names or positions of elements, such as
`arg_0_weights`; that of an output is `result` and its path.  With bare names, the path alone is the
name if it begins with a name.  The elements of a sequence are stacked along the first axis.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tffc.backends.forms.kinds import FORMS
from tffc.graphs.node import GraphNode, copied_message
from tffc.graphs.proto import AttrValue, FunctionDef
from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.graphs.resources import ResourceNode
from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled, Node
from tffc.language.types import FunctionType, SequenceType, TensorType, Type
from tffc.language.values.resources import STORE
from tffc.language.wire.resources import resource_type
from tffc.linking.attributes import shapes_attribute, type_attribute, types_attribute
from tffc.linking.builder import GraphBuilder, new_rest
from tffc.linking.operand import (
    Operand,
    Tensor,
    from_leaves,
    in_component_order,
    leaf_types,
    tensors,
)
from tffc.runtime.data.arrays import ArrayLayout
from tffc.support.errors import ExportError

ARGUMENT, RESULT = "arg", "result"
NOT_IN_PYTHON = re.compile(r"\W", re.ASCII)

NOTHING = "it has no result"
"""The only reason to leave out a component that is not an error; see `missing`."""

MOST_INLINED = MAX_MESSAGE // 2
"""The most bytes of resources in a graph, which is one message with all else that it has."""

ALL = 2**31
"""The batch size that puts all elements of a sequence in one batch."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The input and output tensors of a component, by name."""

    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]


@dataclasses.dataclass(frozen=True, slots=True)
class Signatures:
    """A serialized GraphDef, its signatures, and the reasons why components were left out."""

    graph: bytes
    signatures: Mapping[str, Signature]
    left_out: Mapping[str, str]


def missing(left_out: Mapping[str, str]) -> dict[str, str]:
    """Return the components with results that were left out, and the reasons."""
    return {name: reason for name, reason in left_out.items() if reason != NOTHING}


def link_signatures(
    components: Mapping[str, Node], *, locks: bool = True, bare_names: bool = False
) -> Signatures:
    """Return a graph with a signature for each component that is a TensorFlow graph and has
    results.

    Without `locks`, callers must make one call at a time.

    Raises:
      ExportError: there is no such component, or one keeps state that calls would share.
      GraphError: a component is malformed.
    """
    builder = _Builder(locks=locks, bare_names=bare_names)
    left_out: dict[str, str] = {}
    for name, component in components.items():
        reason = _reason_against(component)
        if reason is None:
            assert isinstance(component, Compiled)
            builder.add_signature(name, component)
        else:
            left_out[name] = reason
    if not builder.signatures:
        forms = (name for name, kind in FORMS.items() if kind.load().component_class is Compiled)
        raise ExportError(
            "E870",
            "no component of the bundle is a TensorFlow graph with a result",
            notes=tuple(f"{name}: {reason}" for name, reason in left_out.items()),
            help=f"compile the round to the form {' or '.join(forms)}",
        )
    return Signatures(builder.graph(), builder.signatures, left_out)


def _reason_against(component: Node) -> str | None:
    """Return the reason why a component cannot have a signature, or None if it can."""
    if not isinstance(component, Compiled):
        return "it is not a graph but a program of the language"
    if component.kind != "tensorflow":
        return f"it is compiled for {component.kind}, not for TensorFlow"
    assert isinstance(component.type, FunctionType)
    return None if leaf_types(component.type.result) else NOTHING


class _Builder(GraphBuilder):
    """The graph under construction."""

    is_self_contained = True

    def __init__(self, *, locks: bool, bare_names: bool) -> None:
        super().__init__()
        self._locks = locks
        self._bare_names = bare_names
        self._inlined = 0
        self.signatures: dict[str, Signature] = {}

    def session_token(self) -> Tensor:
        """Return a constant: there are no sessions to distinguish."""
        return _tensor(self.constant(Array(DType.STRING, (), (b"",))))

    def resource(self, resource: ResourceNode) -> Tensor:
        """Return a constant: a model has all that it computes with.

        Raises:
          ExportError: the graph gets too large for a file.
        """
        if resource not in self._resources:
            self._inlined += resource.size
            if self._inlined > MOST_INLINED:
                raise ExportError(
                    "E343",
                    f"the resources of the bundle have {self._inlined} bytes, and the file of a "
                    f"model holds at most {MOST_INLINED}",
                    help="export a bundle of a smaller model, or run the bundle itself",
                )
            content = STORE.content(resource.digest).tobytes()
            kind = resource_type(resource)
            array = Array(kind.element_type, resource.shape, content)
            self._resources[resource] = _tensor(self.constant(array))
        return self._resources[resource]

    def add_signature(self, name: str, section: Compiled) -> None:
        """Add the signature of a component.

        Raises:
          ExportError: it has state that cannot be new in each call.
        """
        assert isinstance(section.type, FunctionType)
        inputs: dict[str, Tensor] = {}
        argument = None
        if section.type.parameter is not None:
            leaves = leaf_types(section.type.parameter)
            names = _names(ARGUMENT, section.type.parameter, self._bare_names)

            def new(kind: TensorType) -> Tensor:
                key = next(names)
                inputs[key] = self._placeholder(f"{name}/{key}", kind)
                return inputs[key]

            argument = from_leaves(section.type.parameter, (self._taken(x, new) for x in leaves))
        result = self.call(section, argument)
        names = _names(RESULT, section.type.result, self._bare_names)
        stacked = (output for tensor in tensors(result) for output in self._stacked(tensor))
        outputs = {
            key: self.add_typed("Identity", [tensor])
            for key, tensor in zip(names, stacked, strict=True)
        }
        last_call = len(self._initializers) - 1
        copied = [node for node in self._nodes.values() if node.call == last_call]
        self._check_state(name, section, copied)
        variables = [node for node in copied if node.op == "VarHandleOp"]
        for node in variables:
            node.rest = copied_message(node.rest)
            node.rest.attr["shared_name"].s = node.name.encode()
        if variables and self._locks:
            outputs = self._one_call_at_a_time(name, variables, outputs)
        self.signatures[name] = Signature(inputs, outputs)

    def _check_state(self, name: str, section: Compiled, copied: Sequence[GraphNode]) -> None:
        in_functions = (
            node.op
            for function in self._called(copied)
            for node in FunctionDef.FromString(function.content).node_def
        )
        template = self.template(section)
        if template.has_named_state or "VarHandleOp" in in_functions:
            raise ExportError(
                "E745",
                f"the component {name} keeps state that its calls would share",
                notes=(
                    "variables and tables are new in each call, except those created in functions "
                    "and those that several operations name",
                ),
                help="create variables and tables outside functions, and use no other state",
            )

    def _one_call_at_a_time(
        self, name: str, variables: Sequence[GraphNode], outputs: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the outputs of a component whose variables are guarded by a lock.

        The lock is taken before the variables are used, and released when all outputs are computed.
        """
        mutex = self._node("MutexV2", [], {"shared_name": AttrValue(s=f"{name}/lock".encode())})
        lock = self._node("MutexLock", [mutex], {})
        for node in variables:
            node.inputs.append(f"^{lock}")
        done = [f"^{tensor.node}" for tensor in outputs.values()]
        given_back = self._node("ConsumeMutexLock", [lock, *done], {})
        final: dict[str, Tensor] = {}
        for key, tensor in outputs.items():
            kind = {"T": type_attribute(tensor.type)}
            node = self._node("Identity", [tensor.edge, f"^{given_back}"], kind)
            final[key] = Tensor(node, tensor.type)
        return final

    def _node(self, op: str, inputs: list[str], attributes: Mapping[str, AttrValue]) -> str:
        """Add a node and return its name."""
        return self._new(op, new_rest(op, attributes), inputs)

    def graph(self) -> bytes:
        """Return the serialized GraphDef: everything that the outputs need, and all inputs."""
        signatures = self.signatures.values()
        self._parameter = [
            tensor for signature in signatures for tensor in signature.inputs.values()
        ]
        outputs = [tensor.node for signature in signatures for tensor in signature.outputs.values()]
        return self._graph(self._needed(outputs))

    def _taken(
        self, leaf: TensorType | SequenceType, new: Callable[[TensorType], Tensor]
    ) -> Tensor:
        """Return a leaf of the argument, made of new inputs: a tensor, or a dataset of the rows of
        stacked tensors."""
        if isinstance(leaf, TensorType):
            return new(leaf)
        kinds = leaf_types(leaf.element)
        stacks = [new(_stack(kind)) for kind in kinds if isinstance(kind, TensorType)]
        ordered = in_component_order(leaf.element, kinds)
        attributes = {
            "Toutput_types": types_attribute(ordered),
            "output_shapes": shapes_attribute(ordered),
        }
        rows = in_component_order(leaf.element, stacks)
        return self.add("TensorSliceDataset", rows, attributes, [leaf])[0]

    def _stacked(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of a part of the result; a dataset's elements are stacked.

        All elements together are one batch, but an empty dataset has no batch.  So an empty batch
        is appended, and the first batch is taken.
        """
        if not isinstance(tensor.type, SequenceType):
            return [tensor]
        element = tensor.type.element
        kinds = [_stack(kind) for kind in leaf_types(element) if isinstance(kind, TensorType)]
        ordered = in_component_order(element, kinds)
        attributes = {
            "output_types": types_attribute(ordered),
            "output_shapes": shapes_attribute(ordered),
        }
        variant = [tensor.type]
        size, drop, one = self._number(ALL), self._flag(False), self._number(1)
        whole = self.add("BatchDatasetV2", [tensor, size, drop], attributes, variant)[0]
        empty = self.add(
            "TensorDataset",
            [self._empty(kind) for kind in ordered],
            {
                "Toutput_types": attributes["output_types"],
                "output_shapes": shapes_attribute(
                    TensorType(kind.dtype, _emptied(kind)) for kind in ordered
                ),
            },
            variant,
        )[0]
        both = self.add("ConcatenateDataset", [whole, empty], attributes, variant)[0]
        first = self.add("TakeDataset", [both, one], attributes, variant)[0]
        elements = self.add("DatasetToSingleElement", [first], attributes, ordered)
        positions = in_component_order(element, list(range(len(kinds))))
        return [elements[positions.index(position)] for position in range(len(kinds))]

    def _number(self, number: int) -> Tensor:
        return _tensor(self.constant(Array(DType.INT64, (), number.to_bytes(8, "little"))))

    def _flag(self, flag: bool) -> Tensor:
        return _tensor(self.constant(Array(DType.BOOL, (), bytes([flag]))))

    def _empty(self, kind: TensorType) -> Tensor:
        content = () if kind.element_type is DType.STRING else b""
        return _tensor(self.constant(Array(kind.element_type, _emptied(kind), content)))


def _names(root: str, type: Type, bare: bool) -> Iterator[str]:
    """Yield a name for each tensor of a type: the root and the names on the path to it.

    If two tensors would get the same name, all paths use positions.
    """
    element = type.element if isinstance(type, SequenceType) else type
    if isinstance(element, TensorType):
        return iter([root])
    fields = ArrayLayout(type).fields
    names = [_joined(root, field.name, bare) for field in fields]
    if len(set(names)) < len(names):
        names = [_joined(root, field.position, bare) for field in fields]
    return iter(names)


def _joined(root: str, path: str, bare: bool) -> str:
    name = NOT_IN_PYTHON.sub("_", path)
    return name if bare and name.isidentifier() else f"{root}_{name}"


def _stack(kind: TensorType) -> TensorType:
    """Return the type of a stack of tensors."""
    return TensorType(kind.element_type, None if kind.shape is None else (None, *kind.shape))


def _emptied(kind: TensorType) -> tuple[int, ...]:
    """Return the shape of an empty stack."""
    inner = () if kind.shape is None else (size or 0 for size in kind.shape[1:])
    return (0, *inner)


def _tensor(operand: Operand) -> Tensor:
    assert isinstance(operand, Tensor)
    return operand
