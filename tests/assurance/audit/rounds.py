"""Small rounds for tests of audits, traced without TensorFlow unless they compute something."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import tffc as tff
from tffc.assurance.audit.audit import Audit, Channel, audit
from tffc.assurance.audit.policy import Policy, Violation, violations

TODAY = datetime.date(2030, 1, 1)

PERSON = collections.OrderedDict(
    user=collections.OrderedDict(id=np.int32, name=np.str_),
    username=np.int32,
    pair=(np.int32, np.int32),
    vector=tff.TensorType(np.float32, [None]),
    age=np.int32,
)


def round_of(aggregate: Callable[[Any], Any], data: Any = PERSON, state: Any = np.int32) -> Any:
    """Return a round that keeps its state, and puts out an aggregate of the clients' data."""

    def body(state: Any, data: Any) -> Any:
        return state, aggregate(data)

    return tff.federated_computation(body, tff.types.at_server(state), tff.types.at_clients(data))


def audited(aggregate: Callable[[Any], Any], data: Any = PERSON) -> Audit:
    """Return the audit of such a round."""
    return audit(round_of(aggregate, data).node, "distribute-aggregate")


def channel_of(aggregate: Callable[[Any], Any], data: Any = PERSON) -> Channel:
    """Return the only channel of such a round."""
    (channel,) = audited(aggregate, data).channels
    return channel


def broken(report: Audit, policy: Policy) -> list[Violation]:
    """Return the violations that no exception allows."""
    return [each for each in violations(report, policy, TODAY) if each.excepted is None]


AS_FLOAT = tff.tf_computation(lambda x: tf.cast(x, tf.float32), np.int32)
IS_SEVEN = tff.tf_computation(lambda x: tf.cast(x == 7, tf.float32), np.int32)
LENGTH = tff.tf_computation(
    lambda x: tf.cast(tf.shape(x)[0], tf.float32), tff.TensorType(np.float32, [None])
)
CHANCE = tff.tf_computation(lambda: tf.cast(tf.random.uniform([]) > 0.99, tf.float32))
FROM_FILE = tff.tf_computation(lambda: tf.strings.to_number(tf.io.read_file("weight")))
PLUS = tff.tf_computation(lambda a, b: a + b, np.int32, np.int32)
SAME = tff.tf_computation(lambda a: a, np.int32)
NEGATIVE = tff.tf_computation(lambda a: -a, np.int32)
ROWS = tff.SequenceType(np.float32)
TOTAL = tff.tf_computation(lambda rows: rows.reduce(0.0, lambda a, b: a + b), ROWS)
COUNT = tff.tf_computation(lambda rows: rows.reduce(0.0, lambda n, _: n + 1.0), ROWS)


def joined(value: Any) -> Any:
    """Return clients' vectors of any length, one after the other."""
    vector = tff.TensorType(np.float32, [None])
    both = tff.tf_computation(lambda a, b: tf.concat([a, b], 0), vector, vector)
    same = tff.tf_computation(lambda a: a, vector)

    @tff.tf_computation
    def nothing() -> Any:
        return tf.ensure_shape(tf.reshape(tf.constant([], tf.float32), [-1]), [None])

    return tff.federated_aggregate(value, nothing(), both, both, same)
