"""The messages of an Arrow stream: reading them, and what Arrow does not say about them."""

from __future__ import annotations

import struct
from typing import Any


def next_message(messages: Any) -> Any:
    """Return the next message of an Arrow stream, or None at its end."""
    try:
        return messages.read_next_message()
    except StopIteration:
        return None


def is_compressed(metadata: Any) -> bool:
    """Return whether an Arrow message, already verified, says that its buffers are compressed.

    Arrow would allocate whatever decompressed size they claim.  The message is a FlatBuffers table:
    its third field is the record batch, whose fourth field says how the buffers are compressed
    (https://github.com/apache/arrow/blob/main/format/Message.fbs).
    """
    content = metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", content)
    header = _field(content, root, 2)
    if header is None:
        return False
    (distance,) = struct.unpack_from("<I", content, header)
    return _field(content, header + distance, 3) is not None


def _field(content: bytes, table: int, number: int) -> int | None:
    """Return the offset of a field of a FlatBuffers table, or None if the table does not have
    it."""
    (back,) = struct.unpack_from("<i", content, table)
    (size,) = struct.unpack_from("<H", content, table - back)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", content, table - back + 4 + 2 * number)
    return table + offset if offset else None
