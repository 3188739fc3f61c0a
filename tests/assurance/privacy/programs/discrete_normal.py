"""Samplers of the discrete normal distribution by rejection, and ones that are wrong."""

from collections.abc import Callable
from typing import Any

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

TINY = 2.0**-1022
Sampler = Callable[[Any, Any], Any]


def geometric(t: Any, shape: Any) -> Any:
    """Whole numbers of which each is e^(1/t) times as likely as the next."""
    return tf.floor(-t * tf.math.log(tf.random.uniform(shape, TINY, 1.0, tf.float64)))


def two_sided(t: Any, shape: Any) -> Any:
    return geometric(t, shape) - geometric(t, shape)


def always_the_same(t: Any, shape: Any) -> Any:
    one = geometric(t, shape)
    return one - one


def with_given_seeds(t: Any, shape: Any) -> Any:
    first, second = (tf.random.uniform(shape, TINY, 1.0, tf.float64, seed=s) for s in (3, 4))
    return tf.floor(-t * tf.math.log(first)) - tf.floor(-t * tf.math.log(second))


def chance(t: Any, candidate: Any) -> Any:
    return tf.exp(-tf.square(tf.abs(candidate) - t) / (2.0 * t * t))


def sampler(
    propose: Callable[[Any, Any], Any] = two_sided,
    accept: Callable[[Any, Any], Any] = chance,
    most: int | None = None,
    result: Callable[[Any], Any] = lambda value: value,
) -> Sampler:
    """A sampler that proposes numbers for all elements until each has one that is accepted."""

    @tf.function(
        input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    def draw(scale: Any, shape: Any) -> Any:
        t = tf.cast(scale, tf.float64)

        def again(value: Any, accepted: Any) -> Any:
            candidate = propose(t, shape)
            is_good = tf.random.uniform(shape, dtype=tf.float64) < accept(t, candidate)
            return tf.where(accepted, value, candidate), tf.logical_or(accepted, is_good)

        start = tf.zeros(shape, tf.float64), tf.zeros(shape, tf.bool)
        value, _ = tf.while_loop(
            lambda _, accepted: tf.logical_not(tf.reduce_all(accepted)),
            again,
            start,
            shape_invariants=(tf.TensorShape(None), tf.TensorShape(None)),
            maximum_iterations=most,
        )
        return result(tf.cast(value, tf.int32))

    return draw


RIGHT = sampler()

WRONG: dict[str, Sampler] = {
    "the same draw twice": sampler(always_the_same),
    "given seeds": sampler(with_given_seeds),
    "one of the two numbers": sampler(geometric),
    "half the spread": sampler(lambda t, shape: two_sided(t / 2.0, shape)),
    "all accepted": sampler(accept=lambda t, candidate: tf.ones_like(candidate)),
    "other chance": sampler(accept=lambda t, x: tf.exp(-tf.square(tf.abs(x) - t) / (t * t))),
    "few attempts": sampler(most=1),
    "smaller": sampler(result=lambda value: value // 2),
    "without a sign": sampler(result=tf.abs),
    "of one number": sampler(result=lambda value: value * 0 + value[0]),
}
