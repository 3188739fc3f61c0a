"""Private rounds in which single steps can be replaced by faulty ones.

In each round, clients clip what they have, with a norm that the server broadcasts, and the server
adds noise to the sums.  The state has room for what a fault keeps until the next round.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tffc as tff
from tffc.assurance.privacy.question import Neighbours
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

Tensors = list[Any]
Clip = Callable[[Any, Tensors], Tensors]
Client = Callable[["Base", Any, Tensors], Tensors]
Server = Callable[["Base", Any, Tensors], tuple[Tensors, Tensors]]
Extra = Callable[[Tensors], Any]

BOUND = 1.5
"""The norm of a contribution, which is in the state."""

SCALE = 3.0
"""The standard deviation or the scale of the noise."""


@dataclasses.dataclass(frozen=True)
class Base:
    """A private round: the shapes of a client's tensors, how it clips them to a norm, and noise of
    a shape.

    `multiplier` is the scale of the noise over the sensitivity.  `collect` adds up a value over
    the clients.  With `at_clients`, it is they who add the noise.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    clip: Clip
    noise: Callable[[Any], Any]
    multiplier: float
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    collect: Callable[[Any], Any] = tff.federated_sum
    dtype: Any = np.float32
    at_clients: bool = False

    @property
    def data(self) -> Any:
        """The type of a client's data."""
        return tff.to_type([tff.TensorType(np.float32, shape) for shape in self.shapes])

    def noisy(self, sums: Tensors) -> Tensors:
        """Return sums with noise."""
        if self.at_clients:
            return sums
        return [total + self.noise(total.shape) for total in sums]

    def contributed(self, bound: Any, values: Tensors) -> Tensors:
        """Return what a client adds to the sums."""
        clipped = self.clip(bound, values)
        if not self.at_clients:
            return clipped
        return [each + self.noise(each.shape) for each in clipped]


# Clips.


def total_norm(values: Sequence[Any]) -> Any:
    return tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(value)) for value in values]))


def by_l2(bound: Any, values: Tensors) -> Tensors:
    factor = tf.minimum(1.0, bound / total_norm(values))
    return [value * factor for value in values]


def each_by_l2(bound: Any, values: Tensors) -> Tensors:
    return [value for each in values for value in by_l2(bound, [each])]


def by_l1(bound: Any, values: Tensors) -> Tensors:
    norm = tf.add_n([tf.reduce_sum(tf.abs(value)) for value in values])
    return [value * tf.minimum(1.0, bound / norm) for value in values]


def by_box(bound: Any, values: Tensors) -> Tensors:
    return [tf.clip_by_value(value, -bound, bound) for value in values]


def to_integers(bound: Any, values: Tensors) -> Tensors:
    return [tf.cast(value * 10.0, tf.int32) for value in by_l2(bound, values)]


# Noise.


def normal(shape: Any) -> Any:
    return tf.random.normal(shape, stddev=SCALE)


def laplace(shape: Any) -> Any:
    u = tf.random.uniform(shape, -0.5, 0.5)
    return -SCALE * tf.sign(u) * tf.math.log(1.0 - 2.0 * tf.abs(u))


def skellam(shape: Any) -> Any:
    first, second = (tf.random.poisson(shape, 450.0, tf.int32) for _ in range(2))
    return first - second


# Sums.


def by_hand(value: Any) -> Any:
    """Add up a value with functions of the program."""
    type = value.type_signature.member
    zero = tff.tf_computation(lambda: tf.zeros(type.shape, tf.as_dtype(type.dtype)))
    add = tff.tf_computation(type, type)(lambda a, b: a + b)
    report = tff.tf_computation(type)(lambda a: a)
    return tff.federated_aggregate(value, zero(), add, add, report)


PAIR = ((2, 3), (3,))

