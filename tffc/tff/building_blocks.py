"""The building blocks of programs under the names of `tff.framework`.

They are the nodes of `tffc.language`, which this module gives TFF's names for their parts beside
their own.  A class here constructs nodes of its kind, and `isinstance` accepts them as its
instances.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeAlias, cast

from google.protobuf import any_pb2
from google.protobuf.message import Message

from tffc.frontend.hints import described
from tffc.frontend.type_analysis import check_is_type
from tffc.graphs.proto.computation import Computation
from tffc.language import nodes, wire
from tffc.language.array import to_array
from tffc.language.containers import struct as containers
from tffc.language.notation.structural_text import structural
from tffc.language.traverse import walk
from tffc.language.types import TensorType, Type, to_type
from tffc.passes.call_dominant import call_dominant
from tffc.passes.desugar_means import desugar_means
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.trampoline import Task, run
from tffc.tff.intrinsic_defs import IntrinsicDef, uri_to_intrinsic_def

Rewriting: TypeAlias = Callable[[nodes.Node], tuple[nodes.Node, bool]]
"""Transforms a node: returns its replacement, and whether that is a different node."""


class BlockKind(type):
    """The metaclass of the building block classes."""

    node: type[nodes.NodeBase]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.node)


def _kind(
    name: str, node: type[nodes.NodeBase], make: Callable[..., nodes.NodeBase], doc: str
) -> BlockKind:
    def new(_: type, *args: object, **kwargs: object) -> nodes.NodeBase:
        return make(*args, **kwargs)

    body: dict[str, object] = {"node": node, "__new__": new, "__doc__": doc, "__module__": __name__}
    body["from_proto"] = staticmethod(_reader(node))
    return BlockKind(name, (), body)


def _reader(kind: type[nodes.NodeBase]) -> Callable[[Message], nodes.Node]:
    @entry_point
    def read(computation_pb: Message) -> nodes.Node:
        node = _from_message(computation_pb)
        if not isinstance(node, kind):
            raise LanguageValueError(
                "E714",
                f"expected a message `Computation` of a {kind.__name__}, found one of `{node}`",
            )
        return node

    read.__doc__ = "Return the building block in a message `Computation`."
    return read


def _from_message(message: object) -> nodes.Node:
    """Return the node held by a `Computation` message.

    Raises:
      LanguageTypeError: it is no message.
    """
    if not isinstance(message, Message):
        raise LanguageTypeError(
            "E198",
            f"a building block is read from a message `Computation`, not from {described(message)}",
            help="give what to_proto of a building block returns",
        )
    return wire.from_bytes(message.SerializeToString())


@entry_point
def _reference(name: object, type_spec: object, context: object = None) -> nodes.Reference:
    if not isinstance(name, str):
        raise LanguageTypeError(
            "E126",
            f"a reference is of a name, not of {described(name)}",
            help="give the name as a string",
        )
    return nodes.Reference(name, to_type(type_spec), None if context is None else str(context))


@entry_point
def _selection(
    source: nodes.Node, name: str | None = None, index: int | None = None
) -> nodes.Selection:
    if (name is None) == (index is None):
        raise LanguageValueError(
            "E126",
            "an element is selected by its name or by its position, but "
            + ("neither is given" if name is None else "both are given"),
            help="give either name= or index=",
        )
    if index is not None:
        return nodes.Selection(source, index)
    assert name is not None
    return nodes.Selection.by_name(source, name)


Element: TypeAlias = "nodes.Node | tuple[str | None, nodes.Node]"
"""An element of a struct, perhaps with its name."""


@entry_point
def _struct(elements: Iterable[Element], container_type: type | None = None) -> nodes.StructNode:
    pairs: list[tuple[str | None, nodes.Node]] = [
        element if isinstance(element, tuple) else (None, element) for element in elements
    ]
    return nodes.StructNode.from_pairs(pairs, container_type)


@entry_point
def _lambda(name: str | None, parameter_type: object, result: nodes.Node) -> nodes.Lambda:
    return nodes.Lambda(name, None if parameter_type is None else to_type(parameter_type), result)


@entry_point
def _block(local_symbols: Iterable[tuple[str, nodes.Node]], result: nodes.Node) -> nodes.Block:
    return nodes.Block(tuple(nodes.Binding(*pair) for pair in local_symbols), result)


@entry_point
def _intrinsic(uri: str, type_signature: Type) -> nodes.Intrinsic:
    return nodes.Intrinsic(uri, check_is_type(type_signature))


@entry_point
def _data(content: Any, type_spec: object) -> nodes.Data:
    return nodes.Data(content.type_url, content.value, to_type(type_spec))


@entry_point
def _literal(value: object, type_signature: TensorType) -> nodes.Literal:
    return nodes.Literal(to_array(value, type_signature.element_type), type_signature)


@entry_point
def _compiled(
    proto: Message, name: str | None = None, type_signature: Type | None = None
) -> nodes.Node:
    """Return the section in a message; a message of another kind stays unopened."""
    node = _from_message(proto)
    kind = proto.WhichOneof("computation")
    assert kind is not None
    payload = getattr(proto, kind).SerializeToString(deterministic=True)
    return nodes.Compiled(kind, payload, type_signature or node.type, name)


@entry_point
def _no_block(*_: object, **__: object) -> NoReturn:
    raise LanguageTypeError(
        "E714",
        "a building block is made by the class of its kind",
        help="call the class of a kind, such as tff.framework.Reference",
    )


Block = _kind("Block", nodes.Block, _block, "Bindings, and a result that uses them.")
Call = _kind("Call", nodes.Call, entry_point(nodes.Call), "A function applied to its argument.")
CompiledComputation = _kind(
    "CompiledComputation",
    nodes.Compiled,
    _compiled,
    "A section of TensorFlow or XLA, or a message that is opened when the program is used.",
)
ComputationBuildingBlock = _kind(
    "ComputationBuildingBlock", nodes.NodeBase, _no_block, "Any node of a program."
)
Data = _kind("Data", nodes.Data, _data, "A value that the executing system finds by a message.")
Intrinsic = _kind("Intrinsic", nodes.Intrinsic, _intrinsic, "An operator of the language.")
Lambda = _kind("Lambda", nodes.Lambda, _lambda, "A function of at most one parameter.")
Literal = _kind("Literal", nodes.Literal, _literal, "A constant tensor.")
Placement = _kind(
    "Placement", nodes.PlacementNode, entry_point(nodes.PlacementNode), "A placement as a value."
)
Reference = _kind("Reference", nodes.Reference, _reference, "What a name is bound to.")
Selection = _kind("Selection", nodes.Selection, _selection, "An element of a struct.")
Struct = _kind("Struct", nodes.StructNode, _struct, "Values side by side, named or not.")


containers.Struct.register(nodes.StructNode)  # as the types of structs are structs of types


class UnexpectedBlockError(LanguageTypeError):
    """A building block is not of the expected kind."""

    def __init__(self, expected: BlockKind, actual: object) -> None:
        super().__init__("E714", f"expected a {expected.__name__}, found `{actual}`")
        self.expected, self.actual = expected, actual


class NoBlockError(UnexpectedBlockError, NotImplementedError):
    """A value that should be a building block is none."""


def checked(comp: object) -> nodes.Node:
    """Return a value if it is a building block.

    Raises:
      NoBlockError: it is not.
    """
    if not isinstance(comp, nodes.NodeBase):
        raise NoBlockError(ComputationBuildingBlock, comp)
    return cast("nodes.Node", comp)


@entry_point
def transform_postorder(comp: nodes.Node, transform: Rewriting) -> tuple[nodes.Node, bool]:
    """Transform every node of a program, inner nodes first; return the result and whether it
    changed."""
    return run(_transformed(checked(comp), transform, before=False))


@entry_point
def transform_preorder(comp: nodes.Node, transform: Rewriting) -> tuple[nodes.Node, bool]:
    """Transform every node of a program, outer nodes first; return the result and whether it
    changed.

    After a node is transformed, the nodes inside its replacement are.
    """
    return run(_transformed(checked(comp), transform, before=True))


def _transformed(
    node: nodes.Node, transform: Rewriting, *, before: bool
) -> Task[tuple[nodes.Node, bool]]:
    changed = False
    if before:
        node, changed = transform(node)
    children: list[nodes.Node] = []
    for child in node.children():
        replacement, is_another = yield _transformed(child, transform, before=before)
        children.append(replacement)
        changed = changed or is_another
    node = node.with_children(tuple(children))
    if not before:
        node, is_another = transform(node)
        changed = changed or is_another
    return node, changed


@entry_point
def to_call_dominant(comp: nodes.Node) -> nodes.Node:
    """Return a program as one flat block of calls; see the pass `call-dominant`."""
    return call_dominant(wire.opened(comp))


@entry_point
def unique_name_generator(comp: nodes.Node | None, prefix: str | None = "_var") -> Iterator[str]:
    """Yield names, a prefix and a number, that no binding or reference of a program has."""
    taken: set[str | None] = set()
    for node in walk(comp) if comp is not None else ():
        match node:
            case nodes.Reference():
                taken.add(node.name)
            case nodes.Lambda():
                taken.add(node.parameter_name)
            case nodes.Block():
                taken.update(binding.name for binding in node.locals)
            case _:
                pass
    names = (f"{prefix}{number}" for number in itertools.count(1))
    return (name for name in names if name not in taken)


@entry_point
def replace_intrinsics_with_bodies(comp: nodes.Node) -> tuple[nodes.Node, bool]:
    """Return a program with means replaced by sums and quotients, and whether it had any.

    tffc runs all other operators itself; see the pass `desugar-means`.
    """
    opened = wire.opened(checked(comp))
    desugared = desugar_means(opened)
    return desugared, desugared is not opened


def _message(node: nodes.Node) -> Message:
    """Return a node as a message `Computation`."""
    return Computation.FromString(wire.to_bytes(node))


def _position(node: nodes.Selection) -> int:
    return node.index


@entry_point
def _operator(node: nodes.Intrinsic) -> IntrinsicDef:
    definition = uri_to_intrinsic_def(node.uri)
    if definition is None:
        raise LanguageValueError(
            "E142",
            f"the language has no operator {node.uri!r}",
            help="use an operator of the language; tff.framework lists them as FEDERATED_...",
        )
    return definition


def _any_message(node: nodes.Data) -> Message:
    return any_pb2.Any(type_url=node.type_url, value=node.value)


TFF_NAMES: dict[type, dict[str, Any]] = {
    nodes.NodeBase: {
        "proto": property(_message),
        "to_proto": _message,
        "structural_representation": structural,
        "type_signature": property(operator.attrgetter("type")),
    },
    nodes.Data: {"content": property(_any_message)},
    nodes.Selection: {"as_index": _position},
    nodes.Intrinsic: {"intrinsic_def": _operator},
}
"""TFF's names for parts of nodes; with this module, nodes have them."""

for _class, _names in TFF_NAMES.items():
    for _name, _part in _names.items():
        setattr(_class, _name, _part)
