"""Refusals of arithmetic, which the judge and the engines carry out each in its own way."""

from __future__ import annotations

from tffc.errors import ExecutionError
from tffc.ir.types import Type

MAX_BITWIDTH = 62
"""How many bits the numbers of a secure sum may have."""


def division_by_zero() -> ExecutionError:
    """Return the refusal of a quotient or remainder of integers."""
    return ExecutionError(
        "E730", "an integer cannot be divided by 0", help="give divisors that are not 0"
    )


def not_numbers(type: Type) -> ExecutionError:
    """Return the refusal of arithmetic on values of a type."""
    return ExecutionError(
        "E731",
        f"there is no arithmetic on values of type `{type}`",
        help="convert them to numbers first, in a TensorFlow computation",
    )


def nothing_to_start_from(type: Type, leaf: Type) -> ExecutionError:
    """Return the refusal of a zero or limit of a type, for a leaf of it."""
    return ExecutionError(
        "E732",
        f"there is no value of type `{type}` to start from, because the shape of `{leaf}` "
        "is not known",
        help="give the tensors a fixed shape",
    )


def mean_of_integers(type: Type) -> ExecutionError:
    """Return the refusal of a mean of values of a type."""
    return ExecutionError(
        "E733",
        f"a mean of integers is not an integer, so there is none of type `{type}`",
        help="convert the values to floating-point numbers first",
    )


def too_many_bits(bits: int) -> ExecutionError:
    """Return the refusal of a secure sum of numbers of so many bits."""
    return ExecutionError(
        "E734", f"a secure sum takes numbers of up to {MAX_BITWIDTH} bits, not {bits}"
    )
