"""Sequences that computations give to Python, and those without an end."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import TffcError

tf = load_tensorflow()
computation: Any = tff.tensorflow.computation
OrderedDict = collections.OrderedDict
LONG = tff.SequenceType(np.int64)


class Pair(NamedTuple):
    x: Any
    y: Any


def contents(dataset: Any) -> list[Any]:
    assert isinstance(dataset, tf.data.Dataset)
    return [
        part.tolist() if isinstance(part, np.ndarray) else part
        for part in dataset.as_numpy_iterator()
    ]


def test_a_sequence_is_a_dataset() -> None:
    found = computation(lambda: tf.data.Dataset.range(3))()
    assert contents(found) == [0, 1, 2]
    assert found.element_spec == tf.TensorSpec([], tf.int64)
    assert int(found.cardinality()) == 3


def test_so_is_an_empty_one() -> None:
    found = computation(lambda xs: xs, tff.SequenceType((np.float32, [None])))([])
    assert contents(found) == []
    assert found.element_spec == tf.TensorSpec([None], tf.float32)
    assert int(found.cardinality()) == 0


def test_elements_of_unknown_shape_keep_it() -> None:
    found = computation(lambda xs: xs.batch(2), tff.SequenceType(np.int32))([1, 2, 3])
    assert contents(found) == [[1, 2], [3]]
    assert found.element_spec == tf.TensorSpec([None], tf.int32)


@pytest.mark.parametrize(
    ("element", "given", "expected"),
    [
        (OrderedDict(b=np.int32, a=np.str_), (1, "x"), OrderedDict(b=1, a=b"x")),
        ([np.int32, np.float32], (1, 2.0), (1, 2.0)),
        (Pair(np.int32, [np.bool_]), (1, [True]), OrderedDict(x=1, y=(True,))),
    ],
)
def test_elements_are_in_containers_of_tensorflow(element: Any, given: Any, expected: Any) -> None:
    @tff.federated_computation(tff.types.at_clients(tff.SequenceType(element)))
    def same(xs: Any) -> Any:
        return xs

    (found,) = same([[given]])
    assert contents(found) == [expected]


def test_sequences_inside_of_results() -> None:
    @tff.federated_computation(tff.types.at_clients(np.int32))
    def evaluated(xs: Any) -> Any:
        numbers = computation(lambda: tf.data.Dataset.range(2))
        return OrderedDict(
            server=tff.federated_eval(numbers, tff.SERVER),
            clients=tff.federated_eval(numbers, tff.CLIENTS),
        )

    found = evaluated([7, 8])
    assert contents(found["server"]) == [0, 1]
    assert list(map(contents, found["clients"])) == [[0, 1], [0, 1]]


def test_selected_slices_are_a_dataset() -> None:
    pick = computation(lambda xs, key: tf.gather(xs, key), (np.str_, [None]), np.int32)

    @tff.federated_computation(
        tff.types.at_clients((np.int32, [2])),
        tff.types.at_server(np.int32),
        tff.types.at_server((np.str_, [None])),
    )
    def selected(keys: Any, count: Any, values: Any) -> Any:
        return tff.federated_select(keys, count, values, pick)

    (found,) = selected([[1, 0]], 2, ["a", "b"])
    assert contents(found) == [b"b", b"a"]


endless: Any = computation(lambda: tf.data.Dataset.range(3).repeat())


def test_a_sequence_without_an_end_is_given() -> None:
    found = endless()
    assert contents(found.take(4)) == [0, 1, 2, 0]
    assert int(found.cardinality()) == -1
    assert found.element_spec == tf.TensorSpec([], tf.int64)


def test_the_elements_of_one_are_structured_like_others() -> None:
    pairs = Pair(np.array([1, 2]), {"b": np.array([3, 4]), "a": np.array([5, 6])})
    found = computation(lambda: tf.data.Dataset.from_tensor_slices(pairs).repeat())()
    (first,) = contents(found.take(1))
    assert first == OrderedDict(x=1, y=OrderedDict(b=3, a=5))


@pytest.mark.parametrize("give", [lambda: tf.data.Dataset.range(3).repeat(), endless])
def test_a_sequence_without_an_end_is_taken(give: Callable[[], Any]) -> None:
    take = computation(lambda xs, n: (xs.take(n), xs), LONG, np.int64)
    part, whole = take(give(), 4)
    assert contents(part) == [0, 1, 2, 0]
    assert contents(whole.take(2)) == [0, 1]
    assert contents(take([7, 8], 4)[0]) == [7, 8]


def test_clients_hold_sequences_without_an_end() -> None:
    @tff.federated_computation(tff.types.at_clients(LONG))
    def parts(xs: Any) -> Any:
        return tff.federated_map(computation(lambda xs: xs.skip(1).take(2), LONG), xs)

    found = parts([tf.data.Dataset.range(3).repeat(), [5, 6, 7]])
    assert list(map(contents, found)) == [[1, 2], [6, 7]]


def test_operators_do_not_read_to_an_end_that_is_not_there() -> None:
    total = tff.federated_computation(tff.sequence_sum, LONG)
    assert str(error_without_place(TffcError, lambda: total(endless()))) == (
        "the elements of a dataset without an end are to be read one after another [E708]\n"
        "  help: take a part of it: dataset.take(n)"
    )


def test_one_of_another_type_is_refused() -> None:
    take = computation(lambda xs: xs.take(2), tff.SequenceType(np.int32))
    with pytest.raises(TypeError, match=r"should be of type `int32\*` \[E711\]"):
        take(endless())


def test_there_are_no_datasets_of_nothing() -> None:
    same = tff.federated_computation(lambda xs: xs, tff.SequenceType([]))
    assert str(error_without_place(TffcError, lambda: same([(), ()]))) == (
        "there are no datasets of type `<>*`, whose elements hold no tensors [E702]\n"
        "  help: return how many elements there are"
    )
