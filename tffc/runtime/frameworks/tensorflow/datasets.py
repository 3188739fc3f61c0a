"""Sequences as TensorFlow datasets.

In a graph a sequence is a variant tensor holding a dataset whose elements are flat lists of
components, their structure lost.  The components are in wire order: elements of a struct with names
are sorted by name, those of one without names are in their own order.

That is how TensorFlow itself orders dictionaries and tuples, so it is asked.  The compiler knows
the order on its own, in `tffc.linking.sequences`, and verification compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tffc.language.type_parts import without_containers
from tffc.language.types import SequenceType, StructType, TensorType, Type, to_type
from tffc.language.values.concrete import Endless, layout, to_python, unflatten
from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.support.errors import LanguageValueError

MAX_DEPTH = 100
"""The deepest structure of elements; TensorFlow walks it recursively."""


def components(type: SequenceType) -> list[TensorType]:
    """Return the types of the tensors in an element, in the order of its type.

    Raises:
      LanguageValueError: TensorFlow has no datasets of such elements.
    """
    types: list[TensorType] = []
    stack: list[tuple[Type, int]] = [(type.element, 0)]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, TensorType):
            types.append(part)
            continue
        assert isinstance(part, StructType)
        _check(type, part, depth)
        stack.extend((element, depth + 1) for element in reversed(part.types))
    return types


def wire_order(type: SequenceType) -> list[int]:
    """Return, for each component of the dataset, its index in `components`."""
    return _flatten_order(load_tensorflow(), type, plain=True)


def _check(type: SequenceType, part: StructType, depth: int) -> None:
    if 0 < len(part.fields()) < len(part):
        raise LanguageValueError(
            "E702",
            f"there are no datasets of type `{type}`, because `{part}` names some of its elements "
            "and not others",
            help="name all elements of the struct, or none",
        )
    if depth >= MAX_DEPTH:
        raise LanguageValueError(
            "E702",
            f"there are no datasets of elements nested more than {MAX_DEPTH} deep",
            help="nest the structs less deep, or list their elements side by side",
        )


def open_dataset(tf: TensorFlow, variant: Any, type: SequenceType) -> Any:
    """Return the dataset in a variant tensor, with elements in the containers that the type
    names."""
    order = wire_order(type)
    plain = _flatten_order(tf, type) != order
    specs = (tf.TensorSpec(t.shape, tf.as_dtype(t.element_type.number)) for t in components(type))
    structure = arrange(type.element, specs, plain=plain)
    dataset = tf.data.experimental.from_variant(variant, structure)
    return _rearranged(tf, dataset, type, order, plain=False) if plain else dataset


def seal_dataset(tf: TensorFlow, dataset: Any) -> tuple[Any, SequenceType]:
    """Return the variant tensor that holds a dataset, and the dataset's type.

    Raises:
      LanguageTypeError: its elements are not made of tensors and structs.
    """
    type = SequenceType(to_type(dataset.element_spec))
    order = _flatten_order(tf, type)
    if order != wire_order(type):
        dataset = _rearranged(tf, dataset, type, order, plain=True)
    return tf.data.experimental.to_variant(dataset), type


def make_dataset(value: Any, type: SequenceType) -> Any:
    """Convert a sequence, as the interpreter holds it, to an eager dataset.

    Its elements are OrderedDicts if they have names, and tuples if they have none.

    Raises:
      LanguageValueError: TensorFlow has no datasets of such elements.
    """
    tf = load_tensorflow()
    if isinstance(value, Endless):
        variant, _ = seal_dataset(tf, value.dataset)
        plain = without_containers(type)
        assert isinstance(plain, SequenceType)
        return open_dataset(tf, variant, plain)
    types = components(type)
    element = layout(type.element)
    if not types:
        raise LanguageValueError(
            "E702",
            f"there are no datasets of type `{type}`, whose elements hold no tensors",
            help="return how many elements there are",
        )
    columns = list(zip(*map(element.flatten, value), strict=True)) or [()] * len(types)
    if all(t.is_fully_defined() for t in types):
        stacks = map(stacked, columns, types)
        return tf.data.Dataset.from_tensor_slices(arrange(type.element, stacks, plain=True))
    protos = tuple(
        np.array([serialized(tf, item, t) for item in column], dtype=object)
        for column, t in zip(columns, types, strict=True)
    )

    @tf.autograph.experimental.do_not_convert
    def parse(*texts: Any) -> Any:
        return arrange(type.element, iter(parsed(tf, texts, types)), plain=True)

    return tf.data.Dataset.from_tensor_slices(protos).map(parse)


def stacked(items: Sequence[Any], type: TensorType) -> Any:
    """Return tensors of one shape as one array."""
    shape = np.shape(items[0]) if items else tuple(size or 0 for size in type.shape or ())
    stack = np.empty((len(items), *shape), type.element_type.dtype)
    for position, item in enumerate(items):
        stack[position] = item
    return stack


def serialized(tf: TensorFlow, item: Any, type: TensorType) -> bytes:
    """Return a tensor as `parsed` reads it."""
    proto = tf.make_tensor_proto(item, tf.as_dtype(type.element_type.number))
    return proto.SerializeToString()


def parsed(tf: TensorFlow, texts: Sequence[Any], types: Sequence[TensorType]) -> tuple[Any, ...]:
    """Return the tensors in tensors of serialized ones."""
    return tuple(
        tf.ensure_shape(tf.io.parse_tensor(text, tf.as_dtype(t.element_type.number)), t.shape)
        for text, t in zip(texts, types, strict=True)
    )


def _flatten_order(tf: TensorFlow, type: SequenceType, *, plain: bool = False) -> list[int]:
    """Return, for each component in the order in which TensorFlow flattens elements, its index in
    `components`.  For `plain` see `arrange`.

    TensorFlow sorts the keys of dictionaries, but keeps the order of namedtuples and attrs classes.
    """
    positions = iter(range(len(components(type))))
    return tf.nest.flatten(arrange(type.element, positions, plain=plain))


def _rearranged(
    tf: TensorFlow, dataset: Any, type: SequenceType, order: list[int], *, plain: bool
) -> Any:
    """Return the dataset, whose components are in this order, with its elements restructured."""

    @tf.autograph.experimental.do_not_convert
    def rearrange(*parts: Any) -> Any:
        tensors: list[Any] = [None] * len(order)
        for position, tensor in zip(order, tf.nest.flatten(parts), strict=True):
            tensors[position] = tensor
        return arrange(type.element, iter(tensors), plain=plain)

    return dataset.map(rearrange)


def arrange(type: Type, leaves: Iterator[Any], *, plain: bool) -> Any:
    """Return the leaves, given in the order of the type, as a structure that TensorFlow
    understands.

    Structs become the containers that their types name; if they name none or `plain` is set,
    OrderedDicts and tuples.
    """
    shown = without_containers(type) if plain else type
    return to_python(unflatten(leaves, shown), shown)
