"""One graph in which each component of a form has placeholders and results of its own.

A call of a signature runs its component from fresh.  Tables are new in each call.  Variables are
found by name, for TensorFlow in Python renames what it loads, and with it the name that asks for a
new one; so they are initialised within each call, and calls of one component that has some wait for
one another.

An input is called `arg` and the path to it by the names or positions of elements, as in
`arg_0_weights`; an output `result` and the path.  With bare names, the path alone is the name
where it begins with a name.  The elements of a sequence lie along the first axis of its tensors.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tffc.backends.forms.kinds import FORMS, load_form
from tffc.data.arrays import ArrayLayout
from tffc.errors import ExportError
from tffc.graphdef.node import GraphNode, copied_message
from tffc.ir.array import Array
from tffc.ir.dtypes import DType
from tffc.ir.nodes import Compiled, Node
from tffc.ir.types import FunctionType, SequenceType, TensorType, Type
from tffc.linking.attributes import shapes_attribute, type_attribute, types_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, from_leaves, leaf_types, tensors
from tffc.linking.sequences import in_component_order
from tffc.proto import AttrValue, FunctionDef

ARGUMENT, RESULT = "arg", "result"
NOT_IN_PYTHON = re.compile(r"\W", re.ASCII)

NOTHING = "it gives nothing"
"""Why a component has no signature that nobody misses."""

ALL = 2**31
"""How many elements of a sequence one result holds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The tensors that a component takes and gives, by name."""

    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]


@dataclasses.dataclass(frozen=True, slots=True)
class Signatures:
    """A serialized GraphDef and the signatures in it; why each other component has none."""

    graph: bytes
    signatures: Mapping[str, Signature]
    left_out: Mapping[str, str]


def missing(left_out: Mapping[str, str]) -> dict[str, str]:
    """Return the reasons of those components left out that have something to give."""
    return {name: reason for name, reason in left_out.items() if reason != NOTHING}


def link_signatures(
    components: Mapping[str, Node], *, locks: bool = True, bare_names: bool = False
) -> Signatures:
    """Return a graph with a signature for each component that is a TensorFlow graph and gives
    something.

    Without `locks`, there is to be one call at a time.

    Raises:
      ExportError: no component is, or one keeps state that calls would share.
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
        raise ExportError(
            "E950",
            "no component of the bundle is a TensorFlow graph that gives something",
            notes=tuple(f"{name}: {reason}" for name, reason in left_out.items()),
            help=f"compile the round to the form {' or '.join(_forms_of_graphs())}",
        )
    return Signatures(builder.graph(), builder.signatures, left_out)


def _forms_of_graphs() -> list[str]:
    return [name for name in FORMS if load_form(name).component_class is Compiled]


def _reason_against(component: Node) -> str | None:
    """Return why a component has no signature; None if it can have one."""
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
        self.signatures: dict[str, Signature] = {}

    def session_token(self) -> Tensor:
        """Return a constant: calls have no session to be told apart by."""
        token = self.constant(Array(DType.STRING, (), (b"",)))
        assert isinstance(token, Tensor)
        return token

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
        given = (output for tensor in tensors(result) for output in self._stacked(tensor))
        outputs = {
            key: self.add_typed("Identity", [tensor])
            for key, tensor in zip(names, given, strict=True)
        }
        copied = [node for node in self._nodes.values() if node.call == self._calls - 1]
        self._check_state(name, section, copied)
        variables = [node for node in copied if node.op == "VarHandleOp"]
        for node in variables:
            _give_name(node)
        if variables and self._locks:
            outputs = self._one_call_at_a_time(name, variables, outputs)
        self.signatures[name] = Signature(inputs, outputs)

    @property
    def _calls(self) -> int:
        return len(self._initializers)

    def _check_state(self, name: str, section: Compiled, copied: Sequence[GraphNode]) -> None:
        in_functions = (
            node.op
            for function in self._called(copied)
            for node in FunctionDef.FromString(function.content).node_def
        )
        template = self.template(section, self_contained=True)
        if template.has_named_state or "VarHandleOp" in in_functions:
            raise ExportError(
                "E951",
                f"the component {name} keeps state that one call would leave to the next",
                notes=(
                    "variables and tables are new in each call, but for those in functions and "
                    "those that several operations name",
                ),
                help="make variables and tables outside of functions, and use nothing else that "
                "keeps state",
            )

    def _one_call_at_a_time(
        self, name: str, variables: Sequence[GraphNode], outputs: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the outputs of a component whose variables wait for a lock, which is held until
        all outputs are there."""
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

    def _node(self, op: str, inputs: list[str], attributes: Mapping[str, Any]) -> str:
        """Return the name of a new node."""
        return self._new(op, op, inputs, attributes)

    def graph(self) -> bytes:
        """Return the serialized GraphDef: what the outputs need, and all inputs."""
        signatures = self.signatures.values()
        self._parameter = [tensor for each in signatures for tensor in each.inputs.values()]
        outputs = [tensor.node for each in signatures for tensor in each.outputs.values()]
        return self._graph(self._needed(outputs))

    def _taken(
        self, leaf: TensorType | SequenceType, new: Callable[[TensorType], Tensor]
    ) -> Tensor:
        """Return a part of the argument, of new inputs: a tensor, or a dataset of the rows of
        stacks."""
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
        """Return a tensor of the result; of a dataset, its elements in a stack for each of their
        tensors.

        Elements that are batched together come as one element, but none come as no batch: so an
        empty batch follows, and the first of the two is taken.
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
        made = self.add("DatasetToSingleElement", [first], attributes, ordered)
        positions = in_component_order(element, list(range(len(kinds))))
        return [made[positions.index(position)] for position in range(len(kinds))]

    def _number(self, number: int) -> Tensor:
        return _tensor(self.constant(Array(DType.INT64, (), number.to_bytes(8, "little"))))

    def _flag(self, flag: bool) -> Tensor:
        return _tensor(self.constant(Array(DType.BOOL, (), bytes([flag]))))

    def _empty(self, kind: TensorType) -> Tensor:
        content = () if kind.element_type is DType.STRING else b""
        return _tensor(self.constant(Array(kind.element_type, _emptied(kind), content)))


def _give_name(variable: GraphNode) -> None:
    """Name a variable after its node."""
    variable.rest = copied_message(variable.rest)
    variable.rest.attr["shared_name"].s = variable.name.encode()


def _names(root: str, type: Type, bare: bool) -> Iterator[str]:
    """Return a name for each tensor of a type: the root, and the path to the tensor by names.

    Where that would give two tensors one name, all paths are by positions.
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
