"""Sums over clients with discrete noise, so that no digits of floating-point noise leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.settings import check_count, check_number
from tffc.language.containers.struct import Struct
from tffc.language.type_parts import leaves
from tffc.language.types import TensorType
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError

MODULUS = 2**40
"""The modulus of secure sums: larger than what any number of clients adds up to, and small enough
that masked sums of it fit 64 bits."""


@entry_point
def private_sum(
    value: Any,
    clip: float,
    noise_multiplier: float,
    *,
    levels: int = 4096,
    least_clients: int | None = None,
) -> Any:
    """Return the sum of the clients' floating-point tensors with Skellam noise, at the server.

    Each client scales all its tensors together to an L2 norm of at most `clip`, without elements
    that are infinite or no numbers, and rounds them towards zero to multiples of `clip / levels`,
    so that it adds integers of a norm of at most `levels`.  The noise is of integers too, with a
    standard deviation of `noise_multiplier * clip`.

    The server adds the noise to the sum.  With `least_clients`, a number of clients that each round
    has at least, the clients add it instead, each its share, and the sum is a secure one.

    Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated Learning",
    NeurIPS 2021, without its rotation.

    Raises:
      LanguageTypeError: the value is not made of floating-point tensors of fixed shape at clients.
      LanguageValueError: a setting is not positive.
    """
    clip = check_number("clip", clip)
    deviation = check_number("noise_multiplier", noise_multiplier) * check_count("levels", levels)
    shares = 1 if least_clients is None else check_count("least_clients", least_clients)
    value = tffc.federated_zip(value) if isinstance(value, (list, tuple, dict, Struct)) else value
    member = value.type_signature.member
    types = _float_tensors(member)
    tf = load_tensorflow()
    # The variance of a difference of two Poisson draws is the sum of their rates.
    rate = np.float64((deviation / math.sqrt(shares)) ** 2 / 2)

    def noisy(tensor: Any) -> Any:
        first, second = (tf.random.poisson(tensor.shape, rate, tf.int64) for _ in range(2))
        return tensor + (first - second)

    def released(total: Any, integers: Callable[[Any], Any]) -> Any:
        floats = [
            tf.cast(tf.cast(integers(tensor), tf.float64) * (clip / levels), type.dtype)
            for tensor, type in zip(tf.nest.flatten(total), types, strict=True)
        ]
        return tf.nest.pack_sequence_as(total, floats)

    @tffc.tf_computation(member)
    def rounded(update: Any) -> Any:
        wide = [tf.cast(tensor, tf.float64) for tensor in tf.nest.flatten(update)]
        finite = [tf.where(tf.math.is_finite(t), t, tf.zeros_like(t)) for t in wide]
        scale = tf.minimum(np.float64(1), clip / tf.linalg.global_norm(finite)) * (levels / clip)
        integers = [tf.cast(tensor * scale, tf.int64) for tensor in finite]
        if least_clients is not None:
            integers = list(map(noisy, integers))
        return tf.nest.pack_sequence_as(update, integers)

    @tffc.tf_computation(rounded.type_signature.result)
    def with_noise(total: Any) -> Any:
        return released(total, noisy)

    @tffc.tf_computation(rounded.type_signature.result)
    def centered(total: Any) -> Any:
        return released(total, lambda t: tf.where(t < MODULUS // 2, t, t - MODULUS))

    integers = tffc.federated_map(rounded, value)
    if least_clients is None:
        return tffc.federated_map(with_noise, tffc.federated_sum(integers))
    total = tffc.backends.mapreduce.federated_secure_modular_sum(integers, MODULUS)
    return tffc.federated_map(centered, total)


def _float_tensors(type: Any) -> list[TensorType]:
    """Return the tensors of a client's value."""
    tensors: list[TensorType] = []
    for tensor in leaves(type):
        if not (
            isinstance(tensor, TensorType)
            and tensor.is_fully_defined()
            and tensor.element_type.is_floating
        ):
            raise LanguageTypeError(
                "E417",
                f"a private sum cannot add up a value of type `{tensor}`",
                help="give tensors of floating-point numbers whose shapes have all sizes",
            )
        tensors.append(tensor)
    return tensors
