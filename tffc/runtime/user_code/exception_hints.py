"""Likely fixes for exceptions of Python, NumPy and TensorFlow that the user's code raised."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

USE_FUNCTION = (
    "decorate the function with @tf.function too, below the other decorator, or use tf.cond, "
    "tf.while_loop and the dataset's reduce"
)

WRITE_THE_LOOP = (
    "write the steps out: make the model and its variables in the computation itself, and in an "
    "inner @tf.function, loop over the dataset with a tf.GradientTape and assign to the variables"
)

MAKE_OUTSIDE = (
    "make variables and models in the TensorFlow computation itself, without @tf.function, and put "
    "the loop that uses them into an inner function under @tf.function"
)

CALL_THE_MODEL = (
    "call the model itself, as in model(x), and compute losses and metrics from what it gives"
)

SAME_TYPES = (
    "convert one with tf.cast(x, tf.float32) or the like; a constant is of the type that it is "
    "written as, 0.0 a float32 and 0 an int32"
)

IN_A_COMPUTATION = (
    "NumPy cannot compute with values of a program; write it in a TensorFlow computation"
)

KEEP_A_TENSOR = (
    "a tensor has no value while the computation is traced; keep it a tensor, and convert its "
    "type with tf.cast(x, tf.float32) or the like"
)

USE_KERAS_2 = (
    "this part of tff.learning 0.87 knows Keras 2 only: pip install tf_keras, and set the "
    "environment variable TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, as `tffc python` "
    "does"
)

USE_AN_OPTIMIZER = (
    "tff.learning 0.87 takes an optimizer of tff.learning.optimizers where older releases took a "
    "function that makes one of Keras: in place of lambda: tf.keras.optimizers.SGD(0.02), give "
    "tff.learning.optimizers.build_sgdm(0.02), or build_adam, build_adagrad, build_rmsprop"
)

LONGEST_WORDS = 1000
"""The most characters of a message that are searched, some patterns in the square of their number.
"""

NUMPY_CALL = re.compile(r"\b(?:np|numpy)\.([a-z]\w*)\(")
KERAS_CALL = re.compile(r"\.(fit|evaluate|predict|train_on_batch|test_on_batch)\(")
TRAINING = ("fit", "train_on_batch")
NO_VALUE = re.compile(r"Tensor|not 'NoneType'")

TENSORFLOW_NAMES = {
    "absolute": "abs",
    "all": "reduce_all",
    "any": "reduce_any",
    "append": "concat",
    "arange": "range",
    "array": "convert_to_tensor",
    "asarray": "convert_to_tensor",
    "astype": "cast",
    "concatenate": "concat",
    "dot": "tensordot",
    "hstack": "concat",
    "max": "reduce_max",
    "mean": "reduce_mean",
    "min": "reduce_min",
    "power": "pow",
    "prod": "reduce_prod",
    "std": "math.reduce_std",
    "sum": "reduce_sum",
    "var": "math.reduce_variance",
    "vstack": "concat",
}
"""Functions of NumPy that have other names in TensorFlow."""


def likely_mistake(words: str, line: str) -> str | None:
    """Return the fix for an exception with this message that was raised in this source line, or
    None."""
    words = words[:LONGEST_WORDS]
    called = KERAS_CALL.search(line)
    if called is not None and NO_VALUE.search(words):
        return WRITE_THE_LOOP if called[1] in TRAINING else CALL_THE_MODEL
    for pattern, fix in _MISTAKES.items():
        if re.search(pattern, words):
            return fix if isinstance(fix, str) else fix(line)
    return None


def library_mistake(words: str) -> str | None:
    """Return the fix for an exception with this message that one of TFF's libraries raised, or
    None."""
    words = words[:LONGEST_WORDS]
    fixes = (fix for pattern, fix in _LIBRARY_MISTAKES.items() if re.search(pattern, words))
    return next(fixes, None)


def _use_tensorflow(line: str) -> str:
    """Return the TensorFlow call to write instead of a NumPy function that was given a tensor."""
    called = NUMPY_CALL.search(line)
    if called is None:
        return "a tensor has no value while the computation is traced; use functions of TensorFlow"
    name = called[1]
    return f"NumPy cannot compute with tensors; use {_tensorflow_name(name)} in place of np.{name}"


def _tensorflow_name(name: str) -> str:
    if name in TENSORFLOW_NAMES:
        return f"tf.{TENSORFLOW_NAMES[name]}"
    # The failed code has loaded TensorFlow; this module must not.
    tf = sys.modules.get("tensorflow")
    for place in ("", "math.", "linalg.", "experimental.numpy."):
        module = tf
        for part in place.split(".")[:-1]:
            module = getattr(module, part, None)
        if hasattr(module, name):
            return f"tf.{place}{name}"
    return "a function of TensorFlow"


_LIBRARY_MISTAKES = {
    "object has no attribute '_is_compiled'": USE_KERAS_2,
    "'Variable' object has no attribute 'read_value'": USE_KERAS_2,
    "'(function|type|SGD|Adam|Adagrad|RMSprop)' object has no attribute 'initialize'": (
        USE_AN_OPTIMIZER
    ),
}
"""Message patterns of exceptions from TFF's libraries for programs of older releases."""

_MISTAKES: dict[str, str | Callable[[str], str]] = {
    "Using a symbolic `tf.Tensor` as a Python `bool`": USE_FUNCTION,
    "Iterating over a symbolic `tf.Tensor`": USE_FUNCTION,
    "`tf.data.Dataset` only supports Python-style iteration": USE_FUNCTION,
    "Unable to lift tensor": MAKE_OUTSIDE,
    r"Op has type \w+ that does not match type \w+ of argument": SAME_TYPES,
    "operand 'Value' does not support ufuncs": IN_A_COMPUTATION,
    r"\w+\(\) argument must be .* not 'Value'": IN_A_COMPUTATION,
    "Cannot convert a symbolic tf.Tensor .* to a numpy array": _use_tensorflow,
    r"\w+\(\) argument must be .* not '\w*Tensor'": KEEP_A_TENSOR,
    r"'\w*Tensor' object cannot be interpreted as an integer": KEEP_A_TENSOR,
    r"'Symbolic\w*' object has no attribute 'numpy'": KEEP_A_TENSOR,
}
"""Message patterns of exceptions from Python code that only works outside of programs, and the
fixes; one of them depends on the source line."""
