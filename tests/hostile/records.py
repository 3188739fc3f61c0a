"""Writing TFRecord files, whole or damaged, without TensorFlow."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Sequence
from typing import Any

from tffc import proto
from tffc.data.crc32c import masked_crc32c


def example(features: dict[str, Any]) -> bytes:
    """A serialized `tf.train.Example` with one string, integer or float in each feature."""
    made = proto.Example()
    for name, value in features.items():
        feature = made.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.float_list.value.append(value)
    return made.SerializeToString(deterministic=True)


def framed(content: bytes, length: int | None = None) -> bytes:
    """A record, which says that its content has another length if one is given."""
    head = struct.pack("<Q", len(content) if length is None else length)
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (head, content)]
    return head + sums[0] + content + sums[1]


def write_records(path: str | pathlib.Path, records: Sequence[dict[str, Any]]) -> None:
    pathlib.Path(path).write_bytes(b"".join(framed(example(each)) for each in records))
