"""Our records as Flower's: arrays as its arrays, which it sends in chunks, and the rest beside."""

from __future__ import annotations

from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict  # pyright: ignore[reportMissingImports]

from tffc.flower.messages import Record, malformed

ABOUT, ARRAYS = "tffc", "arrays"


def to_flower(record: Record) -> RecordDict:
    """Return a record as Flower sends it."""
    arrays = {f"{at:06}": Array(array) for at, array in enumerate(record.arrays)}
    return RecordDict({ABOUT: ConfigRecord(dict(record.entries)), ARRAYS: ArrayRecord(arrays)})


def from_flower(content: RecordDict) -> Record:
    """Return the record that Flower brought, which may be anybody's.

    Raises:
      ExecutionError: it is none of ours.
    """
    about, arrays = content.get(ABOUT), content.get(ARRAYS)
    if not isinstance(about, ConfigRecord) or not isinstance(arrays, ArrayRecord):
        raise malformed("it does not have our two records")
    return Record(dict(about), [_numpy(array) for _, array in sorted(arrays.items())])


def _numpy(array: Any) -> Any:
    try:
        return array.numpy()
    except Exception as error:  # noqa: BLE001  (what was sent may fail in any way)
        raise malformed(f"one of its arrays cannot be read, {type(error).__name__}") from None
