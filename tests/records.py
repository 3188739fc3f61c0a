"""Writing TFRecord files, whole or damaged, without TensorFlow."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tffc.graphs import proto
from tffc.runtime.data.tfrecord import masked_crc32c


def example(features: Mapping[str, Any]) -> bytes:
    """A serialized `tf.train.Example`, of strings, bytes, integers or floats, or lists of them."""
    made = proto.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        feature = made.features.feature[name]
        if isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            feature.bytes_list.value.extend(v.encode() if isinstance(v, str) else v for v in values)
    return made.SerializeToString(deterministic=True)


def framed(content: bytes, length: int | None = None) -> bytes:
    """A record, which says that its content has another length if one is given."""
    head = struct.pack("<Q", len(content) if length is None else length)
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (head, content)]
    return head + sums[0] + content + sums[1]


def write_records(path: str | pathlib.Path, records: Sequence[Mapping[str, Any]]) -> None:
    pathlib.Path(path).write_bytes(b"".join(framed(example(each)) for each in records))
