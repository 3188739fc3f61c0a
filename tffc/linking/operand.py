"""Values inside a graph under construction: tensors, and tuples of values for structs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tffc.errors import GraphError
from tffc.ir.type_parts import UNCOUNTED, check_parts, leaves
from tffc.ir.types import SequenceType, StructType, TensorType, Type


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


Operand: TypeAlias = Tensor | tuple["Operand", ...]


def tensors(operand: Operand) -> list[Tensor]:
    """Return the tensors of an operand, in order."""
    found: list[Tensor] = []
    stack: list[Operand] = [operand]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found.append(item)
        else:
            stack.extend(reversed(item))
    return found


def leaf_types(root: Type) -> list[TensorType | SequenceType]:
    """Return the types of the tensors that make up a value of type `root`.

    Raises:
      GraphError: a part of it is not a tensor, sequence or struct, so that no graph can hold it.
    """
    found: list[TensorType | SequenceType] = []
    for leaf in leaves(root):
        if not isinstance(leaf, TensorType | SequenceType):
            raise GraphError(
                "E300",
                f"a TensorFlow graph cannot hold a value of type `{leaf}`",
                notes=(f"it is part of `{root}`",),
            )
        found.append(leaf)
    return found


def from_tensors(root: Type, values: Iterable[Tensor]) -> Operand:
    """Return the operand of type `root` whose tensors are `values`, which are as many as its
    leaves."""
    if isinstance(root, StructType) and not any(isinstance(t, StructType) for t in root.types):
        return tuple(values)
    remaining = iter(values)
    return rebuild(root, elements_of_type, lambda _: next(remaining), tuple)


def map_tensors(operand: Operand, function: Callable[[Tensor], Tensor]) -> Operand:
    """Return the operand with `function` applied to each tensor."""
    return rebuild(operand, _elements_of_operand, function, tuple)


def elements_of_type(kind: Type) -> tuple[Type, ...] | None:
    """Return the element types of a struct, or None for another type; for `rebuild`."""
    return kind.types if isinstance(kind, StructType) else None


def _elements_of_operand(operand: Operand) -> tuple[Operand, ...] | None:
    return operand if isinstance(operand, tuple) else None


def rebuild(
    root: Any,
    elements: Callable[[Any], tuple[Any, ...] | None],
    leaf: Callable[[Any], Any],
    struct: Callable[[list[Any]], Any],
) -> Any:
    """Make a tree like `root`, in order: `elements` takes it apart and gives None for a leaf,
    `leaf` and `struct` make the parts of the other tree."""
    parts = elements(root)
    if parts is None:
        return leaf(root)
    unfinished: list[tuple[Iterator[Any], list[Any]]] = [(iter(parts), [])]
    while True:
        remaining, made = unfinished[-1]
        for part in remaining:
            parts = elements(part)
            if parts is not None:
                unfinished.append((iter(parts), []))
                break
            made.append(leaf(part))
        else:
            unfinished.pop()
            if not unfinished:
                return struct(made)
            unfinished[-1][1].append(struct(made))


def check_structure(operand: Operand, expected: Type, role: str) -> list[Tensor]:
    """Return the tensors of an operand of type `expected`.

    Raises:
      GraphError: it has another structure, or a tensor of another element type.
      LanguageValueError: it has more parts than a type may.
    """
    found: list[Tensor] = []
    stack: list[tuple[Operand, Type]] = [(operand, expected)]
    visited = 0
    while stack:
        value, kind = stack.pop()
        visited += 1
        if visited == UNCOUNTED:
            check_parts(expected)
        if isinstance(value, Tensor):
            if not _is_held_by(value, kind):
                raise GraphError(
                    "E301",
                    f"{role} has a `{value.type}` where a `{kind}` is expected",
                    notes=(f"the whole is of type `{expected}`",),
                )
            found.append(value)
        elif isinstance(kind, StructType) and len(kind) == len(value):
            stack.extend(zip(reversed(value), reversed(kind.types), strict=True))
        else:
            raise GraphError(
                "E302",
                f"{role} has a struct of {len(value)} where a `{kind}` is expected",
                notes=(f"the whole is of type `{expected}`",),
            )
    return found


def _is_held_by(value: Tensor, kind: Type) -> bool:
    if isinstance(kind, TensorType) and isinstance(value.type, TensorType):
        return value.type.element_type is kind.element_type
    return isinstance(kind, SequenceType) and isinstance(value.type, SequenceType)
