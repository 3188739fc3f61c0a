"""Programs on which `tffc verify` and `tffc prove` are to see planted faults.

python -m tests.planted_programs write FOLDER     traces them into messages
python -m tests.planted_programs try FOLDER       prints what verify and prove say, as JSON
"""

from __future__ import annotations

import collections
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from click.testing import CliRunner

import tffc as tff
from tffc.cli.application import application
from tffc.language import wire
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

NONE = tff.types.at_server(())
PAIR = tff.types.at_server((np.float32, np.float32))
FLOATS = tff.types.at_clients(np.float32)
INTS = tff.types.at_clients(np.int32)

Programs = Iterator[tuple[str, str, Any]]
"""Names, forms and programs."""

BOTH = ("mapreduce", "distribute-aggregate")


def programs() -> Programs:
    """Yield each program with each of its forms."""
    for make, forms in (
        (means_and_extremes, BOTH),
        (texts, BOTH),
        (secured, BOTH),
        (columns, BOTH),
        (states, BOTH),
        (initialized, BOTH),
        (pairs, BOTH),
        (unchanged, BOTH),
        (functions, BOTH),
        (kernels, BOTH),
        (shadowed, BOTH),
        (drawn, ("mapreduce",)),
        (drawn_at_server, ("distribute-aggregate",)),
        (selected, BOTH),
        (sent_back, ("broadcast",)),
    ):
        for form in forms:
            yield f"{make.__name__}-{form}", form, make().node


