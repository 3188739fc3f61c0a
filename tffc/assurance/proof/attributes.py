"""Attributes of graph nodes, encoded for the operations that the prover itself makes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tffc.assurance.proof.fields import encoded
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.proto import message
from tffc.language.types import SequenceType, TensorType, Type

AttrValue = message("tffc.graph.AttrValue")
VARIANT = 21

CONVENTION = 9
"""The version of TensorFlow's calling convention for StableHLO modules."""


def types_in(attribute: bytes) -> list[int]:
    """Return the element types that an attribute lists."""
    return list(AttrValue.FromString(attribute).list.type)


def is_types(attribute: Hashable) -> bool:
    """Tell whether an attribute lists element types and nothing else."""
    if not isinstance(attribute, bytes):
        return False
    alone = AttrValue()
    alone.list.SetInParent()
    alone.list.type.extend(types_in(attribute))
    return encoded(alone) == attribute


def number(kind: Type) -> int:
    """Return TensorFlow's number for the element type of a value of this type."""
    if isinstance(kind, TensorType):
        return kind.element_type.number
    if isinstance(kind, SequenceType):
        return VARIANT
    raise Undecided("what a graph cannot hold", str(kind))


def type_attribute(kind: Type) -> bytes:
    """Encode an element type."""
    return encoded(AttrValue(type=number(kind)))


def types_attribute(kinds: Iterable[Type]) -> bytes:
    """Encode a list of element types."""
    attribute = AttrValue()
    attribute.list.SetInParent()
    attribute.list.type.extend(map(number, kinds))
    return encoded(attribute)


def shapes_attribute(kinds: Iterable[Type]) -> bytes:
    """Encode a list of shapes."""
    attribute = AttrValue()
    attribute.list.SetInParent()
    for kind in kinds:
        shape = attribute.list.shape.add()
        sizes = kind.shape if isinstance(kind, TensorType) else ()
        if sizes is None:
            shape.unknown_rank = True
        else:
            for size in sizes:
                shape.dim.add().size = -1 if size is None else size
    return encoded(attribute)


def argument_kinds(kinds: Iterable[Type]) -> list[tuple[int, bytes]]:
    """Return the element types and the shapes of a function's arguments of these types."""
    return [(number(kind), shapes_attribute([kind])) for kind in kinds]


def joined_shapes(attributes: Iterable[bytes]) -> bytes:
    """Encode the shapes of several attributes as one list."""
    joined = AttrValue()
    joined.list.SetInParent()
    for attribute in attributes:
        joined.list.shape.extend(AttrValue.FromString(attribute).list.shape)
    return encoded(joined)


def map_label(outputs: Iterable[Type]) -> tuple[Hashable, ...]:
    """Return the label of a map to elements of these types, without its function."""
    outputs = list(outputs)
    return (
        "MapDataset",
        ("output_shapes", shapes_attribute(outputs)),
        ("output_types", types_attribute(outputs)),
        ("preserve_cardinality", flag_attribute(True)),
        ("use_inter_op_parallelism", flag_attribute(True)),
    )


def flag_attribute(flag: bool) -> bytes:
    """Encode a boolean."""
    return encoded(AttrValue(b=flag))


def text_attribute(text: bytes) -> bytes:
    """Encode a string."""
    return encoded(AttrValue(s=text))


def module_label(module: bytes, inputs: Iterable[Type], outputs: Iterable[Type]) -> Hashable:
    """Return the label of the operation that runs a StableHLO module on any processor."""
    types, outputs = types_attribute(inputs), list(outputs)
    return (
        "XlaCallModule",
        ("Sout", shapes_attribute(outputs)),
        ("Tin", types),
        ("Tout", types_attribute(outputs)),
        ("disabled_checks", _texts_attribute([b"platform"])),
        ("module", text_attribute(module)),
        ("platforms", _texts_attribute([b"CPU"])),
        ("version", encoded(AttrValue(i=CONVENTION))),
    )


def _texts_attribute(texts: list[bytes]) -> bytes:
    attribute = AttrValue()
    attribute.list.s.extend(texts)
    return encoded(attribute)
