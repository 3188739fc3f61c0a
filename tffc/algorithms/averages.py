"""Averages of clients' updates that a few clients cannot move far."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.examples import shape_of
from tffc.algorithms.functions import Arrays
from tffc.algorithms.settings import check_number
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.user_code.source import entry_point


@dataclasses.dataclass(frozen=True)
class Median:
    """The median of the clients' updates in each coordinate; all clients count alike.

    Yin, Chen, Kannan and Bartlett, "Byzantine-Robust Distributed Learning", ICML 2018.  Of an even
    number of clients, it is the mean of the two in the middle.  What aggregates sees the update of
    every client, and holds all of them.
    """

    def middle(self, tf: Any, updates: Any) -> Any:
        """Return the average of updates along the first axis, in which they are sorted."""
        count = tf.shape(updates)[0]
        low = tf.maximum(count - 1, 0) // 2
        return tf.reduce_mean(updates[low : count // 2 + 1], axis=0)


@dataclasses.dataclass(frozen=True, init=False)
class TrimmedMean:
    """The mean of the clients' updates in each coordinate without the least and the greatest.

    A `share` of the clients, rounded down, is left out at each end: 0.1 for a tenth of them.  All
    clients count alike.  Yin, Chen, Kannan and Bartlett, "Byzantine-Robust Distributed Learning",
    ICML 2018.  What aggregates sees the update of every client, and holds all of them.
    """

    share: float

    @entry_point
    def __init__(self, share: float) -> None:
        """Check the share.

        Raises:
          LanguageValueError: it is not a number from 0 on and below a half.
        """
        object.__setattr__(self, "share", check_number("share", share, high=0.5, least=True))

    def middle(self, tf: Any, updates: Any) -> Any:
        """Return the average of updates along the first axis, in which they are sorted."""
        count = tf.shape(updates)[0]
        cut = tf.cast(tf.floor(tf.cast(count, tf.float32) * self.share), tf.int32)
        return tf.reduce_mean(updates[cut : count - cut], axis=0)


RobustAverage = Median | TrimmedMean


def robust_average(average: RobustAverage, weights: Arrays, updates: Any) -> Any:
    """Return the average of structs of updates and of weights, 0 for those that do not count.

    The accumulator is a list of the updates so far, so the result does not depend on the order in
    which they come.
    """
    tf = load_tensorflow()
    update = OrderedDict(update=weights, weight=tffc.TensorType(np.float32))
    held = OrderedDict(
        (name, tffc.TensorType(type.dtype, [None, *shape_of(type)]))
        for name, type in weights.items()
    )

    @tffc.tf_computation
    def none() -> Arrays:
        # The number of rows is no constant of the graph, so that the type leaves it open.
        rows = tf.size(tf.where(tf.zeros([0], tf.bool)))
        return OrderedDict(
            (name, tf.zeros(tf.stack([rows, *shape_of(type)]), type.dtype))
            for name, type in weights.items()
        )

    @tffc.tf_computation(held, update)
    def accumulate(held: Arrays, update: Any) -> Arrays:
        count = tf.cast(update["weight"] > 0, tf.int32)
        return OrderedDict(
            (name, tf.concat([rows, update["update"][name][None][:count]], axis=0))
            for name, rows in held.items()
        )

    @tffc.tf_computation(held, held)
    def merge(one: Arrays, other: Arrays) -> Arrays:
        return OrderedDict((name, tf.concat([one[name], other[name]], axis=0)) for name in one)

    @tffc.tf_computation(held)
    def report(held: Arrays) -> Arrays:
        return OrderedDict(
            (name, average.middle(tf, tf.sort(rows, axis=0))) for name, rows in held.items()
        )

    return tffc.federated_aggregate(updates, none(), accumulate, merge, report)