BASES = (
    Base("vector", ((4,),), by_l2, normal, SCALE / BOUND),
    Base("global", PAIR, by_l2, normal, SCALE / BOUND),
    Base("each", PAIR, each_by_l2, normal, SCALE / BOUND / np.sqrt(2)),
    Base("box", ((4,),), by_box, normal, SCALE / BOUND / 2),
    Base("laplace", ((4,),), by_l1, laplace, SCALE / BOUND),
    Base("laplace pair", PAIR, by_l1, laplace, SCALE / BOUND),
    Base("laplace box", ((4,),), by_box, laplace, SCALE / BOUND / 4),
    Base("skellam", ((4,),), to_integers, skellam, 2.0, dtype=np.int32),
    Base("by hand", PAIR, by_l2, normal, SCALE / BOUND, collect=by_hand),
    Base("replaced", PAIR, by_l2, normal, SCALE / BOUND / 2, Neighbours.REPLACE),
    Base("at clients", PAIR, by_l2, normal, SCALE / BOUND, Neighbours.ZERO_OUT, at_clients=True),
)


@dataclasses.dataclass(frozen=True)
class Steps:
    """The steps of a round that are replaced.

    `client` returns what a client adds to the sums, `server` what it keeps, and what it releases.
    `extra` is a number of a client that is added up and released as it is.  With `sends_kept`, what
    is kept is broadcast.
    """

    client: Client | None = None
    server: Server | None = None
    extra: Extra | None = None
    sends_kept: bool = False


def process_of(base: Base, steps: Steps) -> Any:
    """Return the process of a base with replaced steps."""
    bound = tff.TensorType(np.float32)

    @tff.tf_computation(bound, base.data)
    def work(bound: Any, data: Any) -> Any:
        values = list(data)
        client = steps.client or (lambda base, bound, values: base.contributed(bound, values))
        extra = [] if steps.extra is None else [steps.extra(values)]
        return [tf.identity(each) for each in (*client(base, bound, values), *extra)]

    types = list(work.type_signature.result)
    count = len(types) - (steps.extra is not None)
    state_type = tff.to_type(
        collections.OrderedDict(
            bound=bound,
            number=bound,
            seed=tff.TensorType(np.int32, [2]),
            kept=tff.to_type(types[:count]),
        )
    )

    @tff.tf_computation
    def first() -> Any:
        zeros = [tf.zeros(type.shape, tf.as_dtype(type.dtype)) for type in types[:count]]
        return collections.OrderedDict(
            bound=BOUND, number=tf.constant(2.0), seed=tf.constant([3, 4]), kept=zeros
        )

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(first, tff.SERVER)

    @tff.tf_computation(state_type, tff.to_type(types))
    def finish(state: Any, sums: Any) -> Any:
        totals = list(sums)
        server = steps.server or (lambda base, state, sums: (list(state["kept"]), base.noisy(sums)))
        values, released = server(base, state, totals[:count])
        new = collections.OrderedDict(state, kept=values)
        return new, [tf.identity(each) for each in (*released, *totals[count:])]

    bound_of = tff.tf_computation(state_type)(lambda state: tf.identity(state["bound"]))
    work_with = tff.tf_computation(state_type, base.data)(
        lambda state, data: work(state["bound"], data)
    )

    @tff.federated_computation(tff.types.at_server(state_type), tff.types.at_clients(base.data))
    def next_round(state: Any, data: Any) -> Any:
        if steps.sends_kept:
            each = tff.federated_map(work_with, (tff.federated_broadcast(state), data))
        else:
            norm = tff.federated_broadcast(tff.federated_map(bound_of, state))
            each = tff.federated_map(work, (norm, data))
        sums = [base.collect(each[number]) for number in range(len(types))]
        done = tff.federated_map(finish, (state, tff.federated_zip(sums)))
        return done[0], done[1]

    return tff.templates.IterativeProcess(initialize, next_round)


# The rounds that a fault fits.


def everywhere(base: Base) -> bool:
    return True


def of_floats(base: Base) -> bool:
    return base.dtype == np.float32


def of_several(base: Base) -> bool:
    return len(base.shapes) > 1


def of_normal_noise(base: Base) -> bool:
    return base.noise is normal and not base.at_clients


def with_server_noise(base: Base) -> bool:
    return not base.at_clients


def with_real_noise(base: Base) -> bool:
    return of_floats(base) and not base.at_clients
