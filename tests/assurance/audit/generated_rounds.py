"""Rounds made of random steps, in which a client's data reaches channels in roundabout ways.

A step takes numbers, texts and data sets that earlier steps made.  `pick` chooses: a number less
than the one that it is given.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tffc as tff
from tests.assurance.audit.operation_calls import checksum
from tests.assurance.audit.states import STATES, after, fresh
from tests.assurance.audit.ways import WAYS, fit, old_control_flow, plain
from tffc.language import Node, Type
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

Pick = Callable[[int], int]
FORMS = ("mapreduce", "broadcast", "distribute-aggregate")
F, N = np.float32, np.int32

ELEMENTS: Sequence[Mapping[str, Any]] = (
    {"z": N, "b": F},
    {"k": F, "a": N, "c": {"y": F, "x": N}},
    {"q": {"n": N, "m": F}, "p": (N, F), "d": F},
    {"w": tff.TensorType(F, [2]), "b": {"z": N, "a": N}},
    {"t": np.str_, "s": F},
)
"""Elements of sequences, whose keys are in no order."""


@dataclasses.dataclass(frozen=True)
class Round:
    """A round, its form, and the types of its state and of a client's data."""

    program: Node
    form: str
    state: Type
    data: Type
    steps: tuple[str, ...]


def round_of(pick: Pick) -> Round:
    """Return a round of steps that `pick` chooses."""
    form = FORMS[pick(len(FORMS))]
    data = tff.to_type(data_fields(pick))
    state = tff.to_type(collections.OrderedDict(weight=F, number=N))
    choices = [[pick(1 << 16) for _ in range(6)] for _ in range(3 + pick(5))]
    steps: list[str] = []

    def work(d: Any, s: Any) -> Any:
        writer = Writer(d, s)
        for choice in choices:
            steps.append(writer.step(choice))
        return writer.result()

    traced = tff.tf_computation(work, data, state)
    program = BUILDERS[form](traced, state, data)
    return Round(program.node, form, state, data, tuple(steps))


def data_fields(pick: Pick) -> Any:
    """Return the parts of a client's data, in some order."""
    parts: list[tuple[str, Any]] = [
        ("z", N),
        ("v", tff.TensorType(F, [None])),
        ("a", tff.TensorType(F, [2])),
        ("t", np.str_),
        ("r", tff.SequenceType(as_element(ELEMENTS[pick(len(ELEMENTS))]))),
    ]
    order = list(itertools.permutations(range(len(parts))))[pick(120)]
    return collections.OrderedDict(parts[at] for at in order)


def as_element(fields: Any) -> Any:
    if isinstance(fields, Mapping):
        return collections.OrderedDict((name, as_element(each)) for name, each in fields.items())
    return fields


def summed_round(work: Any, state: Type, data: Type) -> Any:
    @tff.federated_computation(tff.FederatedType(state, tff.SERVER),
                               tff.FederatedType(data, tff.CLIENTS))  # fmt: skip
    def round_with_sums(s: Any, d: Any) -> Any:
        done = tff.federated_map(work, (d, tff.federated_broadcast(s)))
        return s, tuple(tff.federated_sum(done[at]) for at in range(CHANNELS))

    return round_with_sums


def kept_round(work: Any, state: Type, data: Type) -> Any:
    @tff.federated_computation(tff.FederatedType(state, tff.SERVER),
                               tff.FederatedType(data, tff.CLIENTS))  # fmt: skip
    def round_that_stays(s: Any, d: Any) -> Any:
        return tff.federated_map(work, (d, tff.federated_broadcast(s)))

    return round_that_stays


BUILDERS = {
    "mapreduce": summed_round,
    "distribute-aggregate": summed_round,
    "broadcast": kept_round,
}
CHANNELS = 3


def small(x: Any) -> Any:
    """Return a whole number from 0 to 3 that depends on a number."""
    return tf.cast(tf.math.floormod(tf.cast(tf.clip_by_value(x, -99.0, 99.0), tf.int32), 4), F)


