"""Random computations of clients, of which many end with a clip, right or wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

SIZE = 4
KIND = np.float64
"""Double precision, so that what is seen is not the rounding."""

STEPS = 10
CONSTANTS = (0.0, 0.5, 1.0, 2.0, -1.0, 3.0, 1e-6)


class RandomClip:
    """A computation on a vector that a seed determines; `computed` are all numbers in it."""

    def __init__(self, seed: int, x: Any) -> None:
        self._random = random.Random(seed)
        self._vectors = [x]
        self._numbers = [self._constant(), self._constant()]
        self._flags = [x[0] > 0.0, self._numbers[0] < x[1]]
        self._masks = [x > 0.0]
        self.computed: list[Any] = []
        for _ in range(self._random.randint(0, STEPS)):
            self._add()
        self.result = self._contribution()

    def _constant(self) -> Any:
        return tf.constant(self._random.choice(CONSTANTS), KIND)

    def _vector(self) -> Any:
        # What was computed last is more often used.
        return self._random.choice(self._vectors[-3:] + self._vectors)

    def _number(self) -> Any:
        return self._random.choice(self._numbers[-3:] + self._numbers)

    def _add(self) -> None:
        kind = self._random.choice(("vector", "vector", "number", "number", "flag", "mask"))
        value = getattr(self, f"_new_{kind}")()
        getattr(self, f"_{kind}s").append(value)
        if kind in ("vector", "number"):
            self.computed.append(value)

    def _new_vector(self) -> Any:
        v, w, n, m = self._vector(), self._vector(), self._number(), self._number()
        square = tf.reshape(v, [2, 2])
        options: list[Callable[[], Any]] = [
            lambda: tf.abs(v),
            lambda: -v,
            lambda: tf.square(v),
            lambda: v * n,
            lambda: v / n,
            lambda: v + w,
            lambda: v - w,
            lambda: v * w,
            lambda: v + n,
            lambda: tf.minimum(v, n),
            lambda: tf.maximum(v, w),
            lambda: tf.clip_by_value(v, n, m),
            lambda: tf.clip_by_value(v, -tf.abs(n), tf.abs(n)),
            lambda: tf.where(self._random.choice(self._flags), v, w),
            lambda: tf.where(self._random.choice(self._flags), v, v * n),
            lambda: tf.where(self._random.choice(self._masks), v, w),
            lambda: tf.where(self._random.choice(self._masks), v, tf.zeros_like(v)),
            lambda: tf.where(tf.transpose(tf.reshape(self._masks[-1], [2, 2])), square, 0.0),
            lambda: tf.transpose(square),
            lambda: tf.reverse(v, [0]),
            lambda: tf.sort(v),
            lambda: v[::-1],
            lambda: tf.concat([v[:2], w[2:]], 0),
            lambda: tf.concat([v[1:3], v[:1], w[:1]], 0),
            lambda: tf.stack([v[0], w[1], v[0], n]),
            lambda: tf.stack(tf.unstack(w)),
            lambda: tf.gather(v, [0, 0, 1, 2]),
            lambda: tf.broadcast_to(v[:1], [SIZE]),
            lambda: tf.cumsum(v),
            lambda: tf.round(v),
            lambda: tf.floor(v),
            lambda: tf.cast(tf.cast(v, tf.int32), KIND),
            lambda: tf.cast(tf.cast(v, tf.int8), KIND),
            lambda: tf.cast(tf.cast(v, tf.uint8), KIND),
            lambda: tf.cast(tf.cast(v, tf.int32) * tf.cast(w, tf.int32), KIND),
            lambda: tf.sign(v),
            lambda: tf.tanh(v),
            lambda: tf.nn.softmax(v),
            lambda: tf.one_hot(tf.argmax(v), SIZE, dtype=KIND),
            lambda: tf.math.divide_no_nan(v, w),
            lambda: tf.nn.relu(v),
            lambda: tf.clip_by_norm(v, n),
            lambda: tf.exp(-tf.abs(v)),
            lambda: tf.cond(self._flags[-1], lambda: v + 0.0, lambda: w * 1.0),
        ]
        return tf.reshape(self._random.choice(options)(), [SIZE])

    def _new_number(self) -> Any:
        v, n, m = self._vector(), self._number(), self._number()
        options: list[Callable[[], Any]] = [
            lambda: tf.norm(v),
            lambda: tf.norm(v),
            lambda: tf.norm(v[:2]),
            lambda: tf.reduce_sum(tf.square(v)),
            lambda: tf.nn.l2_loss(v),
            lambda: tf.reduce_sum(tf.abs(v)),
            lambda: tf.reduce_max(tf.abs(v)),
            lambda: tf.reduce_sum(v),
            lambda: tf.reduce_mean(v),
            lambda: tf.sqrt(tf.reduce_mean(tf.square(v))),
            lambda: tf.reduce_max(v),
            lambda: v[0],
            lambda: v[3],
            self._constant,
            lambda: n + m,
            lambda: n - m,
            lambda: n * m,
            lambda: n / m,
            lambda: tf.minimum(n, m),
            lambda: tf.maximum(n, m),
            lambda: tf.abs(n),
            lambda: tf.square(n),
            lambda: tf.sqrt(n),
            lambda: tf.math.rsqrt(n),
            lambda: tf.math.reciprocal(n),
            lambda: tf.math.divide_no_nan(n, m),
            lambda: tf.where(self._random.choice(self._flags), n, m),
            lambda: tf.where(n > m, n, m),
            lambda: tf.where(n > m, m / n, n),
            lambda: tf.cond(n > m, lambda: m * 1.0, lambda: n + 0.0),
            lambda: tf.exp(-n),
            lambda: tf.cast(self._random.choice(self._flags), KIND),
            lambda: tf.reduce_sum(tf.where(self._flags[-1], tf.ones([SIZE], KIND), n)),
            lambda: tf.reshape(tf.reshape(n, [1, 1]) * 2.0, []),
            lambda: tf.sqrt(tf.square(n) + tf.reduce_sum(tf.square(v))),
        ]
        return tf.reshape(self._random.choice(options)(), [])

    def _new_flag(self) -> Any:
        n, m = self._number(), self._number()
        options: list[Callable[[], Any]] = [
            lambda: n > m,
            lambda: n <= m,
            lambda: tf.logical_not(self._flags[-1]),
            lambda: tf.logical_and(self._flags[-1], n > m),
            lambda: tf.math.is_finite(n),
        ]
        return self._random.choice(options)()

    def _new_mask(self) -> Any:
        v, w, n = self._vector(), self._vector(), self._number()
        options: list[Callable[[], Any]] = [
            lambda: v > w,
            lambda: tf.abs(v) <= n,
            lambda: tf.abs(v) <= tf.abs(w),
            lambda: v < n,
            lambda: tf.logical_not(self._masks[-1]),
            lambda: tf.reshape(tf.transpose(tf.reshape(self._masks[-1], [2, 2])), [SIZE]),
        ]
        return self._random.choice(options)()

    def _contribution(self) -> Any:
        v, n = self._vector(), self._number()
        own = self._random.choice(
            [
                lambda: tf.norm(v),
                lambda: tf.reduce_sum(tf.abs(v)),
                lambda: tf.reduce_max(tf.abs(v)),
                lambda: tf.sqrt(tf.reduce_sum(tf.square(self._vector()))),
                lambda: n,
            ]
        )()
        limit = tf.constant(self._random.choice((0.5, 1.0, 2.0)), KIND)
        clips: list[Callable[[], Any]] = [
            lambda: v * tf.minimum(tf.constant(1.0, KIND), limit / own),
            lambda: v / tf.maximum(tf.constant(1.0, KIND), own / limit),
            lambda: tf.where(own > limit, v * limit / own, v),
            lambda: tf.where(own <= limit, v, tf.zeros_like(v)),
            lambda: v * tf.where(own > limit, limit / own, 1.0),
            lambda: v * tf.cast(own <= limit, KIND),
            lambda: v * (limit / tf.maximum(own, limit)),
            lambda: tf.clip_by_norm(v, limit),
            lambda: tf.clip_by_value(v, -limit, limit),
            lambda: v * tf.math.divide_no_nan(limit, own),
            lambda: v,
        ]
        result = self._random.choice(clips)()
        self._vectors.append(result)
        self.computed.append(result)
        for _ in range(self._random.randint(0, 2)):
            self._add()
        return self._vectors[-1]
