"""Places, labels, and the operations that apply functions to elements of sequences."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

from tffc.assurance.proof.attributes import (
    argument_kinds,
    is_types,
    joined_shapes,
    map_label,
    types_in,
)
from tffc.assurance.proof.fields import Message
from tffc.assurance.proof.loading import malformed
from tffc.assurance.proof.terms import OWN, PURE, Terms, has_parts
from tffc.assurance.proof.values import in_dataset_order, leaves_of
from tffc.language.types import Type

Label: TypeAlias = tuple[Hashable, ...]
"""The label of an operation of a graph: its name, and the names and contents of attributes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The place where code runs: a side, and how many functions applied to elements of sequences
    enclose it."""

    side: str
    depth: int = 0

    def inner(self) -> Place:
        """Return the place inside a function applied to elements of a sequence."""
        return Place(self.side, self.depth + 1)


def check_types(function: Message, label: Label, carried: int, elements: int) -> None:
    """Check that a function of a sequence takes the captured values and the state of its node."""
    if not any(has_parts(part) and part[0] == "Targuments" for part in label):
        malformed("an operation on a sequence does not tell what its function captures")
    types = [argument.type for argument in function.signature.input_arg]
    if types[elements:] != listed(label, "Targuments") or types[:carried] != listed(
        label, "Tstate"
    ):
        malformed(f"{function.signature.name!r} takes other types than it is given")


def is_unchanged(
    label: Label, kinds: Sequence[tuple[int, bytes]], dataset: Hashable, declared: Iterable[Type]
) -> bool:
    """Tell whether a map takes the elements of a dataset, by the dataset's label or the elements
    that are declared for it, and promises the same elements."""
    for element in declared:
        types = in_dataset_order(element, leaves_of(element))
        if without_function(label) == map_label(types) and list(kinds) == argument_kinds(types):
            return True
    while has_parts(dataset) and dataset and has_parts(dataset[0]):
        dataset = dataset[0]
    if not has_parts(dataset) or dataset[0] not in ("MapDataset", "TensorSliceDataset"):
        return False
    parts = [part for part in dataset if has_parts(part)]
    known = {part[0]: part[1] for part in parts if len(part) == 2}
    types = known.get("output_types", known.get("Toutput_types"))
    shapes = known.get("output_shapes")
    op, _, _, *rest = map_label(())
    return (
        without_function(label) == (op, ("output_shapes", shapes), ("output_types", types), *rest)
        and [dtype for dtype, _ in kinds] == listed(label, "output_types")
        and joined_shapes(shape for _, shape in kinds) == shapes
    )


def element_symbols(
    terms: Terms, place: Place, carried: int, kinds: Sequence[tuple[int, bytes]]
) -> tuple[int, ...]:
    """Return the symbols for the arguments of a function applied to elements of a sequence, the
    carried state first; `kinds` are their element types and shapes."""
    return tuple(
        terms.value(
            ("element", place.depth, "carried" if i < carried else "of", i, *kind), fails=False
        )
        for i, kind in enumerate(kinds)
    )


def sequence_operation(
    terms: Terms,
    label: Hashable,
    data: tuple[int, ...],
    body: tuple[int, ...],
    controls: tuple[int, ...],
    taint: int,
    place: Place,
    kinds: Sequence[tuple[int, bytes]],
    content: tuple[Hashable, ...] = (),
) -> int:
    """Return an operation on a dataset whose function has this body.

    `kinds` are the types of the function's arguments that are not captured, and `content` is what
    it has besides its body.
    """
    whole = (without_function(label), tuple(kinds), content, len(data), len(body), len(controls))
    if taint == PURE:
        return terms.value(whole, (*data, *body, *controls))
    return itself(terms, whole, (*data, *body, *controls), taint, place)


def itself(
    terms: Terms,
    label: Hashable,
    children: tuple[int, ...],
    taint: int,
    place: Place,
    *,
    fails: bool = True,
) -> int:
    """Return a new run of an operation at a place.

    State that is new in each run may move between the server and a client, but not into or out of a
    function that is applied to each element of a sequence.
    """
    where = place.depth if taint == OWN else place
    return terms.instance((label, where), children, taint, fails=fails)


def without_function(label: Hashable) -> Hashable:
    """Return the label of an operation on a dataset without its function."""
    assert has_parts(label)
    return tuple(part for part in label if not _is_looked_into(part))


def _is_looked_into(part: Hashable) -> bool:
    """Tell whether a part of a label is the function of a sequence, or the types that it
    captures."""
    return part == ("f", ("function", True)) or (
        has_parts(part) and part[0] == "Targuments" and is_types(part[1])
    )


def listed(label: Label, name: str) -> list[int]:
    """Return the element types that an attribute lists."""
    attributes = (part for part in label if has_parts(part))
    types = next((part[1] for part in attributes if part[0] == name), b"")
    return types_in(types) if isinstance(types, bytes) else []


def count(label: Label, name: str) -> int:
    return len(listed(label, name))


def operation_of(label: Hashable) -> str:
    """Return the name of the operation in a label."""
    while has_parts(label) and label:
        label = label[0]
    return str(label)
