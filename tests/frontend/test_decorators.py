"""Decorators: call forms, which functions they take, and the parameter types they make."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.frontend.computation import PolymorphicComputation
from tffc.support.errors import TffcError

fc = tff.federated_computation
PAIR = [("x", np.int32), ("y", np.float32)]


def identity(x: Any) -> Any:
    """Gives what it is given."""
    return x


def two(x: Any, y: Any) -> Any:
    return y


def both(x: Any, y: Any) -> Any:
    return (x, y)


def none() -> Any:
    return 1


class Callable_:
    def __call__(self, x: Any) -> Any:
        return x

    def method(self, x: Any) -> Any:
        return x


TRACED = {
    "types after the function": (
        lambda: fc(identity, np.int32),
        "(int32 -> int32)",
        "(identity_arg -> identity_arg)",
    ),
    "types for a decorator": (
        lambda: fc(np.int32)(identity),
        "(int32 -> int32)",
        "(identity_arg -> identity_arg)",
    ),
    "no types, no parentheses": (lambda: fc(none), "( -> int32)", "( -> 1)"),
    "no types, parentheses": (lambda: fc()(none), "( -> int32)", "( -> 1)"),
    "None for no parameter": (lambda: fc(none, None), "( -> int32)", "( -> 1)"),
    "an empty struct for no parameter": (lambda: fc(none, ()), "(<> -> int32)", "(none_arg -> 1)"),
    "two types for two parameters": (
        lambda: fc(two, np.int32, np.float32),
        "(<x=int32,y=float32> -> float32)",
        "(two_arg -> two_arg[1])",
    ),
    "two types for one parameter": (
        lambda: fc(identity, np.int32, np.float32),
        "(<int32,float32> -> <int32,float32>)",
        "(identity_arg -> identity_arg)",
    ),
    "one tuple for two parameters": (
        lambda: fc(both, (np.int32, np.float32)),
        "(<x=int32,y=float32> -> <int32,float32>)",
        "(both_arg -> <both_arg[0],both_arg[1]>)",
    ),
    "names in another order": (
        lambda: fc(both, collections.OrderedDict(y=np.int32, x=np.float32)),
        "(<y=int32,x=float32> -> <float32,int32>)",
        "(both_arg -> <both_arg[1],both_arg[0]>)",
    ),
    "a struct for one parameter": (
        lambda: fc(lambda p: p.x, PAIR),
        "(<x=int32,y=float32> -> int32)",
        "(<lambda>_arg -> <lambda>_arg[0])",
    ),
    "pairs given one by one nest": (
        lambda: fc(both, *PAIR),
        "(<x=<x=int32>,y=<y=float32>> -> <<x=int32>,<y=float32>>)",
        "(both_arg -> <both_arg[0],both_arg[1]>)",
    ),
    "a lambda": (
        lambda: fc(lambda x: x, np.int32),
        "(int32 -> int32)",
        "(<lambda>_arg -> <lambda>_arg)",
    ),
    "a bound method": (
        lambda: fc(Callable_().method, np.int32),
        "(int32 -> int32)",
        "(method_arg -> method_arg)",
    ),
    "a callable object": (
        lambda: fc(Callable_(), np.int32),
        "(int32 -> int32)",
        "(FEDERATED_arg -> FEDERATED_arg)",
    ),
    "a partial with a positional": (
        lambda: fc(functools.partial(both, 5), np.int32),
        "(int32 -> <int32,int32>)",
        "(FEDERATED_arg -> <5,FEDERATED_arg>)",
    ),
}


@pytest.mark.parametrize("case", TRACED)
def test_traced(case: str) -> None:
    make, signature, text = TRACED[case]
    computation = make()
    assert str(computation.type_signature) == signature
    assert str(computation.to_building_block()) == text


def test_parameter_containers() -> None:
    given = fc(both, np.int32, np.int32).type_signature.parameter
    assert repr(given).endswith(" as OrderedDict")
    assert repr(fc(identity, np.int32, np.int32).type_signature.parameter).endswith("])")
    assert repr(fc(both, PAIR).type_signature.parameter).endswith("])")


def test_docstring_is_kept() -> None:
    assert fc(identity, np.int32).__doc__ == "Gives what it is given."
    assert fc(identity).__doc__ == "Gives what it is given."


def test_parameters_without_types_make_a_polymorphic_computation() -> None:
    assert isinstance(fc(two), PolymorphicComputation)
    assert repr(fc(two)) == "<polymorphic computation two(x: 'Any', y: 'Any') -> 'Any'>"


FIXED = (
    "\n  help: a computation has a fixed number of arguments, each given a type; wrap the function "
    "in one with plain parameters"
)


def default(x: Any = 1) -> Any:
    return x


def positional_only(x: Any, /) -> Any:
    return x


def keyword_only(*, x: Any) -> Any:
    return x


def many(*xs: Any) -> Any:
    return xs


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "keywords": (
        lambda: fc(identity, x=np.int32),
        "@tff.federated_computation was given 'x' by keyword, but takes types by position [E407]\n"
        "  help: give one type for each parameter of the function, in order",
    ),
    "no signature": (
        lambda: fc(max, np.int32),
        "the parameters of the function 'max' are not known to Python, so it cannot be "
        "traced [E401]\n  help: wrap it in a function of your own",
    ),
    "a default": (
        lambda: fc(default, np.int32),
        "the function 'default' cannot be traced: the parameter 'x' has a default value [E401]"
        + FIXED,
    ),
    "positional-only": (
        lambda: fc(positional_only, np.int32),
        "the function 'positional_only' cannot be traced: the parameter 'x' is positional-only "
        "[E401]" + FIXED,
    ),
    "keyword-only": (
        lambda: fc(keyword_only, np.int32),
        "the function 'keyword_only' cannot be traced: the parameter 'x' is keyword-only [E401]"
        + FIXED,
    ),
    "any number": (
        lambda: fc(many, np.int32),
        "the function 'many' cannot be traced: '*xs' stands for any number of arguments [E401]"
        + FIXED,
    ),
    "None among types": (
        lambda: fc(two, None, np.int32),
        "None is not a type, so it cannot be that of a parameter of the function 'two' [E407]"
        "\n  help: give the type of each parameter, such as np.int32",
    ),
    "too many types": (
        lambda: fc(two, np.int32, np.int32, np.int32),
        "the function 'two' has 2 parameters, 'x', 'y', but was given 3 types [E407]\n"
        "  help: give one type for each parameter",
    ),
    "a type for no parameter": (
        lambda: fc(none, np.int32),
        "the function 'none' has no parameters, but was given a type for one [E407]\n"
        "  help: drop the types, or give the function parameters",
    ),
    "None for a parameter": (
        lambda: fc(identity, None),
        "the function 'identity' has the parameter 'x', but was given None for its type [E407]\n"
        "  help: give its type, or drop the parameter",
    ),
    "a type variable for a parameter": (
        lambda: fc(identity, [tff.types.AbstractType("T")]),
        "a parameter cannot be of type `<T>`, which holds a type variable [E109]\n"
        "  help: leave the types out; the computation is then traced for each type it is used at",
    ),
    "an empty name": (
        lambda: fc(identity, [[("", np.int32)], np.int32]),
        "an element of `<<=int32>,int32>` has an empty name, which no file can keep [E107]\n"
        "  help: name it, or leave the name out",
    ),
    "one tensor for two parameters": (
        lambda: fc(two, np.int32),
        "the function 'two' has 2 parameters, 'x', 'y', but was given the one type `int32` [E407]\n"
        "  help: give 2 types, or a struct of 2 elements",
    ),
    "other names": (
        lambda: fc(two, [("x", np.int32), ("z", np.int32)]),
        "the function 'two' has the parameters 'x', 'y', but was given the type "
        "`<x=int32,z=int32>`, whose elements have other names [E407]\n"
        "  help: name all elements after the parameters, or none",
    ),
    "not callable": (
        lambda: fc()(5),
        "@tff.federated_computation decorates Python functions, but was given an object of class "
        "'int' [E416]"
        "\n  help: decorate a function, written with def or lambda",
    ),
    "decorated twice": (
        lambda: fc(np.int32)(fc(identity, np.int32)),
        "@tff.federated_computation decorates Python functions, but was given an object of class "
        "'Computation' [E416]"
        "\n  help: call a computation as it is, without a second decorator",
    ),
    "nothing returned": (
        lambda: fc(lambda x: None, np.int32),
        "'<lambda>' returned None, which is not a value of a program [E415]\n"
        "  help: return the result; a function without a return statement returns None",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, text = REFUSED[case]
    assert str(error_without_place(TffcError, make)) == text


def test_refused_even_without_types() -> None:
    assert "has a default value [E401]" in str(error_without_place(TffcError, lambda: fc(default)))


def test_class_of_none_returned() -> None:
    with pytest.raises(ValueError, match="E415"):
        fc(lambda x: None, np.int32)


def test_returned_none_names_the_function_and_its_line() -> None:
    def forgets(x: Any) -> None:
        pass

    with pytest.raises(tff_error()) as caught:
        fc(forgets, np.int32)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert caught.value.span.line == forgets.__code__.co_firstlineno


def tff_error() -> Any:
    from tffc.support.errors import TffcError

    return TffcError


@pytest.mark.parametrize("decorator", [tff.federated_computation, tff.tensorflow.computation])
@pytest.mark.parametrize("given", [(5,), (10, 20), (np.int32, "int32")])
def test_what_is_no_type_is_refused_before_there_is_a_function(
    decorator: Any, given: tuple[Any, ...]
) -> None:
    with pytest.raises(TypeError, match="is not a type, nor can it be read as one"):
        decorator(*given)