def numbers_of(element: Any) -> list[Any]:
    """Return a number for each component of an element."""
    return [tf.cast(checksum(each), F) for each in tf.nest.flatten(element)]


def text(x: Any) -> Any:
    return tf.strings.as_string(tf.cast(x, tf.int32))


class Writer:
    """Writes a client's work step by step."""

    def __init__(self, d: Any, s: Any) -> None:
        first = [tf.cast(d["z"], F), d["a"][0], d["a"][1], s["weight"], tf.cast(s["number"], F)]
        self.numbers = [*first, tf.cast(tf.size(d["v"]), F), tf.cast(tf.strings.length(d["t"]), F)]
        self.vectors = [d["v"], d["a"]]
        self.texts = [d["t"]]
        self.datasets = [d["r"]]

    def step(self, choice: Sequence[int]) -> str:
        """Add a step, and return its name."""
        which, *picks = choice
        name = sorted(STEPS)[which % len(STEPS)]
        pools = (self.numbers, self.numbers, self.vectors, self.texts, self.datasets)
        x, y, v, t, d = (
            pool[-1 - pick % len(pool)] for pool, pick in zip(pools, picks, strict=True)
        )
        result = STEPS[name](Operands(x, y, v, t, d, picks))
        if name.startswith("dataset"):
            self.datasets.append(result.take(5))
        elif result.dtype == tf.string:
            self.texts.append(tf.reshape(result, []))
        elif result.shape.rank == 1:
            self.vectors.append(result[:4])
        else:
            number = tf.reshape(tf.cast(result, F), [])
            number = tf.where(tf.math.is_finite(number), number, 5.0)
            self.numbers.append(tf.clip_by_value(number, -64.0, 64.0))
        return name

    def result(self) -> Any:
        total = self.datasets[-1].reduce(0.0, plain(lambda n, e: n * 0.5 + numbers_of(e)[-1]))
        parts = [self.numbers[-1], self.numbers[-2] + tf.reduce_sum(self.vectors[-1])]
        return (*parts, total + tf.cast(tf.strings.length(self.texts[-1]), F))


@dataclasses.dataclass(frozen=True)
class Operands:
    """What a step may use: numbers, a vector, a text, a data set, and chosen numbers."""

    x: Any
    y: Any
    v: Any
    t: Any
    d: Any
    picks: Sequence[int]


def kept_in_state(o: Operands) -> Any:
    """Write to a state in some way, and read it."""
    names = sorted(STATES)
    name = names[o.picks[0] % len(names)]
    state = STATES[name]
    ways = fit(state)
    way = WAYS[ways[o.picks[1] % len(ways)]]
    handle = state.create(fresh())
    written = way(lambda value: state.write(handle, value), small(o.x))
    with after([] if written is None else tf.nest.flatten(written)):
        contents = [tf.identity(each) for each in tf.nest.flatten(list(state.read(handle)))]
    return tf.add_n([checksum(each) for each in contents])


def old_branch(o: Operands) -> Any:
    with old_control_flow():
        return tf.compat.v1.cond(o.x > o.y, lambda: o.x + 1.0, lambda: tf.constant(2.0))


def old_loop(o: Operands) -> Any:
    with old_control_flow():
        return tf.compat.v1.while_loop(
            lambda i, n: i < small(o.x), lambda i, n: [i + 1.0, n * 0.5 + o.y], [0.0, 1.0]
        )[1]


def merged(o: Operands) -> Any:
    sides = tf.raw_ops.Switch(data=tf.constant(1.0), pred=o.x > o.y)
    with after(tf.identity(sides.output_true)):
        yes = tf.constant(3.0)
    with after(tf.identity(sides.output_false)):
        no = tf.constant(4.0)
    return tf.raw_ops.Merge(inputs=[yes, no]).output


def merged_index(o: Operands) -> Any:
    sides = tf.raw_ops.Switch(data=o.y, pred=o.x > 0.0)
    merged = tf.raw_ops.Merge(inputs=[sides.output_false, sides.output_true])
    return merged.value_index


