"""Small programs that TFF and tffc both trace, to be compared.

Each is a function of a module: `tensorflow_federated` or `tffc`.  It gives a computation, or fails
as the module refuses the program.  Nothing here is particular to either of the two.
"""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

INT, LONG, FLOAT, BOOL, STR = np.int32, np.int64, np.float32, np.bool_, np.str_
VECTOR, MODEL = (INT, [3]), (FLOAT, [10])
PAIR = [("a", INT), ("b", FLOAT)]
NESTED = [("a", INT), ("b", [INT, LONG])]
OrderedDict = collections.OrderedDict


class Point(NamedTuple):
    x: Any
    y: Any


class Language:
    """The words that programs are written in, of one of the two modules."""

    def __init__(self, tff: Any) -> None:
        self.tff = tff
        self.fc = tff.federated_computation
        self.tfc = tff.tensorflow.computation
        self.sequence = tff.SequenceType
        self.function = tff.FunctionType
        self.ident = self.tfc(lambda a: a, INT)
        self.add = self.tfc(lambda a, b: a + b, INT, INT)
        self.add_pair = self.tfc(lambda p: p[0] + p[1], [INT, INT])
        self.add_any = self.tfc(lambda a, b: a + b)
        self.one = self.tfc(lambda: 1)
        self.wide = self.tfc(lambda a: a, LONG)
        self.pick = self.tfc(lambda d, i: d[i], MODEL, INT)

    def clients(self, member: Any, all_equal: bool | None = None) -> Any:
        return self.tff.FederatedType(member, self.tff.CLIENTS, all_equal)

    def server(self, member: Any, all_equal: bool | None = None) -> Any:
        return self.tff.FederatedType(member, self.tff.SERVER, all_equal)

    def call(self, parameter: Any, argument: Callable[..., Any], *types: Any) -> Any:
        """A program that calls an identity with a parameter of one type."""
        callee = self.fc(lambda y: y, parameter)
        if len(types) == 2:
            return self.fc(lambda x, y: callee(argument(x, y)), *types)
        return self.fc(lambda x: callee(argument(x)), *types)


Program = Callable[[Language], Any]


def two(x: Any, y: Any) -> Any:
    return y


def both(x: Any, y: Any) -> Any:
    return (x, y)


def single(x: Any) -> Any:
    return x


def none() -> Any:
    return 1


def default(x: Any = 1) -> Any:
    return x


def positional_only(x: Any, /) -> Any:
    return x


def keyword_only(*, x: Any) -> Any:
    return x


def many(*xs: Any) -> Any:
    return xs


class Instance:
    def __call__(self, x: Any) -> Any:
        return x

    def method(self, x: Any) -> Any:
        return x


def returns_nothing(x: Any) -> None:
    pass


