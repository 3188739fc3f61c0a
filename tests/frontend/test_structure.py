"""Work on whole structures, as users write it."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import Point
from tffc.support.errors import TffcError

s = tff.structure
OrderedDict = collections.OrderedDict
INNER = s.Struct([("b", 2)])
NESTED = s.Struct([("a", 1), (None, INNER)])
NAMED = s.Struct([("a", 1), ("b", INNER)])


# What is asked, and what TFF gives.
GIVEN: dict[str, tuple[Callable[[], Any], Any]] = {
    "pairs": (lambda: s.to_elements(NESTED), [("a", 1), (None, INNER)]),
    "iterated pairs": (lambda: list(s.iter_elements(INNER)), [("b", 2)]),
    "names": (lambda: s.name_list(NESTED), ["a"]),
    "a field": (lambda: [s.has_field(NESTED, name) for name in "ab"], [True, False]),
    "leaves": (lambda: s.flatten(NESTED), [1, 2]),
    "names and none": (lambda: s.name_list_with_nones(NESTED), ["a", None]),
    "positions": (lambda: s.name_to_index_map(NESTED), {"a": 0}),
    "leaves of containers": (
        lambda: s.flatten(s.Struct([("a", [1, {"z": 3, "y": (2, Point(4, 5))}])])),
        [1, 2, 4, 5, 3],
    ),
    "mapped lists": (lambda: s.map_structure(lambda x, y: x + y, ["a"], ["b"]), ["ab"]),
    "mapped containers": (
        lambda: s.map_structure(lambda x: -x, OrderedDict(z=1, a=(2, Point(3, [4])))),
        OrderedDict(z=-1, a=(-2, Point(-3, [-4]))),
    ),
    "a struct in place of a list": (
        lambda: s.is_same_structure(s.Struct([(None, 1)]), [1]),
        False,
    ),
    "lists of two lengths": (lambda: s.is_same_structure({"a": [1]}, {"a": [1, 2]}), False),
    "dictionaries in other orders": (
        lambda: s.is_same_structure({"a": 1, "b": [2]}, {"b": [4], "a": 3}),
        True,
    ),
    "a leaf": (lambda: s.flatten(5), [5]),
    "the same": (lambda: s.is_same_structure(NESTED, NESTED), True),
    "other names": (lambda: s.is_same_structure(INNER, s.Struct([("a", 2)])), False),
    "other places": (lambda: s.is_same_structure(INNER, s.Struct([("b", INNER)])), False),
    "mapped": (
        lambda: s.map_structure(lambda x, y: x * y, NESTED, NESTED),
        s.Struct([("a", 1), (None, s.Struct([("b", 4)]))]),
    ),
    "packed": (
        lambda: s.pack_sequence_as(NESTED, [7, 8]),
        s.Struct([("a", 7), (None, s.Struct([("b", 8)]))]),
    ),
    "from a list": (lambda: s.from_container([1, [2]]), s.Struct([(None, 1), (None, [2])])),
    "from a list in a list": (
        lambda: s.from_container([1, {"b": 2}], recursive=True),
        s.Struct([(None, 1), (None, INNER)]),
    ),
    "from a namedtuple": (lambda: s.from_container(Point(1, 2)), s.Struct([("x", 1), ("y", 2)])),
    "from a struct": (lambda: s.from_container(NESTED), NESTED),
    "a dictionary": (lambda: s.to_odict(NAMED), OrderedDict(a=1, b=INNER)),
    "dictionaries": (
        lambda: s.to_odict(NAMED, recursive=True),
        OrderedDict(a=1, b=OrderedDict(b=2)),
    ),
    "a tuple": (
        lambda: s.to_odict_or_tuple(s.Struct([(None, 1), (None, INNER)])),
        (1, OrderedDict(b=2)),
    ),
    "an empty tuple": (lambda: s.to_odict_or_tuple(s.Struct([])), ()),
    "a changed struct": (
        lambda: s.update_struct(NESTED, a=9),
        s.Struct([("a", 9), (None, INNER)]),
    ),
    "a changed dictionary": (lambda: s.update_struct({"a": 1, "b": 2}, b=9), {"a": 1, "b": 9}),
    "a changed namedtuple": (lambda: s.update_struct(Point(1, 2), x=5), Point(5, 2)),
}


@pytest.mark.parametrize("case", GIVEN)
def test_given(case: str) -> None:
    ask, expected = GIVEN[case]
    found = ask()
    assert found == expected
    assert type(found) is type(expected)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "structures that differ": (
        lambda: s.map_structure(min, INNER, s.Struct([("a", 1)])),
        TypeError,
        "map_structure takes structures whose leaves have the same places and names, but got "
        "`<b=2>` and `<a=1>` [E157]",
    ),
    "no structures": (
        lambda: s.map_structure(min),
        TypeError,
        "map_structure takes structures whose leaves have the same places and names, but got none "
        "[E157]",
    ),
    "too many leaves": (
        lambda: s.pack_sequence_as(NESTED, [1, 2, 3]),
        ValueError,
        "a structure of 2 leaves cannot be made of 3 [E157]",
    ),
    "no container": (
        lambda: s.from_container(3),
        TypeError,
        "an object of class 'int' is not a container of elements [E159]\n"
        "  help: give a list, tuple, mapping, namedtuple, attrs object or dataclass",
    ),
    "no names for a dictionary": (
        lambda: s.to_odict(s.Struct([(None, 1)])),
        ValueError,
        "the elements of `<1>` cannot be put into a dictionary: they are unnamed [E161]\n"
        "  help: use to_odict_or_tuple",
    ),
    "some names": (
        lambda: s.to_odict_or_tuple(NESTED),
        ValueError,
        "the elements of `<a=1,<b=2>>` cannot be put into a dictionary: there are named and "
        "unnamed ones [E161]",
    ),
    "a list to change": (
        lambda: s.update_struct([1], a=2),
        TypeError,
        "an object of class 'list' has no elements with names to be changed [E159]\n"
        "  help: give a struct, mapping, namedtuple, attrs object or dataclass",
    ),
    "nothing to change": (
        lambda: s.update_struct({"step": 1}, steps=2),
        AttributeError,
        "there is no element 'steps' to be changed [E122]\n"
        "  note: there are 'step'\n"
        "  help: did you mean 'step'?",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    ask, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        ask()
    assert isinstance(caught.value, TffcError)
    caught.value.span = None
    assert str(caught.value) == text


def test_ten_thousand_deep() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = s.Struct([("a", deep)])
    assert s.flatten(s.map_structure(lambda x: x + 1, deep)) == [2]
    assert s.flatten(s.from_container(deep, recursive=True)) == [1]


def test_in_a_tensorflow_computation() -> None:
    pair = [("a", np.int32), ("b", np.int32)]

    @tff.tensorflow.computation(pair, pair)
    def subtract(x: Any, y: Any) -> Any:
        return s.map_structure(lambda a, b: a - b, x, y)

    assert str(subtract.type_signature.result) == "<a=int32,b=int32>"
    assert subtract(OrderedDict(a=5, b=7), OrderedDict(a=1, b=2)) == {"a": 4, "b": 5}


@pytest.mark.parametrize("recursive", [False, True])
def test_elements_by_name(recursive: bool) -> None:
    inner = tff.structure.Struct([("x", 1)])
    found = tff.structure.Struct([("a", inner), ("b", 2)])._asdict(recursive)
    assert found == OrderedDict(a=OrderedDict(x=1) if recursive else inner, b=2)
    with pytest.raises(ValueError, match="E161"):
        tff.structure.Struct([("a", 1), (None, 2)])._asdict()


def test_elements_of_what_has_no_names_at_all() -> None:
    with pytest.raises(TypeError) as caught:
        tff.structure.to_odict([1])  # pyright: ignore[reportArgumentType]  # wrong on purpose
    assert str(caught.value) == (
        "an object of class 'list' is not a struct [E159]\n"
        "  help: make one of it: tff.structure.from_container(x)"
    )


def test_a_field_that_is_not_there_is_an_error_of_key_too() -> None:
    with pytest.raises(KeyError, match="E122"):
        tff.structure.update_struct(tff.structure.Struct([("a", 1)]), b=2)


def test_lists_and_tuples_are_not_the_same() -> None:
    inside_list, inside_tuple = (tff.structure.Struct([(None, each)]) for each in ([1], (1,)))
    assert not tff.structure.is_same_structure(inside_list, inside_tuple)
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="E157"):
            tff.structure.map_structure(max, [1], (1,))


def test_elements_are_pairs_of_names_and_values() -> None:
    pairs: Any = [["a", 1], [None, 2]]
    assert tff.structure.Struct(pairs) == tff.structure.Struct([("a", 1), (None, 2)])
    nameless: Any = [(1, 2)]
    with pytest.raises(TypeError) as caught:
        tff.structure.Struct(nameless)
    assert str(caught.value) == "expected a (name, value) pair, found (1, 2) [E159]"


def test_leaves_of_another_number() -> None:
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(IndexError, match="E157"):
            tff.structure.pack_sequence_as([0, 0], leaves)


def test_what_a_mapping_has_besides_its_items_is_kept() -> None:
    given: collections.defaultdict[str, int] = collections.defaultdict(int, b=1, a=2)
    changed = tff.structure.update_struct(given, a=3)
    assert (changed, list(changed), changed["none"]) == ({"b": 1, "a": 3, "none": 0}, ["b", "a"], 0)
    assert given == {"b": 1, "a": 2}
