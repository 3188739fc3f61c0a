"""A computation with variables, which must be new in each call in every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import tffc as tff


@tff.tf_computation(np.float32)
def counted(x: Any) -> Any:
    first = tf.Variable(tf.constant(1.0))
    first.assign_add(x)
    second = tf.Variable(first * 2.0)
    second.assign_add(1.0)
    return first.read_value(), second.read_value()
