"""The decorator by which a program says that its rounds may be buffered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tffc.backends.compiler import compile_discount
from tffc.frontend.computation import Computation, PolymorphicComputation, tf_computation
from tffc.frontend.hints import described
from tffc.language.types import TensorType, to_type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError

AGE = to_type(np.int32)


@entry_point
def buffered(discount: object) -> Callable[[object], Computation]:
    """Return a decorator that says that the rounds of a federated computation may be buffered:
    clients work on the state that they were given, and the server steps after some contributions.

    `discount` is a function from the age of a contribution, an int32, to its weight, a float32.
    The age is the number of steps that the server has made since the client was given its state.
    It is a computation of any framework, or a Python function of TensorFlow, and is traced once.

        @tffc.buffered(discount=lambda age: 1 / tf.sqrt(1 + tf.cast(age, tf.float32)))
        @tff.federated_computation(...)
        def round(state, data): ...

    Raises:
      LanguageTypeError: the discount has another type, or what is decorated is no computation.
      FormError: the discount does not always give the same for an age.
    """
    computation = _discount(discount)

    @entry_point
    def decorate(round: object) -> Computation:
        if not isinstance(round, Computation):
            raise LanguageTypeError(
                "E416",
                f"@tffc.buffered decorates federated computations, but was given "
                f"{described(round)}",
                help="write it above @tff.federated_computation(...), with the types of the "
                "parameters",
            )
        return round.with_discount(computation)

    return decorate


def _discount(discount: Any) -> Computation:
    if isinstance(discount, PolymorphicComputation):
        discount = discount.specialize(AGE, splat=True)
    elif not isinstance(discount, Computation) and callable(discount):
        discount = tf_computation(discount, AGE)
    if not isinstance(discount, Computation):
        raise LanguageTypeError(
            "E416",
            f"the discount of a buffered round is {described(discount)}",
            help="give a function from an age, an int32, to a weight, a float32",
        )
    signature = discount.type_signature
    weight = TensorType(np.float32)
    if signature.parameter != AGE or signature.result != weight:
        raise LanguageTypeError(
            "E534",
            f"the discount of a buffered round is of type `{signature}`, expected "
            f"`({AGE} -> {weight})`",
            help="let it take the age as an int32, and give the weight as a float32, such as with "
            "tf.cast(age, tf.float32)",
        )
    discount.check_closed("used as a discount")
    compile_discount(discount.node)
    return discount
