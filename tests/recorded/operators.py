"""More programs, one theme: the operators, and TensorFlow computations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.recorded.programs import (
    BOOL,
    FLOAT,
    INT,
    LONG,
    MODEL,
    NESTED,
    PAIR,
    STR,
    VECTOR,
    Language,
    OrderedDict,
    Point,
    Program,
    both,
    default,
    returns_nothing,
    single,
)


def select(t: Language, function: Any, *types: Any, secure: bool = False) -> Any:
    """A selection with keys, a limit and values of the types, or the usual ones."""
    usual = (t.clients(VECTOR), t.server(INT), t.server(MODEL))
    types = tuple(given or wanted for given, wanted in zip(types or usual, usual, strict=True))
    operator = t.tff.federated_secure_select if secure else t.tff.federated_select
    return t.fc(lambda k, m, d: operator(k, m, d, function), *types)


def aggregate(t: Language, zero: Any, *functions: Any, member: Any = INT) -> Any:
    return t.fc(lambda x: t.tff.federated_aggregate(x, zero, *functions), t.clients(member))


def aggregate_from_computed_zero(t: Language) -> Any:
    def f(x: Any) -> Any:
        return t.tff.federated_aggregate(x, t.one(), t.add_pair, t.add_pair, t.ident)

    return t.fc(f, t.clients(INT))


def growing(t: Language) -> Any:
    """An aggregation whose accumulator is more general than the zero it starts from."""
    import tensorflow as tf

    any_size = (INT, [None])
    append = t.tfc(lambda a, b: tf.concat([a, [b]], 0), any_size, INT)
    join = t.tfc(lambda a, b: tf.concat([a, b], 0), any_size, any_size)
    report = t.tfc(lambda a: a, any_size)
    return aggregate(t, np.zeros([0], INT), append, join, report)


def modular(t: Language, modulus: Any, member: Any) -> Any:
    operator = t.tff.backends.mapreduce.federated_secure_modular_sum
    return t.fc(lambda x: operator(x, modulus), t.clients(member))


def seed_example(t: Language) -> Any:
    def simple(server_value: Any) -> Any:
        client_values = t.tff.federated_broadcast(server_value)
        client_values = t.tff.federated_map(t.ident, client_values)
        return t.tff.federated_sum(client_values)

    return t.fc(simple, t.server(INT))


PLACING: dict[str, Program] = {
    "the example of the documents": seed_example,
    "broadcast": lambda t: t.fc(lambda x: t.tff.federated_broadcast(x), t.server(INT)),
    "broadcast of a list": lambda t: t.fc(
        lambda x, y: t.tff.federated_broadcast([x, y]), t.server(INT), t.server(FLOAT)
    ),
    "value at the clients": lambda t: t.fc(lambda: t.tff.federated_value(1, t.tff.CLIENTS)),
    "value at the server": lambda t: t.fc(
        lambda: t.tff.federated_value([1, (2.0, "a")], t.tff.SERVER)
    ),
    "value, broadcast": lambda t: t.fc(
        lambda: t.tff.federated_broadcast(t.tff.federated_value(1, t.tff.SERVER))
    ),
    "value of a parameter": lambda t: t.fc(lambda x: t.tff.federated_value(x, t.tff.SERVER), INT),
    "eval at the clients": lambda t: t.fc(lambda: t.tff.federated_eval(t.one, t.tff.CLIENTS)),
    "eval at the server": lambda t: t.fc(
        lambda: t.tff.federated_eval(t.fc(lambda: 3), t.tff.SERVER)
    ),
    "map at the clients": lambda t: t.fc(lambda x: t.tff.federated_map(t.ident, x), t.clients(INT)),
    "map at the clients, all equal": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.ident, x), t.clients(INT, True)
    ),
    "map at the server": lambda t: t.fc(lambda x: t.tff.federated_map(t.ident, x), t.server(INT)),
    "map over a tuple": lambda t: t.fc(
        lambda x, y: t.tff.federated_map(t.add, (x, y)), t.clients(INT), t.clients(INT, True)
    ),
    "map over a tuple at the server": lambda t: t.fc(
        lambda x, y: t.tff.federated_map(t.add, (x, y)), t.server(INT), t.server(INT)
    ),
    "map over attributes": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.add, (x.a, x.b)), t.clients([("a", INT), ("b", INT)])
    ),
    "map of a polymorphic function of one": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.fc(single), x), t.clients([INT, FLOAT])
    ),
    "map of a polymorphic function of two": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.tfc(both), x), t.clients([INT, FLOAT])
    ),
    "map of a function value": lambda t: t.fc(
        lambda g, x: t.tff.federated_map(g, x), t.function(INT, FLOAT), t.clients(INT)
    ),
    "map to named": lambda t: t.fc(lambda x: t.tff.federated_map(t.add, x), t.clients([INT, INT])),
    "zip": lambda t: t.fc(
        lambda x, y: t.tff.federated_zip([x, y]), t.clients(INT), t.clients(FLOAT, True)
    ),
    "zip of one": lambda t: t.fc(lambda x: t.tff.federated_zip([x]), t.clients(INT)),
    "zip, nested": lambda t: t.fc(
        lambda x, y: t.tff.federated_zip([x, OrderedDict(a=y, e=())]),
        t.clients(INT),
        t.clients(INT),
    ),
    "zip at the server": lambda t: t.fc(
        lambda x, y: t.tff.federated_zip(OrderedDict(p=x, q=y)),
        t.server(INT),
        t.server(INT, False),
    ),
    "zip, then map": lambda t: t.fc(
        lambda x, y: t.tff.federated_map(t.add, t.tff.federated_zip((x, y))),
        t.clients(INT),
        t.clients(INT),
    ),
    "select": lambda t: select(t, t.pick),
    "select, polymorphic": lambda t: select(t, t.tfc(lambda d, i: d[i])),
    "select, secure": lambda t: select(t, t.pick, secure=True),
    "select, keys all equal": lambda t: select(t, t.pick, t.clients(VECTOR, True), None, None),
    "select from a struct": lambda t: t.fc(
        lambda k, m, d: t.tff.federated_select(k, m, [d, d], t.tfc(lambda d, i: d[0][i])),
        t.clients(VECTOR),
        t.server(INT),
        t.server(MODEL),
    ),
    "broadcast of a client's value": lambda t: t.fc(
        lambda x: t.tff.federated_broadcast(x), t.clients(INT)
    ),
    "broadcast of an unplaced value": lambda t: t.fc(lambda x: t.tff.federated_broadcast(x), INT),
    "broadcast of maybe different values": lambda t: t.fc(
        lambda x: t.tff.federated_broadcast(x), t.server(INT, False)
    ),
    "value of a federated value": lambda t: t.fc(
        lambda x: t.tff.federated_value(x, t.tff.CLIENTS), t.server(INT)
    ),
    "value of a function": lambda t: t.fc(lambda: t.tff.federated_value(t.ident, t.tff.SERVER)),
    "value of None": lambda t: t.fc(lambda: t.tff.federated_value(None, t.tff.SERVER)),
    "value placed nowhere": lambda t: t.fc(lambda: t.tff.federated_value(1, None)),
    "eval with a parameter": lambda t: t.fc(lambda: t.tff.federated_eval(t.ident, t.tff.SERVER)),
    "eval, polymorphic": lambda t: t.fc(lambda: t.tff.federated_eval(t.tfc(single), t.tff.SERVER)),
    "eval of a Python function": lambda t: t.fc(
        lambda: t.tff.federated_eval(lambda: 1, t.tff.SERVER)
    ),
    "eval to a federated value": lambda t: t.fc(
        lambda: t.tff.federated_eval(
            t.fc(lambda: t.tff.federated_value(1, t.tff.SERVER)), t.tff.SERVER
        )
    ),
    "eval placed nowhere": lambda t: t.fc(lambda: t.tff.federated_eval(t.one, "server")),
    "map of a Python function": lambda t: t.fc(
        lambda x: t.tff.federated_map(lambda y: y, x), t.clients(INT)
    ),
    "map with swapped arguments": lambda t: t.fc(
        lambda x: t.tff.federated_map(x, t.ident), t.clients(INT)
    ),
    "map over an unplaced value": lambda t: t.fc(lambda x: t.tff.federated_map(t.ident, x), INT),
    "map over both placements": lambda t: t.fc(
        lambda x, y: t.tff.federated_map(t.add, (x, y)), t.clients(INT), t.server(INT)
    ),
    "map of a function without parameter": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.one, x), t.clients(INT)
    ),
    "map of another type": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.ident, x), t.clients(FLOAT)
    ),
    "map from named to unnamed": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.add_pair, x), t.clients([("a", INT), ("b", INT)])
    ),
    "map over maybe different values at the server": lambda t: t.fc(
        lambda x: t.tff.federated_map(t.ident, x), t.server(INT, False)
    ),
    "zip of a federated value": lambda t: t.fc(lambda x: t.tff.federated_zip(x), t.clients(INT)),
    "zip of nothing": lambda t: t.fc(lambda: t.tff.federated_zip([])),
    "zip of both placements": lambda t: t.fc(
        lambda x, y: t.tff.federated_zip([x, y]), t.clients(INT), t.server(INT)
    ),
    "zip with an unplaced value": lambda t: t.fc(
        lambda x, y: t.tff.federated_zip([x, y]), t.clients(INT), INT
    ),
    "select with a constant limit": lambda t: t.fc(
        lambda k, d: t.tff.federated_select(k, 10, d, t.pick), t.clients(VECTOR), t.server(MODEL)
    ),
    "select with wide keys": lambda t: select(t, t.pick, t.clients((LONG, [3])), None, None),
    "select with keys of unknown number": lambda t: select(
        t, t.pick, t.clients((INT, [None])), None, None
    ),
    "select with one key": lambda t: select(t, t.pick, t.clients(INT), None, None),
    "select with keys at the server": lambda t: select(t, t.pick, t.server(VECTOR), None, None),
    "select from clients": lambda t: select(t, t.pick, None, None, t.clients(MODEL)),
    "select with a wide limit": lambda t: select(t, t.pick, None, t.server(LONG), None),
    "select with a function of one": lambda t: select(t, t.ident),
    "select with a Python function": lambda t: select(t, lambda d, i: d),
}

AGGREGATIONS: dict[str, Program] = {
    "sum": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.clients(INT)),
    "sum, all equal": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.clients(INT, True)),
    "sum of a list": lambda t: t.fc(
        lambda x, y: t.tff.federated_sum([x, y]), t.clients(INT), t.clients(FLOAT)
    ),
    "sum of a mapping": lambda t: t.fc(
        lambda x, y: t.tff.federated_sum(OrderedDict(a=x, b=y)), t.clients(INT), t.clients(FLOAT)
    ),
    "sum of an empty struct": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.clients([])),
    "mean": lambda t: t.fc(lambda x: t.tff.federated_mean(x), t.clients(FLOAT)),
    "mean of vectors of unknown size": lambda t: t.fc(
        lambda x: t.tff.federated_mean(x), t.clients((FLOAT, [None]))
    ),
    "mean of complex numbers": lambda t: t.fc(
        lambda x: t.tff.federated_mean(x), t.clients(np.complex64)
    ),
    "weighted mean": lambda t: t.fc(
        lambda x, w: t.tff.federated_mean(x, w), t.clients([FLOAT, FLOAT]), t.clients(INT)
    ),
    "weighted mean by name": lambda t: t.fc(
        lambda x, w: t.tff.federated_mean(x, weight=w),
        t.clients(FLOAT, True),
        t.clients(FLOAT, True),
    ),
    "weighted mean of a list": lambda t: t.fc(
        lambda x, w: t.tff.federated_mean([x, w], w), t.clients(FLOAT), t.clients(FLOAT)
    ),
    "min": lambda t: t.fc(lambda x: t.tff.federated_min(x), t.clients(INT)),
    "max of a struct": lambda t: t.fc(lambda x: t.tff.federated_max(x), t.clients(PAIR)),
    "aggregate": lambda t: aggregate(t, 0, t.add, t.add, t.ident),
    "aggregate, functions of a pair": lambda t: aggregate(t, 0, t.add_pair, t.add_pair, t.ident),
    "aggregate, polymorphic": lambda t: aggregate(t, 0, t.add_any, t.add_any, t.tfc(single)),
    "aggregate, federated computations": lambda t: aggregate(
        t, 0, t.fc(lambda a, b: a, INT, INT), t.fc(lambda a, b: a), t.fc(single)
    ),
    "aggregate from a computed zero": aggregate_from_computed_zero,
    "aggregate, growing": growing,
    "secure sum": lambda t: t.fc(lambda x: t.tff.federated_secure_sum(x, 8), t.clients(LONG)),
    "secure sum, repeated limit": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, 8), t.clients(NESTED)
    ),
    "secure sum, limits like the value": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, OrderedDict(a=1, b=[2, 3])), t.clients(NESTED)
    ),
    "secure sum, limit of a parameter": lambda t: t.fc(
        lambda x, m: t.tff.federated_secure_sum(x, max_input=m), t.clients(NESTED), INT
    ),
    "secure sum, limit for a struct inside": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, OrderedDict(a=1, b=2)), t.clients(NESTED)
    ),
    "secure sum, wide limit": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, np.int64(8)), t.clients(INT)
    ),
    "secure sum, limit in a vector of one": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, np.array([8], INT)), t.clients(INT)
    ),
    "secure sum of an empty struct": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, 8), t.clients([])
    ),
    "secure sum of bits": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum_bitwidth(x, 8), t.clients(INT)
    ),
    "secure sum of bits of a list": lambda t: t.fc(
        lambda x, y: t.tff.federated_secure_sum_bitwidth([x, y], bitwidth=8),
        t.clients(INT),
        t.clients(INT),
    ),
    "secure modular sum": lambda t: modular(t, 8, INT),
    "secure modular sum of a struct": lambda t: modular(t, 8, NESTED),
    "sum at the server": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.server(INT)),
    "sum of an unplaced value": lambda t: t.fc(lambda x: t.tff.federated_sum(x), INT),
    "sum of booleans": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.clients(BOOL)),
    "sum of strings": lambda t: t.fc(lambda x: t.tff.federated_sum(x), t.clients(STR)),
    "sum of unknown shape": lambda t: t.fc(
        lambda x: t.tff.federated_sum(x), t.clients((INT, [None]))
    ),
    "sum of sequences": lambda t: t.fc(
        lambda x: t.tff.federated_sum(x), t.clients(t.sequence(INT))
    ),
    "sum of nothing": lambda t: t.fc(lambda: t.tff.federated_sum([])),
    "mean of integers": lambda t: t.fc(lambda x: t.tff.federated_mean(x), t.clients(INT)),
    "mean at the server": lambda t: t.fc(lambda x: t.tff.federated_mean(x), t.server(FLOAT)),
    "mean with a constant weight": lambda t: t.fc(
        lambda x: t.tff.federated_mean(x, 1), t.clients(FLOAT)
    ),
    "mean with a boolean weight": lambda t: t.fc(
        lambda x, w: t.tff.federated_mean(x, w), t.clients(FLOAT), t.clients(BOOL)
    ),
    "mean with a vector for a weight": lambda t: t.fc(
        lambda x, w: t.tff.federated_mean(x, w), t.clients(FLOAT), t.clients((FLOAT, [2]))
    ),
    "min of booleans": lambda t: t.fc(lambda x: t.tff.federated_min(x), t.clients(BOOL)),
    "max of complex numbers": lambda t: t.fc(
        lambda x: t.tff.federated_max(x), t.clients(np.complex64)
    ),
    "max at the server": lambda t: t.fc(lambda x: t.tff.federated_max(x), t.server(INT)),
    "aggregate from a function": lambda t: aggregate(t, t.one, t.add, t.add, t.ident),
    "aggregate from a float": lambda t: aggregate(t, 0.0, t.add, t.add, t.ident),
    "aggregate with accumulate of one": lambda t: aggregate(t, 0, t.ident, t.add, t.ident),
    "aggregate with merge of one": lambda t: aggregate(t, 0, t.add, t.ident, t.ident),
    "aggregate with report of two": lambda t: aggregate(t, 0, t.add, t.add, t.add),
    "aggregate with a Python function": lambda t: aggregate(t, 0, both, t.add, t.ident),
    "aggregate with a constant": lambda t: aggregate(t, 0, 1, t.add, t.ident),
    "aggregate of another type": lambda t: aggregate(t, 0, t.add, t.add, t.ident, member=FLOAT),
    "aggregate to another type": lambda t: aggregate(
        t, 0, t.tfc(lambda a, b: 1.0, INT, INT), t.add, t.ident
    ),
    "secure sum of floats": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, 8), t.clients(FLOAT)
    ),
    "secure sum at the server": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, 8), t.server(INT)
    ),
    "secure sum with a float": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum(x, 8.0), t.clients(INT)
    ),
    "secure sum with a federated limit": lambda t: t.fc(
        lambda x, m: t.tff.federated_secure_sum(x, m), t.clients(INT), t.server(INT)
    ),
    "secure sum of bits with other names": lambda t: t.fc(
        lambda x: t.tff.federated_secure_sum_bitwidth(x, [1, [2, 3]]), t.clients(NESTED)
    ),
    "secure modular sum of floats": lambda t: modular(t, 8, FLOAT),
    "secure modular sum by a vector": lambda t: modular(t, np.array([8], INT), INT),
}

SEQUENCES: dict[str, Program] = {
    "sequence map": lambda t: t.fc(lambda s: t.tff.sequence_map(t.ident, s), t.sequence(INT)),
    "sequence map at the clients": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.ident, s), t.clients(t.sequence(INT))
    ),
    "sequence map at the server": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.ident, s), t.server(t.sequence(INT))
    ),
    "sequence map, more general": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.tfc(single, (INT, [None])), s), t.sequence(VECTOR)
    ),
    "sequence reduce": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.add), t.sequence(INT)
    ),
    "sequence reduce by a function of a pair": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.add_pair), t.sequence(INT)
    ),
    "sequence reduce from a computed zero": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, t.one(), t.add), t.sequence(INT)
    ),
    "sequence reduce at the clients": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, t.tff.federated_value(0, t.tff.CLIENTS), t.add),
        t.clients(t.sequence(INT)),
    ),
    "sequence reduce at the server": lambda t: t.fc(
        lambda s, z: t.tff.sequence_reduce(s, z, t.add_pair),
        t.server(t.sequence(INT)),
        t.server(INT),
    ),
    "sequence sum": lambda t: t.fc(lambda s: t.tff.sequence_sum(s), t.sequence(PAIR)),
    "sequence sum at the clients": lambda t: t.fc(
        lambda s: t.tff.sequence_sum(s), t.clients(t.sequence(INT), True)
    ),
    "sequence sum at the server": lambda t: t.fc(
        lambda s: t.tff.sequence_sum(s), t.server(t.sequence(INT))
    ),
    "sequence map, polymorphic": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.tfc(single), s), t.sequence(INT)
    ),
    "sequence map of another type": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.ident, s), t.sequence(FLOAT)
    ),
    "sequence map over a tensor": lambda t: t.fc(lambda s: t.tff.sequence_map(t.ident, s), INT),
    "sequence map over tensors at the clients": lambda t: t.fc(
        lambda s: t.tff.sequence_map(t.ident, s), t.clients(INT)
    ),
    "sequence map of a Python function": lambda t: t.fc(
        lambda s: t.tff.sequence_map(lambda x: x, s), t.sequence(INT)
    ),
    "sequence reduce, polymorphic": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.add_any), t.sequence(INT)
    ),
    "sequence reduce from a float": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0.0, t.add), t.sequence(INT)
    ),
    "sequence reduce from an unplaced zero": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.add), t.clients(t.sequence(INT))
    ),
    "sequence reduce from a zero elsewhere": lambda t: t.fc(
        lambda s, z: t.tff.sequence_reduce(s, z, t.add), t.clients(t.sequence(INT)), t.server(INT)
    ),
    "sequence reduce by a function of one": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.ident), t.sequence(INT)
    ),
    "sequence reduce over a tensor": lambda t: t.fc(
        lambda s: t.tff.sequence_reduce(s, 0, t.add), INT
    ),
    "sequence sum of booleans": lambda t: t.fc(lambda s: t.tff.sequence_sum(s), t.sequence(BOOL)),
    "sequence sum over a tensor": lambda t: t.fc(lambda s: t.tff.sequence_sum(s), INT),
}


def tensorflow(program: Any) -> Program:
    """A program that is given TensorFlow besides the words."""

    def run(t: Language) -> Any:
        import tensorflow as tf

        return program(t, tf)

    return run


def with_variable(t: Language, tf: Any) -> Any:
    def count(x: Any) -> Any:
        total = tf.Variable(0, name="total")
        total.assign_add(x)
        return total

    return t.tfc(count, INT)


TENSORFLOW: dict[str, Program] = {
    "tensors": lambda t: t.tfc(lambda x: (x, [x, {"k": x}]), INT),
    "constants": lambda t: t.tfc(lambda: (1, 2**40, 0.5, True, "s", np.int8(1))),
    "no parameter": lambda t: t.tfc(lambda: 1),
    "named parameters": lambda t: t.tfc(both, INT, (FLOAT, [None, 2])),
    "parameters in another order": lambda t: t.tfc(both, OrderedDict(y=INT, x=FLOAT)),
    "struct parameter": lambda t: t.tfc(lambda p: p["a"], OrderedDict(PAIR)),
    "empty struct": lambda t: t.tfc(single, ()),
    "namedtuple parameter": lambda t: t.tfc(lambda p: p.y, Point(INT, FLOAT)),
    "namedtuple result": lambda t: t.tfc(lambda x: Point(x, x), INT),
    "struct result": lambda t: t.tfc(lambda x: t.tff.structure.Struct([("a", x), (None, x)]), INT),
    "unknown rank": lambda t: t.tfc(single, (INT, None)),
    "call of another": lambda t: t.tfc(lambda x: t.add(x, t.ident(1)), INT),
    "polymorphic call of another": lambda t: t.tfc(lambda x: t.add_any(x, x), FLOAT),
    "strings": tensorflow(lambda t, tf: t.tfc(lambda x: tf.strings.length(x), STR)),
    "TensorFlow's types": tensorflow(
        lambda t, tf: t.tfc(both, tf.int32, tf.TensorSpec([None], tf.float32))
    ),
    "dataset parameter": tensorflow(
        lambda t, tf: t.tfc(lambda d: d.reduce(0, lambda a, b: a + b), t.sequence(INT))
    ),
    "dataset of structs": tensorflow(
        lambda t, tf: t.tfc(lambda d: d.map(lambda e: e["a"]), t.sequence(OrderedDict(PAIR)))
    ),
    "dataset result": tensorflow(lambda t, tf: t.tfc(lambda: tf.data.Dataset.range(3).batch(2))),
    "variable": tensorflow(with_variable),
    "tf.function": tensorflow(lambda t, tf: t.tfc(tf.function(lambda x: x + 1), INT)),
    "ragged result": tensorflow(lambda t, tf: t.tfc(lambda: tf.ragged.constant([[1, 2], [3]]))),
    "sparse result": tensorflow(
        lambda t, tf: t.tfc(lambda: tf.sparse.from_dense([[1, 0], [0, 2]]))
    ),
    "nothing returned": lambda t: t.tfc(returns_nothing, INT),
    "a default": lambda t: t.tfc(default, INT),
    "federated parameter": lambda t: t.tfc(single, t.clients(INT)),
    "function parameter": lambda t: t.tfc(single, t.function(INT, INT)),
    "set returned": lambda t: t.tfc(lambda x: {1}, INT),
    "function returned": lambda t: t.tfc(lambda x: single, INT),
    "nested None returned": lambda t: t.tfc(lambda x: [None], INT),
    "complex number returned": lambda t: t.tfc(lambda: 1j),
    "call of a federated computation": lambda t: t.tfc(lambda x: t.fc(single, INT)(x), INT),
    "call with a constant of another kind": lambda t: t.tfc(lambda x: t.ident(1.0), INT),
    "operator inside": lambda t: t.tfc(lambda x: t.tff.federated_sum(x), INT),
    "seed of the graph": tensorflow(
        lambda t, tf: t.tfc(lambda: (tf.random.set_seed(1), tf.random.uniform([]))[1])
    ),
}