def section(*types: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for sections of these types."""
    return tff.tf_computation(*types)


def means_and_extremes() -> Any:
    @tff.federated_computation(NONE, tff.types.at_clients([np.float32, np.float32, np.int32]))
    def computed(state: Any, data: Any) -> Any:
        return state, (
            tff.federated_mean(data[0]),
            tff.federated_mean(data[0], weight=data[1]),
            tff.federated_min(data[2]),
            tff.federated_max(data[2]),
            tff.federated_max(data[0]),
            tff.federated_sum(data[2]),
        )

    return computed


def texts() -> Any:
    """An aggregation whose steps all differ, and do not commute."""
    tf = load_tensorflow()
    zero = section()(lambda: tf.constant("z"))
    accumulate = section(np.str_, np.str_)(lambda x, y: x + "<" + y + ">")
    merge = section(np.str_, np.str_)(lambda x, y: x + tf.strings.substr(y, 1, 10000))
    report = section(np.str_)(lambda x: x + "!")

    @tff.federated_computation(NONE, tff.types.at_clients(np.str_))
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_aggregate(data, zero(), accumulate, merge, report)

    return computed


def secured() -> Any:
    low = section(np.int32)(lambda x: x % 7)
    high = section(np.int32)(lambda x: x % 1000 + 8)

    @tff.federated_computation(NONE, INTS)
    def computed(state: Any, data: Any) -> Any:
        first, second = tff.federated_map(low, data), tff.federated_map(high, data)
        return state, (
            tff.federated_secure_sum_bitwidth(first, 3),
            tff.federated_secure_sum_bitwidth(second, 12),
            tff.federated_secure_sum(first, 7),
            tff.federated_secure_sum(second, 2000),
        )

    return computed


def columns() -> Any:
    """Sequences whose columns are not in the order of their names."""
    row = collections.OrderedDict(zip=np.int32, age=np.int32, sex=np.float32)
    shift = section(np.int32, np.int32)(lambda x, y: x + 3 * y)
    split = section(row, np.int32)(
        lambda r, k: collections.OrderedDict(up=r["zip"] + k, by=2 * r["age"], at=r["zip"] - k)
    )
    join = section(np.int32, collections.OrderedDict(up=np.int32, by=np.int32, at=np.int32))(
        lambda total, r: 5 * total + r["up"] - 2 * r["by"] + 7 * r["at"]
    )
    zero = section()(lambda: 1)

    @tff.federated_computation(tff.SequenceType(row), np.int32, np.int32)
    def work(rows: Any, k: Any, m: Any) -> Any:
        both = shift(k, m)

        @tff.federated_computation(row)
        def each(r: Any) -> Any:
            return split(r, both)

        @tff.federated_computation(
            np.int32, collections.OrderedDict(up=np.int32, by=np.int32, at=np.int32)
        )
        def add(total: Any, r: Any) -> Any:
            return shift(join(total, r), m)

        return tff.sequence_reduce(tff.sequence_map(each, rows), zero(), add)

    @tff.federated_computation(
        tff.types.at_server((np.int32, np.int32)), tff.types.at_clients(tff.SequenceType(row))
    )
    def computed(state: Any, data: Any) -> Any:
        k, m = tff.federated_broadcast(state[0]), tff.federated_broadcast(state[1])
        return state, tff.federated_sum(tff.federated_map(work, (data, k, m)))

    return computed


def states() -> Any:
    """Parts of the state that are sent, kept and changed, some of them used twice."""
    scale = section(np.float32, np.float32, np.float32)(lambda x, a, b: a * x - b)
    less = section(np.float32, np.float32)(lambda x, y: x - 2 * y)
    both = section(np.float32, np.float32)(lambda x, y: (x - y, x * y))

    @tff.federated_computation(PAIR, FLOATS)
    def computed(state: Any, data: Any) -> Any:
        prepared = tff.federated_map(less, (state[1], state[0]))
        sent = tff.federated_broadcast(state[0]), tff.federated_broadcast(prepared)
        worked = tff.federated_map(scale, (data, sent[0], sent[1]))
        total, most = tff.federated_sum(worked), tff.federated_max(worked)
        new = tff.federated_map(both, (total, tff.federated_map(less, (most, prepared))))
        return new, tff.federated_zip((most, state[1]))

    return computed


def pairs() -> Any:
    """A sequence that is reduced to two numbers."""
    pair = tff.StructType([np.int32, np.int32])
    zero = section()(lambda: (0, 1))
    step = section(pair, np.int32)(lambda both, x: (both[0] + x, 3 * both[1] - x))
    add = section(pair)(lambda both: both[0] + 7 * both[1])

    @tff.federated_computation(tff.SequenceType(np.int32))
    def reduced(numbers: Any) -> Any:
        return add(tff.sequence_reduce(numbers, zero(), step))

    @tff.federated_computation(NONE, tff.types.at_clients(tff.SequenceType(np.int32)))
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(reduced, data))

    return computed


def unchanged() -> Any:
    """A map of the identity."""
    same = tff.federated_computation(lambda x: x, np.int32)

    @tff.federated_computation(NONE, INTS)
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(same, data))

    return computed


def initialized() -> Any:
    """Variables and tables that must be set before they are used, in several calls."""
    tf = load_tensorflow()

    def counted(start: int) -> Any:
        def count(x: Any) -> Any:
            v = tf.Variable(start)
            with tf.control_dependencies([v.assign_add(x)]):
                return v.read_value()

        return section(np.int32)(count)

    def looked_up(x: Any) -> Any:
        entries = tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 2], tf.int64), tf.constant([10, 20], tf.int64)
        )
        table = tf.lookup.StaticHashTable(entries, -5)
        return tf.cast(table.lookup(tf.cast(x % 3, tf.int64)), tf.int32)

    first, second, table = counted(3), counted(50), section(np.int32)(looked_up)
    add = section(np.int32, np.int32)(lambda x, y: x + 2 * y)

    @tff.federated_computation(np.int32)
    def work(x: Any) -> Any:
        return add(first(x), add(second(first(x)), table(x)))

    zero = section()(lambda: 0)

    @tff.federated_computation(np.int32, np.int32)
    def step(total: Any, x: Any) -> Any:
        return add(total, first(x))

    @tff.federated_computation(np.int32, tff.SequenceType(np.int32))
    def reduced(x: Any, numbers: Any) -> Any:
        return add(work(x), tff.sequence_reduce(numbers, zero(), step))

    @tff.federated_computation(NONE, tff.types.at_clients([np.int32, tff.SequenceType(np.int32)]))
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(reduced, (data[0], data[1])))

    return computed


def functions() -> Any:
    """Functions of one name and other content, and outputs beyond the first."""
    tf = load_tensorflow()

    def calling(body: Callable[..., Any]) -> Any:
        inner = tf.function(body, autograph=False)
        outer = tf.function(lambda x: inner(x) + 1, autograph=False)
        return section(np.int32)(lambda x: outer(x))

    double, triple = calling(lambda x: 2 * x), calling(lambda x: 3 * x)

    def parted(x: Any) -> Any:
        first, second, third = tf.unstack(tf.stack([x, 2 * x + 1, 5 * x]))
        return first, second, third

    parts = section(np.int32)(parted)
    join = section(np.int32, np.int32, np.int32)(lambda x, y, z: x - 2 * y + 4 * z)

    @tff.federated_computation(np.int32)
    def work(x: Any) -> Any:
        x, y, z = parts(double(triple(x)))
        return join(z, x, y)

    @tff.federated_computation(np.int32, np.int32)
    def step(total: Any, x: Any) -> Any:
        a, b, _ = parts(x)
        return join(total, a, b)

    zero = section()(lambda: 0)

    @tff.federated_computation(np.int32, tff.SequenceType(np.int32))
    def reduced(x: Any, numbers: Any) -> Any:
        return join(work(x), tff.sequence_reduce(numbers, zero(), step), x)

    @tff.federated_computation(NONE, tff.types.at_clients([np.int32, tff.SequenceType(np.int32)]))
    def computed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(reduced, (data[0], data[1])))

    return computed


def kernels() -> Any:
    """Functions whose kernels keep state: one called twice, and two of equal content."""
    tf = load_tensorflow()

    def drawn() -> Any:
        options = {"autograph": False, "experimental_attributes": {"_noinline": True}}
        return tf.function(lambda: tf.random.uniform([], seed=7), **options)

    def several(x: Any) -> Any:
        f, g = drawn(), drawn()
        return x + f() + 10 * f() + 100 * g()

    draw = section(np.float32)(several)

    @tff.federated_computation(NONE, FLOATS)
    def computed(state: Any, data: Any) -> Any:
        once = tff.federated_map(draw, data)
        return state, tff.federated_sum(tff.federated_map(draw, once))

    return computed


def shadowed() -> Any:
    """Functions that are passed, capture, and rename structs; values computed twice."""
    named = collections.OrderedDict(b=np.int32, a=np.int32)
    less = section(np.int32, np.int32)(lambda x, y: x - 3 * y)
    swap = section(named)(lambda s: collections.OrderedDict(b=s["a"] + 1, a=s["b"] * 2))

    @tff.federated_computation(named)
    def twice(s: Any) -> Any:
        once = swap(s)
        return swap(once)

    @tff.federated_computation(np.int32, np.int32)
    def nested(x: Any, y: Any) -> Any:
        @tff.federated_computation(np.int32)
        def inner(x: Any) -> Any:
            return less(x, y)

        @tff.federated_computation(np.int32)
        def outer(y: Any) -> Any:
            return less(inner(y), x)

        swapped = twice(collections.OrderedDict(b=inner(x), a=outer(y)))
        return less(less(swapped["b"], swapped["a"]), inner(less(x, y)))

    @tff.federated_computation(NONE, tff.types.at_clients([np.int32, np.int32]))
    def computed(state: Any, data: Any) -> Any:
        return state, (
            tff.federated_sum(tff.federated_map(nested, (data[0], data[1]))),
            tff.federated_sum(tff.federated_map(nested, (data[1], data[0]))),
        )

    return computed


def drawn() -> Any:
    """Draws that each client makes, twice."""
    tf = load_tensorflow()
    draw = section()(lambda: tf.random.uniform([], 0, 1000, tf.int32))
    add = section(np.int32, np.int32, np.int32)(lambda x, y, z: x + 2 * y + 5 * z)

    @tff.federated_computation(NONE, INTS)
    def computed(state: Any, data: Any) -> Any:
        draws = [tff.federated_eval(draw, tff.CLIENTS) for _ in range(2)]
        return state, tff.federated_sum(tff.federated_map(add, (data, *draws)))

    return computed


def drawn_at_server() -> Any:
    """A draw of the server that all clients see, and another one."""
    tf = load_tensorflow()
    draw = section()(lambda: tf.random.uniform([], 0, 1000, tf.int32))
    add = section(np.int32, np.int32)(lambda x, y: x + 2 * y)

    @tff.federated_computation(tff.types.at_server(np.int32), INTS)
    def computed(state: Any, data: Any) -> Any:
        first, second = (tff.federated_eval(draw, tff.SERVER) for _ in range(2))
        worked = tff.federated_map(add, (data, tff.federated_broadcast(first)))
        return second, tff.federated_map(add, (tff.federated_sum(worked), first))

    return computed


def selected() -> Any:
    tf = load_tensorflow()
    pick = section(tff.TensorType(np.int32, [4]), np.int32)(lambda values, key: values[key % 4])
    total = section(tff.SequenceType(np.int32))(
        lambda numbers: numbers.reduce(0, lambda sum, x: 3 * sum + x)
    )
    keys = section(np.int32)(lambda x: tf.math.floormod(tf.stack([x, x + 1]), 4))

    @tff.federated_computation(tff.types.at_server(tff.TensorType(np.int32, [4])), INTS)
    def computed(values: Any, data: Any) -> Any:
        most = tff.federated_value(4, tff.SERVER)
        slices = tff.federated_select(tff.federated_map(keys, data), most, values, pick)
        return values, tff.federated_sum(tff.federated_map(total, slices))

    return computed


def sent_back() -> Any:
    scale = section(np.float32, np.float32, np.float32)(lambda x, a, b: a * x - b)

    @tff.federated_computation(PAIR, FLOATS)
    def computed(state: Any, data: Any) -> Any:
        first, second = (tff.federated_broadcast(state[index]) for index in range(2))
        return tff.federated_map(scale, (data, first, second))

    return computed


def write(folder: pathlib.Path) -> None:
    """Trace the programs."""
    for name, form, program in programs():
        (folder / f"{name}.{form}.pb").write_bytes(wire.to_bytes(program))


def seen(folder: pathlib.Path) -> dict[str, str]:
    """Return the first program for which each command fails; what does not compile is seen by
    both."""
    first: dict[str, str] = {}
    for file in sorted(folder.glob("*.pb")):
        name, form, _ = file.name.rsplit(".", 2)
        with tempfile.TemporaryDirectory() as scratch:
            bundle = f"{scratch}/bundle"
            refused = _fails("compile", str(file), "--form", form, "--out", bundle)
            if "prove" not in first and (refused or _fails("prove", str(file), bundle)):
                first["prove"] = name
            if "verify" not in first and (
                refused or _fails("verify", str(file), "--form", form, "--trials", "6")
            ):
                first["verify"] = name
        if len(first) == 2:
            break
    return first


def _fails(*arguments: str) -> bool:
    return CliRunner().invoke(application, list(arguments)).exit_code != 0


if __name__ == "__main__":
    command, place = sys.argv[1:]
    if command == "write":
        write(pathlib.Path(place))
    else:
        print(json.dumps(seen(pathlib.Path(place))))
