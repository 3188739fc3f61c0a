"""Every section of the corpus, linked twice into one graph, gives what it gives on its own."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tests.linking.corpus import sections
from tests.linking.sections import flat, graph_of, link, run, struct, tf
from tffc.language import type_parts
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.linking.inspect import inspect, is_pure
from tffc.linking.operand import rebuild

pytestmark = pytest.mark.skipif(
    "TFFC_CORPUS" not in os.environ, reason="needs the corpus in TFFC_CORPUS"
)


def value(kind: Type, random: np.random.Generator) -> Any:
    """A random value; unknown dimensions have two places, sequences three elements."""

    def leaf(kind: Type) -> Any:
        if isinstance(kind, SequenceType):
            rows = [value(kind.element, random) for _ in range(3)]
            stacked = [np.stack(parts) for parts in zip(*map(flat, rows), strict=True)]
            return lambda: tf.data.Dataset.from_tensor_slices(structured(kind.element, stacked))
        assert isinstance(kind, TensorType)
        return tensor(kind, random)

    return rebuild(kind, leaf)


def tensor(kind: TensorType, random: np.random.Generator) -> Any:
    shape = [2 if size is None else size for size in kind.shape or ()]
    numbers = random.integers(0, 4, shape)
    if kind.element_type is DType.STRING:
        words = np.array([b"a", b"bc", b"", b"d e"], object)
        return words[numbers] if shape else words[int(numbers)]
    return numbers.astype(kind.element_type.dtype)


def structured(kind: Type, leaves: list[Any]) -> Any:
    """Leaves in the structure that TensorFlow has for the elements of a dataset."""
    remaining = iter(leaves)

    def build(kind: Type) -> Any:
        if not isinstance(kind, StructType):
            return next(remaining)
        parts = [build(element) for element in kind.types]
        return dict(zip(kind.fields(), parts, strict=True)) if kind.fields() else tuple(parts)

    return build(kind)


def attempt(section: Compiled, argument: Any) -> Any:
    """What a section returns, or the class of what TensorFlow raises."""
    try:
        return run(section, argument)
    except (tf.errors.OpError, ValueError) as error:
        return type(error)


@pytest.mark.long
@pytest.mark.slow
def test_linked_sections_give_what_they_give_alone() -> None:
    """One section of each kind, that is, of each count of operations."""
    kinds = {tuple(inspect(section).operations.items()): section for section in sections()}
    ran = 0
    for number, section in enumerate(kinds.values()):
        kind = section.type
        assert isinstance(kind, FunctionType)
        twice = link(
            kind.parameter,
            struct(kind.result, kind.result),
            lambda b, p, s=section: (b.call(s, p), b.call(s, p)),
        )
        argument = (
            () if kind.parameter is None else value(kind.parameter, np.random.default_rng(number))
        )
        expected, found = attempt(section, argument), attempt(twice, argument)
        if isinstance(expected, type):
            assert isinstance(found, type)
        elif is_pure(section):
            ran += 1
            for part in found:
                for left, right in zip(leaves(part), leaves(expected), strict=True):
                    np.testing.assert_array_equal(left, right, err_msg=str(kind))
        else:
            assert not isinstance(found, type)
    assert ran > 0.8 * len(kinds)


def leaves(value: Any) -> list[Any]:
    """The tensors of what TensorFlow returns."""
    return tf.nest.flatten(value)


def test_linking_adds_nothing() -> None:
    """A section called once is as large as it was, but for what nothing needed."""
    for section in sections():
        kind = section.type
        assert isinstance(kind, FunctionType)
        once = link(kind.parameter, kind.result, lambda b, p, s=section: b.call(s, p))
        before, after = graph_of(section), graph_of(once)
        identities = len(type_parts.leaves(kind.result))
        assert len(after.node) <= len(before.node) + identities + 1
        assert len(after.library.function) <= len(before.library.function)
