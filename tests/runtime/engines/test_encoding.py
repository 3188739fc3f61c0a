"""Values as bytes: what is read is what was written, in one encoding each."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tffc.language.values.concrete import Federated
from tffc.runtime.engines.encoding import decode, encode

NUMBERS = arrays.arrays(
    st.sampled_from(["bool", "int8", "uint64", "float16", "float64", "complex64"]),
    arrays.array_shapes(min_dims=0, min_side=0),
)
STRINGS = arrays.arrays(
    "object", arrays.array_shapes(min_side=0), elements=st.binary(max_size=5), fill=st.nothing()
)
VALUES = st.recursive(
    NUMBERS | STRINGS | st.binary() | st.none(),
    lambda inner: st.lists(inner).flatmap(
        lambda items: st.sampled_from(
            [items, tuple(items), Federated(tuple(items), all_equal=len(items) == 1)]
        )
    ),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_read_is_what_was_written(value: Any) -> None:
    found = decode(encode(value))
    assert type(found) is type(value) or np.ndim(value) == 0
    assert repr(found) == repr(_scalars(value))
    assert encode(found) == encode(value)


def _scalars(value: Any) -> Any:
    """A value with scalars for arrays of rank 0, as in all values."""
    if isinstance(value, Federated):
        return Federated(_scalars(value.members), value.all_equal)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_scalars, value))
    return value[()] if isinstance(value, np.ndarray) else value


def test_element_types_and_shapes_are_kept() -> None:
    value = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)[:, ::2]
    found = decode(encode(value))
    assert (found.dtype, found.shape) == (value.dtype, (2, 2))
    np.testing.assert_array_equal(found, value)
    found[0] = 1  # What is read may be written to.
    assert decode(encode(np.int64(3))).dtype == np.int64


def test_however_deep_values_nest() -> None:
    value: Any = b"within"
    for _ in range(10_000):
        value = (value,)
    found = decode(encode(value))
    for _ in range(10_000):
        (found,) = found
    assert found == b"within"


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="a dict is not part of a value"):
        encode(({},))
    with pytest.raises(ValueError, match=r"no value begins with b'\\x80'"):
        decode(pickle.dumps(()))


@given(VALUES)
def test_arrays_beside_the_bytes(value: Any) -> None:
    beside: list[Any] = []
    rest = encode(value, beside)
    assert all(isinstance(each, np.ndarray) for each in beside)
    assert encode(decode(rest, beside)) == encode(value)


def test_what_numpy_cannot_save_is_in_the_bytes() -> None:
    beside: list[Any] = []
    value = (np.ones(2, ml_dtypes.bfloat16), np.float32(3))
    rest = encode(value, beside)
    assert [each.dtype.name for each in beside] == ["float32"]
    assert repr(decode(rest, beside)) == repr(value)


SHORT, MANY = (1).to_bytes(8, "little"), (2**40).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no value begins with b''"),
        (b"NN", "something follows the value"),
        (b"B" + MANY + b"x", "the value ends too soon"),
        (b"T" + MANY, "the value ends too soon"),
        (b"T" + (2**64 - 1).to_bytes(8, "little"), "the value ends too soon"),
        (b"L" + SHORT, "the value ends too soon"),
        (b"A" + (99).to_bytes(8, "little"), "there is no such element type"),
        (b"A" + SHORT + SHORT + MANY, "the value ends too soon"),
        (b"S" + SHORT + MANY, "the value ends too soon"),
        (b"S" + SHORT + SHORT + b"N", "an array of strings holds something else"),
        (b"S" + SHORT + (2**64 - 1).to_bytes(8, "little") + b"N", "a shape is negative"),
        (b"R", "an array of numbers is missing beside the value"),
    ],
)
def test_bytes_that_are_not_a_value(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(content)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_are_refused(content: bytes) -> None:
    try:
        decode(content)
    except ValueError:
        return


def test_arrays_that_are_left_over_are_refused() -> None:
    with pytest.raises(ValueError, match="something follows the value"):
        decode(b"N", [np.ones(2)])
    with pytest.raises(ValueError, match="an array of numbers is missing"):
        decode(b"R", [np.array(["a"])])
