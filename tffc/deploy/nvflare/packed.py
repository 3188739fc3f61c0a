"""Our messages as bytes: the texts and numbers as JSON, the value, and the arrays beside it."""

from __future__ import annotations

import numpy as np

from tffc.deploy.federation.messages import Record, malformed
from tffc.runtime.engines.encoding import decode, encode
from tffc.support.errors import ExecutionError, reader
from tffc.support.files.strict_json import NotJsonError, encode_json, read_json
from tffc.support.guards import is_dict, is_list, is_numpy, is_tuple

REST = "rest"
"""The only entry of a message that is bytes."""


def pack(record: Record) -> bytes:
    """Return a message as bytes."""
    about = {name: value for name, value in record.entries.items() if name != REST}
    return encode((encode_json(about), record.entries.get(REST), list(record.arrays)))


@reader("a message of a federation", ExecutionError)
def unpack(content: object) -> Record:
    """Return the message in untrusted content.

    Raises:
      ExecutionError: it is not one of ours.
    """
    if not isinstance(content, bytes):
        raise malformed("it is not bytes")
    try:
        parts = decode(content)
    except ValueError as error:
        raise malformed(str(error)) from None
    if not is_tuple(parts) or len(parts) != 3:
        raise malformed("it does not have three parts")
    head, rest, arrays = parts
    if not isinstance(head, bytes) or not is_list(arrays) or not all(map(is_numpy, arrays)):
        raise malformed("its parts are others")
    try:
        about = read_json(head)
    except NotJsonError as error:
        raise malformed(str(error)) from None
    if not is_dict(about):
        raise malformed("what it says of itself is not an object")
    entries = {str(name): value for name, value in about.items()}
    # A number alone comes back as NumPy's scalar.
    beside = [np.asarray(array) for array in arrays]
    return Record(entries if rest is None else {**entries, REST: rest}, beside)
