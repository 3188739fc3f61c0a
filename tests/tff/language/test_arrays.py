"""Arrays, element types and shapes of `federated_language`, and their messages."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tffc.tff import federated_language
from tffc.tff.federated_language import messages

VALUES = (
    True,
    -1,
    2**31,
    1.5,
    1j,
    "abc",
    b"\xff",
    np.int8(3),
    np.uint64(2**63),
    np.float16(1.5),
    ml_dtypes.bfloat16(1.5),
    np.array([[1.0, 2.0]], np.float32),
    np.array([], np.int32),
    np.array(["a", "b"]),
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_constant_and_its_message(value: Any) -> None:
    back = federated_language.array_from_proto(federated_language.array_to_proto(value))
    as_bytes = value.encode() if isinstance(value, str) else value
    as_bytes = (
        np.char.encode(value) if getattr(value, "dtype", np.dtype(int)).kind == "U" else as_bytes
    )
    np.testing.assert_array_equal(back, as_bytes)
    if np.asarray(value).dtype.kind not in "SU":
        content = federated_language.array_to_proto_content(value)
        np.testing.assert_array_equal(federated_language.array_from_proto_content(content), back)


def test_the_bytes_of_a_message() -> None:
    """The package itself writes these."""
    message = federated_language.array_to_proto(np.array([1, 2], np.int32))
    assert message.SerializeToString() == b"\x08\x03\x12\x03\n\x01\x02\x32\x04\n\x02\x01\x02"


def test_what_is_no_constant_or_does_not_fit() -> None:
    for value in ([1, 2], None):
        with pytest.raises(NotImplementedError):
            federated_language.array_to_proto(value)
    with pytest.raises(ValueError, match="300 of type int32 does not fit int8"):
        federated_language.array_to_proto(300, dtype_hint=np.int8)
    with pytest.raises(NotImplementedError, match="strings do not tell where one ends"):
        federated_language.array_to_proto_content("a")
    with pytest.raises(ValueError, match="1 bytes are no int32"):
        federated_language.array_from_proto_content(messages.Array(dtype=3, content=b"\1"))


@pytest.mark.parametrize(
    ("value", "dtype", "compatible", "can_cast"),
    [
        (1, np.int8, True, True),
        (300, np.int8, False, False),
        (1, np.float32, False, True),
        (1e10, np.float16, False, False),
        (1e300j, np.complex64, False, False),
        ("a", np.str_, True, True),
        (float("inf"), np.float32, True, True),
        (2**2000, np.float32, None, False),
    ],
)
def test_values_and_element_types(
    value: Any, dtype: Any, compatible: bool | None, can_cast: bool
) -> None:
    assert federated_language.can_cast_dtype(value, dtype) is can_cast
    if compatible is not None:
        assert federated_language.array_is_compatible_dtype(value, dtype) is compatible


def test_element_types() -> None:
    for dtype in (np.bool_, np.int32, np.complex128, np.str_, ml_dtypes.bfloat16):
        number = federated_language.dtype_to_proto(dtype)
        assert federated_language.dtype_from_proto(number) is dtype
    assert messages.DT_INT32 == messages.DataType.Value("DT_INT32") == 3
    assert not any(map(federated_language.is_valid_dtype, (np.bytes_, int, "int32", None)))
    kinds = [federated_language.infer_dtype(value) for value in (True, 1, 2**31, 1.5, 1j, "a")]
    assert kinds == [np.bool_, np.int32, np.int64, np.float32, np.complex128, np.str_]
    with pytest.raises(NotImplementedError):
        federated_language.infer_dtype(np.int8(1))


def test_shapes() -> None:
    for shape in ((), (1, 2), (None, 2), None):
        message = federated_language.array_shape_to_proto(shape)
        assert federated_language.array_shape_from_proto(message) == shape
    assert federated_language.array_shape_is_scalar(())
    assert not federated_language.array_shape_is_fully_defined((None,))
    assert federated_language.num_elements_in_array_shape((2, 3)) == 6
    assert federated_language.array_shape_is_compatible_with((1,), (None,))
    assert not federated_language.array_shape_is_compatible_with((2,), (3,))
    assert federated_language.array_is_compatible_shape(np.array([1, 2]), (None,))