DECORATORS: dict[str, Program] = {
    "function and types": lambda t: t.fc(two, INT, FLOAT),
    "decorator with types": lambda t: t.fc(INT, FLOAT)(two),
    "decorator without parentheses": lambda t: t.fc(none),
    "decorator with empty parentheses": lambda t: t.fc()(none),
    "None for no parameter": lambda t: t.fc(none, None),
    "empty struct for no parameter": lambda t: t.fc(none, ()),
    "two types for one parameter": lambda t: t.fc(single, INT, FLOAT),
    "one tuple for two parameters": lambda t: t.fc(both, (INT, FLOAT)),
    "one list for two parameters": lambda t: t.fc(both, [INT, FLOAT]),
    "names in another order": lambda t: t.fc(both, OrderedDict(y=INT, x=FLOAT)),
    "named pairs for two parameters": lambda t: t.fc(both, [("x", INT), ("y", FLOAT)]),
    "pairs one by one nest": lambda t: t.fc(both, ("x", INT), ("y", FLOAT)),
    "struct for one parameter": lambda t: t.fc(lambda p: p.a, PAIR),
    "lambda": lambda t: t.fc(lambda x: x, INT),
    "bound method": lambda t: t.fc(Instance().method, INT),
    "callable object": lambda t: t.fc(Instance(), INT),
    "partial": lambda t: t.fc(functools.partial(both, 5), INT),
    "class as first type": lambda t: t.fc(np.int32)(single),
    "empty struct for one parameter": lambda t: t.fc(single, ()),
    "keyword for the decorator": lambda t: t.fc(single, INT, name="f"),
    "partial with keyword": lambda t: t.fc(functools.partial(both, y=5), INT),
    "default value": lambda t: t.fc(default, INT),
    "default value, no types": lambda t: t.fc(default),
    "positional-only": lambda t: t.fc(positional_only, INT),
    "keyword-only": lambda t: t.fc(keyword_only, INT),
    "any number": lambda t: t.fc(many, INT),
    "type for no parameter": lambda t: t.fc(none, INT),
    "two types for no parameter": lambda t: t.fc(none, INT, INT),
    "None for a parameter": lambda t: t.fc(single, None),
    "None among types": lambda t: t.fc(two, None, INT),
    "too many types": lambda t: t.fc(two, INT, INT, INT),
    "tensor for two parameters": lambda t: t.fc(two, INT),
    "short struct for two parameters": lambda t: t.fc(two, [INT]),
    "other names": lambda t: t.fc(two, [("x", INT), ("z", INT)]),
    "mixed names": lambda t: t.fc(two, [("x", INT), INT]),
    "not a function": lambda t: t.fc()(5),
    "not a type": lambda t: t.fc(single, 5),
    "decorated twice": lambda t: t.fc(t.ident, INT),
}


def nested_names(t: Language) -> Any:
    def outer(x: Any) -> Any:
        def outer(x: Any) -> Any:
            def outer(x: Any) -> Any:
                return x

            return t.fc(outer, INT)(x)

        return t.fc(outer, INT)(x)

    return t.fc(outer, INT)


