"""Records travel as Flower's, with one array for each element type, and are read strictly."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

from tffc.deploy.federation.messages import Record
from tffc.support.errors import ExecutionError

pytest.importorskip("flwr", reason="needs tffc[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.flower.records import from_flower, to_flower

ARRAYS = [
    np.arange(6, dtype="<f4").reshape(2, 3),
    np.array(7, "<i8"),
    np.zeros((0, 4), "<f4"),
    np.array([True, False]),
    np.float32(1.5),
    np.array([[1 + 2j]], "<c16"),
    np.arange(3, dtype=np.uint8),
]


def test_arrays_of_one_type_travel_as_one() -> None:
    content = to_flower(Record({"round": 3, "rest": b"R"}, ARRAYS))
    arrays: Any = content["arrays"]
    assert {name: array.numpy().tolist() for name, array in arrays.items()} == {
        "<f4": [0, 1, 2, 3, 4, 5, 1.5],
        "<i8": [7],
        "|b1": [True, False],
        "<c16": [1 + 2j],
        "|u1": [0, 1, 2],
    }
    assert content["tffc"]["shapes"] == [
        "<f4 2 3",
        "<i8",
        "<f4 0 4",
        "|b1 2",
        "<f4",
        "<c16 1 1",
        "|u1 3",
    ]
    found = from_flower(content)
    assert found.entries == {"round": 3, "rest": b"R"}
    assert [(a.dtype, a.shape, a.tolist()) for a in found.arrays] == [
        (a.dtype, a.shape, a.tolist()) for a in ARRAYS
    ]


def test_a_record_without_arrays() -> None:
    assert from_flower(to_flower(Record({"name": "n"}, ()))) == Record({"name": "n"}, [])


def record(shapes: Any, **arrays: Any) -> RecordDict:
    about = ConfigRecord({} if shapes is None else {"shapes": shapes})
    found = {f"<{name}": Array(array) for name, array in arrays.items()}
    return RecordDict({"tffc": about, "arrays": ArrayRecord(found)})


NOT_FLAT = "one of its arrays is not a flat array of numbers"
FOUR = np.zeros(4, "<f4")


MISSING = "an array of numbers is missing beside the value"
HUGE = "<f4 0" + " 999999999999" * 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (RecordDict(), "it does not have our two records"),
        (record(None, f4=FOUR), "it does not say which arrays it has"),
        (record("<f4 4", f4=FOUR), "it does not say which arrays it has"),
        (record([4], f4=FOUR), "what it says of its arrays cannot be read"),
        (record(["<f4 -4"], f4=FOUR), "what it says of its arrays cannot be read"),
        (record(["<f4 4 "], f4=FOUR), "what it says of its arrays cannot be read"),
        (record(["<f4 5"], f4=FOUR), MISSING),
        (record(["<f4 4", "<f4 1"], f4=FOUR), MISSING),
        (record(["<f8 4"], f4=FOUR), MISSING),
        (record(["<f4 4"], f4=FOUR.astype("<i4")), MISSING),
        (record(["<f4 4"], f4=FOUR.reshape(4, 1)), NOT_FLAT),
        (record([HUGE], f4=FOUR[:0]), "one of its arrays has a shape that no array has"),
        (record(["<f4 3"], f4=FOUR), "it has more numbers than it says"),
        (record([], f4=FOUR), "it has more numbers than it says"),
    ],
)
def test_records_that_are_not_ours(content: RecordDict, reason: str) -> None:
    with pytest.raises(ExecutionError, match="not one of tffc's") as caught:
        from_flower(content)
    assert caught.value.message.endswith(f": {reason}")


def npy(array: Any, **changes: Any) -> bytes:
    """A file of an array, with other claims in its head."""
    head = np.lib.format.header_data_from_array_1_0(array)
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {**head, **changes})
    return file.getvalue() + array.tobytes()


def archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, FOUR)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"nothing", NOT_FLAT),
        (b"", NOT_FLAT),
        (archive(), NOT_FLAT),
        (pickle.dumps(FOUR), NOT_FLAT),
        (npy(FOUR, descr="|O"), NOT_FLAT),
        (npy(FOUR, descr=[("a", "<f4")]), NOT_FLAT),
        (npy(FOUR, descr="<f9"), "one of its arrays is of numbers that do not exist"),
        (npy(FOUR, shape=(2, 2)), NOT_FLAT),
        (npy(FOUR, shape=(10**17,)), "one of its arrays has another size than it claims"),
        (npy(FOUR, shape=(3,)), "one of its arrays has another size than it claims"),
        (npy(FOUR)[:-1], "one of its arrays has another size than it claims"),
        (npy(FOUR).replace(b"v\0", b"w\0", 1), NOT_FLAT),
        (
            npy(np.full(4, 7, np.uint8), descr="|b1"),
            "one of its arrays has booleans that are neither true nor false",
        ),
    ],
)
def test_arrays_that_are_not_ours(data: bytes, reason: str) -> None:
    """Nothing is allocated for what is claimed, and neither archives nor pickles are opened."""
    arrays = ArrayRecord({"<f4": Array("float32", (4,), "numpy.ndarray", data)})
    content = RecordDict({"tffc": ConfigRecord({"shapes": []}), "arrays": arrays})
    with pytest.raises(ExecutionError, match=f"not one of tffc's: {reason}"):
        from_flower(content)


def test_a_shape_of_very_many_sizes() -> None:
    """The product of a hundred thousand sizes would take longer than all else."""
    content = record(["<f4" + " 999999999999999999" * 100_000], f4=FOUR)
    with pytest.raises(ExecutionError, match="what it says of its arrays cannot be read"):
        from_flower(content)