def in_functions(o: Operands) -> Any:
    variable = tf.Variable(1.0)

    @tf.function(autograph=False)
    def inner(x: Any) -> Any:
        return tf.cond(x > 1.0, lambda: variable.assign_add(2.0), lambda: tf.constant(0.0))

    @tf.function(autograph=False)
    def outer(x: Any, y: Any) -> Any:
        with after(inner(x)):
            return tf.stop_gradient(y)

    with after(outer(o.x, o.y)):
        return variable.read_value()


def as_branch(o: Operands) -> Any:
    def inner() -> Any:
        return tf.cond(o.y > 1.0, lambda: o.x, lambda: tf.constant(-1.0))

    return tf.cond(o.x > 0.0, inner, lambda: o.y * 0.5)


def array_of(o: Operands) -> Any:
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    array = array.write(tf.cast(small(o.x), tf.int32) % 3, o.y).write(0, o.x)
    return tf.reduce_sum(array.stack()[:2])


def grouped(o: Operands) -> Any:
    windows = o.d.group_by_window(
        key_func=plain(lambda e: tf.cast(small(numbers_of(e)[0]), tf.int64)),
        reduce_func=plain(lambda key, window: window.batch(2)),
        window_size=2,
    )
    return windows.reduce(0.0, plain(lambda n, e: n * 0.5 + numbers_of(e)[-1]))


def scanned(o: Operands) -> Any:
    scan = o.d.scan(o.x, plain(lambda n, e: (n * 0.5 + numbers_of(e)[0], n)))
    return scan.reduce(0.0, plain(lambda n, e: n * 0.5 + e))


def interleaved(o: Operands) -> Any:
    mixed = o.d.interleave(
        plain(lambda e: tf.data.Dataset.from_tensors(numbers_of(e)[-1]).repeat(2)), cycle_length=2
    )
    return mixed.reduce(o.y, plain(lambda n, e: n * 0.5 + e))


def zipped(o: Operands) -> Any:
    both = tf.data.Dataset.zip((o.d, tf.data.Dataset.from_tensor_slices(o.v)))
    return both.reduce(0.0, plain(lambda n, each: n * 0.5 + each[1]))


def windowed(o: Operands) -> Any:
    flat = o.d.map(plain(lambda e: numbers_of(e)[-1])).window(2).flat_map(
        plain(lambda w: w.batch(2))
    )  # fmt: skip
    return flat.reduce(0.0, plain(lambda n, e: n * 0.5 + e[0]))


def counted_in_a_variable(o: Operands) -> Any:
    variable = tf.Variable(0.0)

    def add(n: Any, e: Any) -> Any:
        with after(variable.assign_add(1.0).op):
            return n + 1.0

    with after(o.d.reduce(0.0, plain(add))):
        return variable.read_value()