def captures(t: Language) -> Any:
    def capture(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return (x, t.ident(y))

        return t.fc(inner, INT)(x)

    return t.fc(capture, INT)


def leaks(t: Language) -> Any:
    kept = []

    def first(x: Any) -> Any:
        kept.append(t.ident(x))
        return x

    t.fc(first, INT)
    return t.fc(lambda x: kept[0], INT)


def unused_bindings(t: Language) -> Any:
    def unused(x: Any) -> Any:
        t.ident(x)
        return t.ident(x)

    return t.fc(unused, INT)


def siblings(t: Language) -> Any:
    def inner(x: Any) -> Any:
        return x

    def outer(x: Any) -> Any:
        return t.fc(inner, INT)(t.fc(inner, INT)(x))

    return t.fc(outer, INT)


CALLS: dict[str, Program] = {
    "by position": lambda t: t.fc(lambda x: t.add(x, 1), INT),
    "by name": lambda t: t.fc(lambda x: t.add(b=1, a=x), INT),
    "mixed arguments": lambda t: t.fc(lambda x: t.add(x, b=1), INT),
    "one tuple": lambda t: t.fc(lambda x: t.add((x, 1)), INT),
    "one mapping": lambda t: t.fc(lambda x: t.add(OrderedDict(a=x, b=1)), INT),
    "one struct": lambda t: t.fc(lambda x: t.add(x), [INT, INT]),
    "no argument": lambda t: t.fc(lambda x: t.one(), INT),
    "constant of the parameter's type": lambda t: t.fc(lambda: t.wide(1)),
    "constant array of unknown size": lambda t: t.call(
        (INT, [None]), lambda x: np.array([1, 2], INT), INT
    ),
    "constant array of unknown rank": lambda t: t.call(
        (INT, None), lambda x: np.array([1, 2], INT), INT
    ),
    "names added": lambda t: t.call(PAIR, lambda x: x, [INT, FLOAT]),
    "zipped at the clients": lambda t: t.call(
        t.clients([INT, INT]), lambda x: x, [t.clients(INT), t.clients(INT)]
    ),
    "zipped at the server": lambda t: t.call(
        t.server([INT, INT]), lambda x: x, [t.server(INT), t.server(INT)]
    ),
    "zipped with names": lambda t: t.call(
        t.clients(PAIR), lambda x: x, [t.clients(INT), t.clients(FLOAT)]
    ),
    "zipped inside a struct": lambda t: t.call(
        [t.clients([INT, INT])], lambda x: x, [[t.clients(INT), t.clients(INT)]]
    ),
    "zipped inside a named struct": lambda t: t.call(
        [("q", t.clients([INT, INT]))], lambda x: x, [("q", [t.clients(INT), t.clients(INT)])]
    ),
    "zipped inside a struct of two": lambda t: t.call(
        [t.clients([INT, INT]), INT], lambda x: x, [[t.clients(INT), t.clients(INT)], INT]
    ),
    "zipped list": lambda t: t.call(
        t.clients([INT, INT]), lambda x, y: [x, y], t.clients(INT), t.clients(INT)
    ),
    "nested functions of one name": nested_names,
    "captured value": captures,
    "leaked value": leaks,
    "unused bindings": unused_bindings,
    "siblings of one name": siblings,
    "function value": lambda t: t.fc(lambda g: g(1), t.function(INT, FLOAT)),
    "function value without argument": lambda t: t.fc(lambda g: g(), t.function(None, INT)),
    "function value by name": lambda t: t.fc(lambda g: g(b=1.0, a=1), t.function(PAIR, INT)),
    "function value by position": lambda t: t.fc(lambda g: g(1, 1.0), t.function(PAIR, INT)),
    "function value with a starred struct": lambda t: t.fc(
        lambda g, s: g(*s), t.function([INT, FLOAT], INT), [INT, FLOAT]
    ),
    "function value with a constant of another size": lambda t: t.fc(
        lambda g: g(1), t.function(LONG, INT)
    ),
    "polymorphic": lambda t: t.fc(lambda x: t.fc(lambda a: (a, a))(x), INT),
    "polymorphic by name": lambda t: t.fc(lambda x: t.fc(both)(x, y=2.0), INT),
    "polymorphic names in another order": lambda t: t.fc(lambda x: t.fc(both)(y=1, x=x), INT),
    "polymorphic TensorFlow": lambda t: t.fc(lambda x: t.add_any(x, 1), INT),
    "polymorphic with containers": lambda t: t.fc(lambda x: t.fc(single)([x, {"k": x}]), INT),
    "polymorphic with too few arguments": lambda t: t.fc(lambda x: t.fc(both)(x), INT),
    "polymorphic without arguments": lambda t: t.fc(lambda x: t.fc(both)(), INT),
    "missing argument": lambda t: t.fc(lambda x: t.add(a=x), INT),
    "no argument for a parameter": lambda t: t.fc(lambda x: t.ident(), INT),
    "no argument for an empty struct": lambda t: t.fc(lambda x: t.fc(single, ())(), INT),
    "None for an argument": lambda t: t.fc(lambda x: t.ident(None), INT),
    "argument for no parameter": lambda t: t.fc(lambda x: t.one(x), INT),
    "argument given twice": lambda t: t.fc(lambda x: t.add(x, a=1), INT),
    "too many arguments": lambda t: t.fc(lambda x: t.add(x, x, x), INT),
    "two arguments for a tensor": lambda t: t.fc(lambda x: t.ident(x, x), INT),
    "unknown argument": lambda t: t.fc(lambda x: t.add(x, c=1), INT),
    "mapping in another order": lambda t: t.fc(lambda x: t.add(OrderedDict(b=1, a=x)), INT),
    "constant of another kind": lambda t: t.fc(lambda x: t.add(x, 1.0), INT),
    "constant too large": lambda t: t.fc(lambda x: t.ident(2**40), INT),
    "boolean for an integer": lambda t: t.fc(lambda x: t.ident(True), INT),
    "constant for a federated parameter": lambda t: t.call(t.server(INT), lambda x: 1, INT),
    "constant for a struct": lambda t: t.call([INT], lambda x: 1, INT),
    "constant array for a scalar": lambda t: t.call(INT, lambda x: np.array([1], INT), INT),
    "constant scalar for unknown rank": lambda t: t.call((INT, None), lambda x: 1, INT),
    "list for a tensor": lambda t: t.call(INT, lambda x: [x], INT),
    "list for a sequence": lambda t: t.call(t.sequence(INT), lambda x: [x], INT),
    "list too short": lambda t: t.call([INT, INT], lambda x: [x], INT),
    "list too long": lambda t: t.call([INT], lambda x: [x, x], INT),
    "value of another type": lambda t: t.fc(lambda x: t.wide(x), INT),
    "federated for unplaced": lambda t: t.fc(lambda x: t.ident(x), t.clients(INT)),
    "unplaced for federated": lambda t: t.call(t.server(INT), lambda x: x, INT),
    "clients' for the server's": lambda t: t.call(t.server(INT), lambda x: x, t.clients(INT)),
    "maybe different for all equal": lambda t: t.call(
        t.clients(INT, True), lambda x: x, t.clients(INT)
    ),
    "names for unnamed": lambda t: t.call([INT, FLOAT], lambda x: x, PAIR),
    "zipped to all equal": lambda t: t.call(
        t.clients([INT], True), lambda x: x, [t.clients(INT, True)]
    ),
    "call of a tensor": lambda t: t.fc(lambda x: x(), INT),
    "function value without its argument": lambda t: t.fc(lambda g: g(), t.function(INT, INT)),
    "function value with an argument too many": lambda t: t.fc(
        lambda g: g(1), t.function(None, INT)
    ),
}

RESULTS: dict[str, Program] = {
    "list": lambda t: t.fc(lambda x: [x, x], INT),
    "tuple with a constant": lambda t: t.fc(lambda x: (x, 1), INT),
    "ordered dict": lambda t: t.fc(lambda x: OrderedDict(b=x, a=2.5), INT),
    "dict": lambda t: t.fc(lambda x: {"b": x, "a": 2.5}, INT),
    "namedtuple": lambda t: t.fc(lambda x: Point(x, 1), INT),
    "struct": lambda t: t.fc(lambda x: t.tff.structure.Struct([("a", x), (None, x)]), INT),
    "pairs": lambda t: t.fc(lambda x: [("a", x), ("b", x)], INT),
    "empty tuple": lambda t: t.fc(lambda x: (), INT),
    "empty dict": lambda t: t.fc(lambda x: {}, INT),
    "large integer": lambda t: t.fc(lambda: 2**40),
    "integer past 64 bits": lambda t: t.fc(lambda: 2**70),
    "array": lambda t: t.fc(lambda: np.array([1, 2])),
    "matrix": lambda t: t.fc(lambda: np.array([[1.5, 2], [3, 4]], FLOAT)),
    "string": lambda t: t.fc(lambda: "é"),
    "array of strings": lambda t: t.fc(lambda: np.array(["a", "bc"])),
    "boolean, float and complex": lambda t: t.fc(lambda: [True, 0.1, 1j, -0.0, float("nan")]),
    "NumPy scalars": lambda t: t.fc(
        lambda: [np.float16(0.1), np.float64(0.1), np.uint8(7), np.complex64(1j)]
    ),
    "computation": lambda t: t.fc(lambda: t.ident),
    "federated computation": lambda t: t.fc(lambda: t.fc(single, INT)),
    "a Python function": lambda t: t.fc(lambda: single),
    "a polymorphic computation": lambda t: t.fc(lambda: t.fc(single)),
    "nothing": lambda t: t.fc(returns_nothing, INT),
    "nested None": lambda t: t.fc(lambda: [None]),
    "set": lambda t: t.fc(lambda: {1}),
    "generator": lambda t: t.fc(lambda: (x for x in [1])),
    "range": lambda t: t.fc(lambda: range(3)),
    "class": lambda t: t.fc(lambda: np.int32),
    "key that is not a string": lambda t: t.fc(lambda: {1: 2}),
    "placement": lambda t: t.fc(lambda: t.tff.CLIENTS),
    "array of objects": lambda t: t.fc(lambda: np.array([b"a"], object)),
}

VALUES: dict[str, Program] = {
    "field": lambda t: t.fc(lambda v: v.b, PAIR),
    "field by key": lambda t: t.fc(lambda v: v["b"], PAIR),
    "position": lambda t: t.fc(lambda v: v[1], PAIR),
    "True as position": lambda t: t.fc(lambda v: v[True], PAIR),
    "slice": lambda t: t.fc(lambda v: v[:1], PAIR),
    "slice from the end": lambda t: t.fc(lambda v: v[-1:], PAIR),
    "slice backwards": lambda t: t.fc(lambda v: v[::-1], PAIR),
    "iteration": lambda t: t.fc(lambda v: list(v), PAIR),
    "reversed": lambda t: t.fc(lambda v: list(reversed(v)), PAIR),
    "length": lambda t: t.fc(lambda v: len(v), PAIR),
    "deep field": lambda t: t.fc(lambda v: v.b[1], NESTED),
    "equality": lambda t: t.fc(lambda v: v == 1, INT),
    "field at the clients": lambda t: t.fc(lambda v: v.b, t.clients(PAIR)),
    "field at the clients, all equal": lambda t: t.fc(lambda v: v.b, t.clients(PAIR, True)),
    "field at the server": lambda t: t.fc(lambda v: v["b"], t.server(PAIR)),
    "position at the clients": lambda t: t.fc(lambda v: v[0], t.clients(PAIR)),
    "slice at the clients": lambda t: t.fc(lambda v: v[1:], t.clients(PAIR)),
    "empty slice at the clients": lambda t: t.fc(lambda v: v[:0], t.clients(PAIR)),
    "slice backwards at the clients": lambda t: t.fc(lambda v: v[::-1], t.clients(PAIR)),
    "iteration at the server": lambda t: t.fc(lambda v: list(v), t.server(PAIR)),
    "length at the clients": lambda t: t.fc(lambda v: len(v), t.clients(PAIR)),
    "deep field at the clients": lambda t: t.fc(lambda v: v.b[1], t.clients(NESTED)),
    "unknown field": lambda t: t.fc(lambda v: v.c, PAIR),
    "unknown key": lambda t: t.fc(lambda v: v["c"], PAIR),
    "unknown field at the clients": lambda t: t.fc(lambda v: v.c, t.clients(PAIR)),
    "field of a tensor": lambda t: t.fc(lambda v: v.c, INT),
    "position past the end": lambda t: t.fc(lambda v: v[2], PAIR),
    "negative position": lambda t: t.fc(lambda v: v[-1], PAIR),
    "position past the end at the clients": lambda t: t.fc(lambda v: v[2], t.clients(PAIR)),
    "negative position at the clients": lambda t: t.fc(lambda v: v[-1], t.clients(PAIR)),
    "empty slice": lambda t: t.fc(lambda v: v[:0], PAIR),
    "position in a tensor": lambda t: t.fc(lambda v: v[0], INT),
    "float as position": lambda t: t.fc(lambda v: v[1.0], PAIR),
    "NumPy integer as position": lambda t: t.fc(lambda v: v[np.int32(1)], PAIR),
    "length of a tensor": lambda t: t.fc(lambda v: len(v), INT),
    "iteration over a tensor": lambda t: t.fc(lambda v: list(v), t.clients(INT)),
    "truth": lambda t: t.fc(lambda v: 1 if v else 2, BOOL),
    "multiplication": lambda t: t.fc(lambda v: v * 2, INT),
    "negation": lambda t: t.fc(lambda v: -v, INT),
    "comparison": lambda t: t.fc(lambda v: v < 1, INT),
    "assignment to an item": lambda t: t.fc(lambda v: operator.setitem(v, 0, 1), PAIR),
    "addition": lambda t: t.fc(lambda v: v + 1, INT),
    "field of maybe different values at the server": lambda t: t.fc(
        lambda v: v.a, t.server(PAIR, False)
    ),
}
