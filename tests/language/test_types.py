"""Types: printed forms, identity, equivalence and assignability, and what constructors refuse."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import cast

import numpy as np
import pytest
from hypothesis import given

from tests.language import generation
from tests.refusals import refusal
from tffc.language import (
    CLIENTS,
    SERVER,
    AbstractType,
    DType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_type,
)
from tffc.language.assignability import difference_notes
from tffc.language.traverse import contains, find, rewrite, walk
from tffc.language.type_base import (
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
)
from tffc.language.type_parts import leaves, without_containers
from tffc.support.errors import LanguageTypeError, LanguageValueError

INT, FLOAT = TensorType(np.int32), TensorType(np.float32)
UNKNOWN = TensorType(np.int32, None)
T = AbstractType("T")


def vector(size: int | None) -> TensorType:
    return TensorType(np.int32, (size,))


# Printed forms.

PRINTED = [
    (INT, "int32", "TensorType(np.int32)"),
    (TensorType(np.float32, (2, None)), "float32[2,?]", "TensorType(np.float32, (2, None))"),
    (UNKNOWN, "'int32'(shape=None)", "TensorType(np.int32, None)"),
    (TensorType(np.int32, (-1,)), "int32[-1]", "TensorType(np.int32, (-1,))"),
    (TensorType(str), "str", "TensorType(np.str_)"),
    (TensorType(np.bool_), "bool", "TensorType(np.bool)"),
    (TensorType(DType.BFLOAT16), "bfloat16", "TensorType(bfloat16)"),
    (StructType([]), "<>", "StructType([])"),
    (
        StructType([("a", INT), FLOAT]),
        "<a=int32,float32>",
        "StructType([('a', TensorType(np.int32)), TensorType(np.float32)])",
    ),
    (
        to_type([np.int32]),
        "<int32>",
        "StructType([TensorType(np.int32)]) as list",
    ),
    (SequenceType(INT), "int32*", "SequenceType(TensorType(np.int32))"),
    (FunctionType(None, INT), "( -> int32)", "FunctionType(None, TensorType(np.int32))"),
    (
        FunctionType(INT, FLOAT),
        "(int32 -> float32)",
        "FunctionType(TensorType(np.int32), TensorType(np.float32))",
    ),
    (
        at_clients(INT),
        "{int32}@CLIENTS",
        "FederatedType(TensorType(np.int32), PlacementLiteral('clients'), False)",
    ),
    (
        at_server(INT),
        "int32@SERVER",
        "FederatedType(TensorType(np.int32), PlacementLiteral('server'), True)",
    ),
    (
        FederatedType(INT, SERVER, False),
        "{int32}@SERVER",
        "FederatedType(TensorType(np.int32), PlacementLiteral('server'), False)",
    ),
    (T, "T", "AbstractType('T')"),
    (PlacementType(), "placement", "PlacementType()"),
]


@pytest.mark.parametrize(("type_", "text", "expression"), PRINTED, ids=[p[1] for p in PRINTED])
def test_printed(type_: Type, text: str, expression: str) -> None:
    assert str(type_) == type_.compact_representation() == text
    assert repr(type_) == expression


def test_formatted() -> None:
    pair = [np.int32, np.float32]
    placed = at_clients(StructType(pair))
    assert placed.formatted_representation() == "{<\n  int32,\n  float32\n>}@CLIENTS"
    function = FunctionType(pair, StructType([("a", INT)]))
    assert function.formatted_representation() == ("(<\n  int32,\n  float32\n> -> <\n  a=int32\n>)")
    nested = StructType([("a", StructType([("b", INT), SequenceType(FLOAT)])), placed])
    assert nested.formatted_representation() == (
        "<\n  a=<\n    b=int32,\n    float32*\n  >,\n  {<\n    int32,\n    float32\n  >}@CLIENTS\n>"
    )
    assert StructType([StructType([])]).formatted_representation() == "<\n  <>\n>"
    assert vector(3).formatted_representation() == "int32[3]"


# Identity and equivalence.


def test_equality_is_by_content() -> None:
    assert StructType([("a", INT)]) == StructType({"a": np.int32})
    assert hash(at_clients(INT)) == hash(at_clients(np.int32))
    assert FederatedType(INT, SERVER) == FederatedType(INT, SERVER, True)
    assert at_clients(INT) != at_clients(INT, all_equal=True)
    assert StructType([("a", INT)]) != StructType([INT])
    assert AbstractType("T") == AbstractType("T") != AbstractType("U")
    assert SequenceType(INT) != INT
    assert INT != "int32"


@pytest.mark.parametrize("kind", [T, FunctionType(T, INT), FunctionType(None, INT)])
def test_a_type_that_was_pickled_still_knows_its_variables(kind: Type) -> None:
    assert pickle.loads(pickle.dumps(kind)).is_abstract is kind.is_abstract


def test_a_type_knows_whether_a_container_is_in_it() -> None:
    inside = StructWithPythonType([INT, INT], tuple)
    for kind in (inside, at_clients(inside), FunctionType(None, StructType([inside]))):
        assert kind.has_container
        assert pickle.loads(pickle.dumps(kind)).has_container
        assert not without_containers(kind).has_container
    assert not StructType([INT]).has_container


def test_container_is_part_of_identity_only() -> None:
    plain, listed = StructType([INT]), StructWithPythonType([INT], list)
    assert plain != listed
    assert listed != plain
    assert listed == StructWithPythonType([INT], list) != StructWithPythonType([INT], tuple)
    assert plain.is_equivalent_to(listed)
    assert not plain.is_identical_to(listed)
    assert without_containers(FunctionType(listed, [listed])) == FunctionType(
        plain, StructType([plain])
    )


def test_names_are_part_of_equivalence() -> None:
    assert not StructType([("a", INT)]).is_equivalent_to(StructType([INT]))


def test_placement() -> None:
    assert (str(CLIENTS), repr(CLIENTS), CLIENTS.uri) == (
        "CLIENTS",
        "PlacementLiteral('clients')",
        "clients",
    )
    assert (CLIENTS.default_all_equal, SERVER.default_all_equal) == (False, True)


# Assignability.

PAIR = StructType([INT, INT])
NAMED = StructType([("a", INT), ("b", INT)])
ASSIGNABLE = [
    (INT, INT, True),
    (INT, FLOAT, False),
    (INT, vector(1), False),
    (vector(None), vector(2), True),
    (vector(2), vector(None), False),
    (vector(2), vector(3), False),
    (vector(None), vector(None), True),
    (UNKNOWN, vector(None), True),
    (UNKNOWN, UNKNOWN, True),
    (vector(None), UNKNOWN, False),
    (TensorType(np.float32, None), vector(1), False),
    (StructType([]), StructType([]), True),
    (PAIR, StructType([INT]), False),
    (NAMED, PAIR, True),
    (PAIR, NAMED, False),
    (NAMED, StructType([("b", INT), ("a", INT)]), False),
    (NAMED, StructType([("a", INT), INT]), True),
    (StructType([INT, vector(None)]), to_type([np.int32, (np.int32, [2])]), True),
    (StructType([INT]), INT, False),
    (SequenceType(vector(None)), SequenceType(vector(2)), True),
    (SequenceType(vector(2)), SequenceType(vector(None)), False),
    (FunctionType(None, INT), FunctionType(None, INT), True),
    (FunctionType(None, INT), FunctionType(INT, INT), False),
    (FunctionType(INT, INT), FunctionType(None, INT), False),
    (FunctionType(PAIR, INT), FunctionType(NAMED, INT), True),
    (FunctionType(NAMED, INT), FunctionType(PAIR, INT), False),
    (FunctionType(INT, NAMED), FunctionType(INT, PAIR), True),
    (FunctionType(INT, PAIR), FunctionType(INT, NAMED), False),
    (at_clients(INT), at_clients(INT, all_equal=True), True),
    (at_clients(INT, all_equal=True), at_clients(INT), False),
    (at_clients(INT), at_server(INT), False),
    (at_clients(NAMED), at_clients(PAIR), True),
    (at_server(INT), INT, False),
    (PlacementType(), PlacementType(), True),
    (PlacementType(), INT, False),
]


@pytest.mark.parametrize(
    ("target", "source", "expected"), ASSIGNABLE, ids=[f"{t} from {s}" for t, s, _ in ASSIGNABLE]
)
def test_assignable(target: Type, source: Type, expected: bool) -> None:
    assert target.is_assignable_from(source) is expected
    both = expected and source.is_assignable_from(target)
    assert target.is_equivalent_to(source) is both


@given(generation.types())
def test_type_is_assignable_from_itself(type_: Type) -> None:
    assert type_.is_assignable_from(type_)
    assert type_.is_equivalent_to(without_containers(type_))


# The messages of the checks.


def test_not_assignable() -> None:
    message = refusal(TypeNotAssignableError, FLOAT.check_assignable_from, INT)
    assert message == "Type `int32` is not assignable to expected type `float32` [E101]"
    with pytest.raises(TypeError) as caught:
        FLOAT.check_assignable_from(INT)
    assert isinstance(caught.value, TypeNotAssignableError)
    assert (caught.value.source_type, caught.value.target_type) == (INT, FLOAT)


@pytest.mark.parametrize(
    ("target", "source", "place"),
    [
        (
            StructType([("a", INT), ("b", [np.int32, np.float32])]),
            StructType([("a", INT), ("b", PAIR)]),
            ".b[1]",
        ),
        (at_clients(StructType([("w", INT)])), at_clients(StructType([("w", FLOAT)])), "@.w"),
        (FunctionType(INT, [np.int32]), FunctionType(INT, [np.float32]), ".result[0]"),
        (FunctionType([np.int32], INT), FunctionType([np.float32], INT), ".parameter[0]"),
        (StructType([SequenceType(INT)]), StructType([SequenceType(FLOAT)]), "[0]*"),
    ],
)
def test_first_place_that_differs(target: Type, source: Type, place: str) -> None:
    message = refusal(TypeNotAssignableError, target.check_assignable_from, source)
    assert message.endswith(f"[E101]\n  note: the first place that differs is `{place}`")


@pytest.mark.parametrize(
    ("target", "source", "note"),
    [
        ({"a": INT}, {"b": INT}, "it has an element named 'b' where 'a' is expected"),
        (
            StructType([INT]),
            {"a": INT},
            "it has an element named 'a' where one without a name is expected",
        ),
        ({"a": INT, "b": INT}, {"a": INT}, "it has no element named 'b'"),
        ({"a": INT}, {"a": INT, "b": INT}, "it has an element 'b' too many"),
        (PAIR, StructType([INT]), "it has another number of elements: 1, not 2"),
        (
            {"a": {"b": INT}},
            {"a": {"c": INT}},
            "`.a` has an element named 'c' where 'b' is expected",
        ),
        (
            at_clients(StructType({"a": INT})),
            at_clients(StructType({"b": INT})),
            "it has an element named 'b' where 'a' is expected",
        ),
        (
            at_clients(StructType({"a": INT})),
            at_clients(StructType({"a": FLOAT})),
            "`@.a` is of type `float32`, not `int32`",
        ),
        (at_clients(INT), at_clients(FLOAT), None),
        (INT, INT, None),
    ],
)
def test_what_differs_there(target: object, source: object, note: str | None) -> None:
    notes = difference_notes(to_type(target), to_type(source))
    assert notes == (() if note is None else (note,))


def test_long_types_are_shown_formatted_with_a_difference() -> None:
    fields = {f"field_number_{index}": INT for index in range(6)}
    target, source = StructType(fields), StructType(fields | {"field_number_3": FLOAT})
    assert refusal(TypeNotAssignableError, target.check_assignable_from, source) == (
        f"Type\n`{source.formatted_representation()}`\nis not assignable to expected type\n"
        f"`{target.formatted_representation()}`\n"
        "\nDiff:\n"
        "@@ -3,5 +3,5 @@\n"
        "   field_number_1=int32,\n"
        "   field_number_2=int32,\n"
        "-  field_number_3=float32,\n"
        "+  field_number_3=int32,\n"
        "   field_number_4=int32,\n"
        "   field_number_5=int32 [E101]\n"
        "  note: the first place that differs is `.field_number_3`"
    )


def test_long_message_of_short_types_is_broken() -> None:
    first = StructType({"some_name_of_a_field": INT, "other_name": INT})
    second = StructType({"some_name_of_a_field": FLOAT, "other_name": INT})
    assert refusal(TypesNotEquivalentError, first.check_equivalent_to, second) == (
        "Type\n`<some_name_of_a_field=int32,other_name=int32>`\nis not equivalent to type\n"
        "`<some_name_of_a_field=float32,other_name=int32>` [E102]\n"
        "  note: the first place that differs is `.some_name_of_a_field`"
    )


def test_not_equivalent() -> None:
    message = refusal(TypesNotEquivalentError, INT.check_equivalent_to, FLOAT)
    assert message == "Type `int32` is not equivalent to type `float32` [E102]"
    with pytest.raises(TypesNotEquivalentError) as caught:
        vector(None).check_equivalent_to(vector(2))
    assert (caught.value.first_type, caught.value.second_type) == (vector(None), vector(2))
    StructType([INT]).check_equivalent_to(to_type([np.int32]))


def test_not_identical_shows_containers() -> None:
    check = StructType([INT]).check_identical_to
    assert refusal(TypesNotIdenticalError, check, to_type([np.int32])) == (
        "Type\n`StructType([TensorType(np.int32)])`\nis not identical to type\n"
        "`StructType([TensorType(np.int32)]) as list` [E102]"
    )
    with pytest.raises(TypesNotIdenticalError) as caught:
        INT.check_identical_to(FLOAT)
    assert (caught.value.first_type, caught.value.second_type) == (INT, FLOAT)


def test_abstract_types_are_not_comparable() -> None:
    message = (
        "the abstract type `T` cannot be compared [E109]"
        "\n  help: put a concrete type in the place of `T`"
    )
    assert refusal(LanguageTypeError, T.is_assignable_from, T) == message
    inside = FunctionType(T, INT)
    assert refusal(LanguageTypeError, inside.is_assignable_from, inside) == message
    nested = StructType([T])
    assert refusal(LanguageTypeError, nested.check_assignable_from, nested) == message


# Constructors.


def test_sequence_elements() -> None:
    assert refusal(LanguageValueError, SequenceType, [at_server(INT)]) == (
        "a sequence cannot have elements of type `<int32@SERVER>` [E104]\n"
        "  note: `int32@SERVER` is federated, a function or itself a sequence"
        "\n  help: place the whole sequence, not its elements"
    )
    for banned, help in (
        (SequenceType(INT), "join the inner sequences into one, or batch them into tensors"),
        (FunctionType(None, INT), "leave the function out"),
    ):
        text = refusal(LanguageValueError, SequenceType, [banned])
        assert text.startswith(f"a sequence cannot have elements of type `<{banned}>` [E104]\n")
        assert text.endswith(f"  help: {help}")


def test_lists_in_sequences_become_tuples() -> None:
    element = SequenceType([[np.int32], OrderedDict(a=[np.int32])]).element
    assert isinstance(element, StructWithPythonType)
    assert element.container is tuple
    assert [getattr(inner, "container", None) for inner in element] == [tuple, OrderedDict]


def test_federated_members() -> None:
    assert refusal(LanguageTypeError, FederatedType, INT, "server") == (
        "expected a placement, found 'server' [E105]\n  help: use tff.SERVER or tff.CLIENTS"
    )
    assert refusal(LanguageValueError, at_server, FunctionType(None, INT)) == (
        "a federated value cannot have members of type `( -> int32)` [E104]\n"
        "  note: `( -> int32)` is federated or a function"
        "\n  help: call the function first, and place its result"
    )
    with pytest.raises(ValueError, match="cannot have members"):
        at_clients([at_server(INT)])
    assert str(at_clients(SequenceType(INT))) == "{int32*}@CLIENTS"


def test_element_names() -> None:
    assert refusal(LanguageValueError, StructType, [("a", INT), ("a", INT)]) == (
        "a struct cannot have two elements named 'a' [E107]"
        "\n  help: give each element a name of its own"
    )
    assert refusal(LanguageValueError, StructType, [("_asdict", INT)]) == (
        "the element name '_asdict' is reserved [E107]"
        "\n  help: give the element another name; those reserved begin with an underscore"
    )
    assert str(StructType([("", INT), ("a b", INT)])) == "<=int32,a b=int32>"


def test_struct_as_a_collection() -> None:
    struct = StructType([INT, ("a", FLOAT), ("b", INT)])
    assert len(struct) == 3
    assert list(struct) == [INT, FLOAT, INT]
    assert struct[0] == struct["b"] == struct.b == INT
    assert struct.fields() == ["a", "b"]
    assert (struct.index_of("b"), struct.index_of("c")) == (2, None)
    assert bool(StructType([]))
    with pytest.raises(
        AttributeError, match="no element 'c' in <int32,a=float32,b=int32>; it has 'a', 'b'"
    ):
        _ = struct.c
    assert struct.is_argument_struct()
    assert not StructType([("a", INT), INT]).is_argument_struct()


# Walks.


def test_walks() -> None:
    type_ = FunctionType([("a", at_clients(INT)), FLOAT], [SequenceType(INT)])
    assert contains(type_, SequenceType)
    assert not contains(type_, PlacementType)
    assert find(type_, FederatedType) == at_clients(INT)
    assert leaves(StructType([INT, [FLOAT, at_clients([INT])]])) == [INT, FLOAT, at_clients([INT])]
    assert [str(inner) for inner in walk(FunctionType(INT, INT))] == [
        "(int32 -> int32)",
        "int32",
    ]
    swapped = rewrite(cast("Type", type_), lambda inner: FLOAT if inner == INT else None)
    assert str(swapped) == "(<a={float32}@CLIENTS,float32> -> <float32*>)"


DEEP = 10_000


def deep(container: type | None = None) -> Type:
    type_: Type = INT
    for _ in range(DEEP):
        type_ = StructWithPythonType.with_container((None,), (type_,), container)
    return type_


@pytest.mark.slow
def test_deep_types() -> None:
    type_, other = deep(), deep()
    assert type_ == other
    assert type_.is_equivalent_to(other)
    assert str(type_) == "<" * DEEP + "int32" + ">" * DEEP
    assert repr(type_).count("StructType") == DEEP
    assert without_containers(deep(list)) == type_
    assert len(list(walk(type_))) == DEEP + 1
    message = refusal(TypesNotIdenticalError, type_.check_identical_to, deep(list))
    assert message.endswith(" as list` [E102]")
    assert not StructType([type_]).is_assignable_from(type_)


def test_types_too_long_to_show_are_cut() -> None:
    wide = StructType([TensorType(DType.INT32)] * 5000)
    with pytest.raises(TypeNotAssignableError) as caught:
        wide.check_assignable_from(TensorType(DType.INT32))
    assert len(str(caught.value)) < 500
    assert " ...29701 characters... " in str(caught.value)


def test_the_dtype_of_a_tensor_is_the_one_of_numpy() -> None:
    for dtype in DType:
        found = TensorType(dtype).dtype
        assert isinstance(found, np.dtype)
        assert TensorType(found) == TensorType(dtype)
    assert TensorType(DType.INT32).dtype in (np.int32, np.int64)
    assert TensorType(DType.STRING).dtype.type is np.str_