def renamed(o: Operands) -> Any:
    def change(e: Any) -> Any:
        parts = numbers_of(e)
        inner = {"z": parts[-1], "a": parts[0] + o.x}
        return collections.OrderedDict(m=parts[len(parts) // 2], b=inner)

    return o.d.map(plain(change))


STEPS: dict[str, Callable[[Operands], Any]] = {
    "array": array_of,
    "branch": as_branch,
    "case": lambda o: tf.switch_case(
        tf.cast(small(o.x), tf.int32), [lambda: o.y, lambda: tf.constant(3.0), lambda: o.y + 1.0]
    ),
    "choice": lambda o: tf.where(o.x > o.y, o.x, 0.5),
    "count": lambda o: o.d.reduce(0, plain(lambda n, e: n + 1)),
    "count in a variable": counted_in_a_variable,
    "dataset batched": lambda o: o.d.batch(2).unbatch(),
    "dataset concatenated": lambda o: o.d.concatenate(o.d.take(tf.cast(small(o.x), tf.int64))),
    "dataset filtered": lambda o: o.d.filter(plain(lambda e: numbers_of(e)[0] > o.x)),
    "dataset flattened": lambda o: o.d.flat_map(
        plain(lambda e: tf.data.Dataset.from_tensors(e).repeat(tf.cast(small(o.x), tf.int64)))
    ),
    "dataset renamed": renamed,
    "dataset repeated": lambda o: o.d.take(3).repeat(2),
    "dataset shuffled": lambda o: o.d.shuffle(4, seed=o.picks[0] % 5 + 1),
    "dataset skipped": lambda o: o.d.skip(tf.cast(small(o.x), tf.int64)),
    "dataset taken": lambda o: o.d.take(tf.cast(small(o.x), tf.int64)),
    "dataset taken while": lambda o: o.d.take_while(plain(lambda e: numbers_of(e)[-1] < o.y)),
    "draw": lambda o: tf.random.stateless_uniform([], [tf.cast(small(o.x), tf.int32), 3]),
    "element": lambda o: (
        o.d.batch(9)
        .take(1)
        .reduce(0.0, plain(lambda n, e: n + numbers_of(e)[o.picks[0] % len(tf.nest.flatten(e))]))
    ),
    "function": in_functions,
    "grouped": grouped,
    "interleaved": interleaved,
    "loop": lambda o: tf.while_loop(
        lambda i, n: i < small(o.x), lambda i, n: (i + 1.0, n * 0.5 + o.y), (0.0, 1.0)
    )[1],
    "map_fn": lambda o: tf.map_fn(plain(lambda e: e * o.x), o.v),
    "merged": merged,
    "merged index": merged_index,
    "ones": lambda o: tf.reduce_sum(tf.ones_like(o.v)),
    "product": lambda o: o.x * o.y,
    "reduced": lambda o: o.d.reduce(
        o.y, plain(lambda n, e: n * 0.5 + numbers_of(e)[o.picks[0] % len(tf.nest.flatten(e))])
    ),
    "scan": lambda o: tf.scan(plain(lambda n, e: n + e), o.v),
    "scanned": scanned,
    "size": lambda o: tf.shape(o.v)[0],
    "sorted": lambda o: tf.sort(o.v),
    "state": kept_in_state,
    "state again": kept_in_state,
    "state once more": kept_in_state,
    "sum": lambda o: tf.reduce_sum(o.v) + o.x,
    "text": lambda o: tf.strings.join([o.t, text(o.x)]),
    "text matched": lambda o: tf.cast(tf.strings.regex_full_match(o.t, "a.*"), F),
    "text hashed": lambda o: tf.strings.to_hash_bucket_fast(o.t, 50),
    "TensorFlow 1's branch": old_branch,
    "TensorFlow 1's loop": old_loop,
    "vector of range": lambda o: tf.range(small(o.x)),
    "vector masked": lambda o: tf.boolean_mask(o.v, o.v > o.x),
    "vector of zeros": lambda o: tf.zeros_like(o.v),
    "windowed": windowed,
    "zipped": zipped,
}
"""The steps, by their names; those of data sets begin so."""


# Values.


def data_of(type: Type, pick: Pick) -> Any:
    """Return a client's data: small numbers, short texts, few elements."""
    from tffc.language import DType, SequenceType, StructType, TensorType

    match type:
        case StructType():
            return tuple(data_of(each, pick) for each in type.types)
        case SequenceType():
            return [data_of(type.element, pick) for _ in range(pick(4))]
        case TensorType():
            shape = tuple(pick(4) if size is None else size for size in type.shape or ())
            count = int(np.prod(shape, dtype=int))
            if type.element_type is DType.STRING:
                texts = [[b"", b"a", b"ab", b"b", b"abc"][pick(5)] for _ in range(count)]
                return np.array(texts, object).reshape(shape)[()]
            drawn = [pick(9) - 4 for _ in range(count)]
            return np.array(drawn, type.element_type.dtype).reshape(shape)[()]
    raise AssertionError(type)
