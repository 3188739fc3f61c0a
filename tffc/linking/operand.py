"""Values inside a graph under construction: tensors, and tuples of values for structs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

from tffc.language.type_parts import check_parts, leaves
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.language.wire import StructBinding
from tffc.linking.attributes import type_number
from tffc.support.errors import GraphError


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """An output of a node: `edge` is how an input of another node is written, `node` for port 0 and
    `node:port` for the others; a sequence is a scalar variant that holds a dataset."""

    edge: str
    type: TensorType | SequenceType

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.edge.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the tensor, `node:port`."""
        return self.edge if ":" in self.edge else f"{self.edge}:0"


T = TypeVar("T")

Operand: TypeAlias = Tensor | tuple["Operand", ...]


def leaf_types(root: Type) -> list[TensorType | SequenceType]:
    """Return the types of the tensors that make up a value of type `root`.

    Raises:
      GraphError: a part of it is not a tensor, sequence or struct, so that no graph can hold it.
    """
    types: list[TensorType | SequenceType] = []
    for leaf in leaves(root):
        if not isinstance(leaf, TensorType | SequenceType):
            raise GraphError(
                "E300",
                f"a TensorFlow graph cannot hold a value of type `{leaf}`",
                notes=(f"it is part of `{root}`",),
            )
        types.append(leaf)
    return types


def tensors(operand: Operand) -> list[Tensor]:
    """Return the tensors of an operand, in order."""
    leaves: list[Tensor] = []
    rebuild(operand, leaves.append)
    return leaves


def from_leaves(root: Any, values: Iterable[Any]) -> Any:
    """Return a tuple like the struct `root`, with these values for its leaves; the one value where
    `root` is a leaf itself."""
    remaining = iter(values)
    return rebuild(root, lambda _: next(remaining))


def elements_of(part: Any) -> tuple[Any, ...] | None:
    """Return the elements of a struct, which is a type, a binding or a tuple of values; None for a
    leaf."""
    if isinstance(part, StructType):
        return part.types
    if isinstance(part, StructBinding):
        return part.elements
    return cast("tuple[Any, ...]", part) if isinstance(part, tuple) else None


def rebuild(
    root: Any, leaf: Callable[[Any], Any], struct: Callable[[tuple[Any, ...]], Any] = tuple
) -> Any:
    """Return `root` rebuilt: `leaf` is called for its leaves, in order, and `struct` for the
    rebuilt elements of each struct."""
    if elements_of(root) is None:
        return leaf(root)
    parts: list[Any] = []
    stack = [(root, False)]
    while stack:
        part, elements_are_made = stack.pop()
        elements = elements_of(part)
        if elements is None:
            parts.append(leaf(part))
        elif elements_are_made:
            first = len(parts) - len(elements)
            parts[first:] = [struct(tuple(parts[first:]))]
        else:
            stack.append((part, True))
            stack.extend((element, False) for element in reversed(elements))
    return parts[0]


def matched(first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of parts at the same places of two structs, in order.

    Structs with equal numbers of elements are entered, so that the pairs are leaves where the
    structs are alike.
    """
    stack = [(first, second)]
    while stack:
        pair = stack.pop()
        left, right = map(elements_of, pair)
        if left is None or right is None or len(left) != len(right):
            yield pair
        else:
            stack.extend(zip(reversed(left), reversed(right), strict=True))


def check_structure(operand: Operand, expected: Type, role: str) -> list[Tensor]:
    """Return the tensors of an operand of type `expected`.

    Raises:
      GraphError: it has another structure, or a tensor of another element type.
      LanguageValueError: it has more parts than a type may.
    """
    check_parts(expected)
    leaves: list[Tensor] = []
    for value, kind in matched(operand, expected):
        if not isinstance(value, Tensor):
            raise GraphError(
                "E301",
                f"{role} has a struct of {len(value)} where a `{kind}` is expected",
                notes=(f"the whole is of type `{expected}`",),
            )
        holds = isinstance(kind, TensorType | SequenceType)
        if not holds or type_number(value.type) != type_number(kind):
            raise GraphError(
                "E301",
                f"{role} has a `{value.type}` where a `{kind}` is expected",
                notes=(f"the whole is of type `{expected}`",),
            )
        leaves.append(value)
    return leaves


def in_component_order(element: Type, leaves: list[T]) -> list[T]:
    """Return items, one for each leaf of a sequence's element, in the order of the tensors of a
    dataset.

    Raises:
      GraphError: a struct in the element has a name for some of its elements only.
    """
    ordered: list[T] = []
    stack: list[tuple[Type, Any]] = [(element, from_leaves(element, leaves))]
    while stack:
        kind, value = stack.pop()
        if not isinstance(kind, StructType):
            ordered.append(value)
            continue
        named = [name for name in kind.names if name is not None]
        if named and len(named) < len(kind):
            raise GraphError(
                "E319",
                f"there are no sequences of `{element}` in TensorFlow, for a part of it has names "
                "for some of its elements and none for others",
                notes=(f"that part is `{kind}`",),
                help="name all elements of that part, or none",
            )
        places = sorted(range(len(kind)), key=named.__getitem__) if named else range(len(kind))
        stack.extend((kind.types[place], value[place]) for place in reversed(places))
    return ordered
