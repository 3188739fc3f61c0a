"""Errors about arithmetic, shared by the interpreter and the engines, which compute it
separately."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.language.types import Type
from tffc.support.errors import ExecutionError

MAX_BITWIDTH = 62
"""The most bits that the numbers of a secure sum may have."""


def division_by_zero() -> ExecutionError:
    """Return the error for a quotient or remainder of integers by zero."""
    return ExecutionError(
        "E722", "an integer cannot be divided by 0", help="give divisors that are not 0"
    )


def not_numbers(type: Type) -> ExecutionError:
    """Return the error for arithmetic on values of a type that is not numeric."""
    return ExecutionError(
        "E731",
        f"there is no arithmetic on values of type `{type}`",
        help="convert them to numbers first, in a TensorFlow computation",
    )


def nothing_to_start_from(type: Type, leaf: Type) -> ExecutionError:
    """Return the error for a type that has no zero or limit because of its part `leaf`."""
    return ExecutionError(
        "E731",
        f"there is no value of type `{type}` to start from, because the shape of `{leaf}` "
        "is not known",
        help="give the tensors a fixed shape",
    )


def mean_of_integers(type: Type) -> ExecutionError:
    """Return the error for a mean of values of a type with integers."""
    return ExecutionError(
        "E731",
        f"a mean of integers is not an integer, so there is none of type `{type}`",
        help="convert the values to floating-point numbers first",
    )


def too_many_bits(bits: int) -> ExecutionError:
    """Return the error for a secure sum of numbers with that many bits."""
    return ExecutionError(
        "E734", f"a secure sum takes numbers of up to {MAX_BITWIDTH} bits, not {bits}"
    )


def negative_bound(bound: Any) -> ExecutionError:
    """Return the error for a secure sum under a negative bound."""
    return ExecutionError(
        "E734",
        f"the bound of a secure sum is {bound}, which is negative",
        help="give a bound of 0 or more: clients add values from 0 up to it",
    )


def beyond_bounds(value: Any, most: Any) -> str:
    """Return how an addend of a secure sum, whose values are from 0 to `most`, is beyond that; or
    an empty text."""
    if np.any(np.greater(value, most)):
        return f"adds {np.max(value)} to a secure sum whose values are at most {np.max(most)}"
    if np.any(np.less(value, 0)):
        return f"adds {np.min(value)} to a secure sum whose values are at least 0"
    return ""
