"""The messages of masked sums between the server and the nodes.

The five steps are those of `tffc.masking`.  The third is the request to work: besides the values
sent to clients it has the sealed shares of other nodes, and the reply has masked accumulators.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from tffc.errors import ExecutionError
from tffc.flower.messages import malformed
from tffc.masking.participant import SHARE
from tffc.masking.terms import Keys, Revealed, Terms
from tffc.masking.vectors import Segment

MOST_SEGMENTS, MOST_VALUES = 2**16, 2**40


class MaskedStep(enum.StrEnum):
    """The steps in order; the values are the kinds of their requests."""

    KEYS = "keys"
    SHARES = "shares"
    WORK = "work"
    CONFIRMED = "confirmed"
    REVEALED = "revealed"


def attempt_of(label: str, step: MaskedStep) -> str:
    """Return the attempt id in a step's request and reply."""
    return f"{label}/{step.value}"


def label_of(attempt: str) -> str:
    """Return the label of the sum that the attempt id of a step belongs to."""
    return attempt.partition("/")[0]


def pack_terms(name: str, terms: Terms) -> Any:
    """Pack the content of the first request: the participant's name, and the terms."""
    segments = tuple((str(s.modulus).encode(), np.int64(s.size)) for s in terms.segments)
    return name.encode(), np.int64(terms.threshold), segments


def unpack_terms(packed: Any, label: bytes) -> tuple[str, Terms]:
    """Unpack the result of `pack_terms`.

    Raises:
      ExecutionError: `packed` is malformed.
    """
    try:
        name, threshold, pairs = packed
        segments = tuple(Segment(int(modulus), int(size)) for modulus, size in pairs)
        is_right = all(1 <= s.modulus <= 2**64 and 0 <= s.size < MOST_VALUES for s in segments)
        # This includes `dtype`, which fails for moduli that masks cannot be drawn for.
        is_right = is_right and len(segments) < MOST_SEGMENTS and all(s.dtype for s in segments)
        if is_right:
            return name.decode(), Terms(label, int(threshold), segments)
    except (ValueError, TypeError, AttributeError, StopIteration):
        pass
    raise malformed("it does not hold the terms of a masked sum")


def pack_keys(keys: Keys) -> Any:
    """Pack the public keys of a participant into a value."""
    return keys.sealing, keys.masking, keys.signature


def unpack_keys(packed: Any) -> Keys:
    """Unpack the result of `pack_keys`; raises the same error as `unpack_terms`."""
    if not isinstance(packed, tuple) or len(packed) != 3 or not _are_bytes(packed):
        raise malformed("it does not hold the keys of a participant")
    return Keys(*packed)


def pack_table(table: Mapping[str, Any]) -> Any:
    """Pack a mapping into a value."""
    return tuple((name.encode(), each) for name, each in sorted(table.items()))


def unpack_table(packed: Any) -> dict[str, Any]:
    """Unpack the result of `pack_table`; raises the same error as `unpack_terms`."""
    found: dict[str, Any] = {}
    for pair in packed if isinstance(packed, tuple) else (None,):
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], bytes):
            raise malformed("it does not hold a table")
        found[_name(pair[0])] = pair[1]
    return found


def unpack_bytes(packed: Any) -> dict[str, bytes]:
    """Unpack a table whose values are bytes; raises the same error as `unpack_terms`."""
    found = unpack_table(packed)
    if not _are_bytes(tuple(found.values())):
        raise malformed("it does not hold a table of bytes")
    return found


def pack_revealed(revealed: Revealed) -> Any:
    """Pack the shares that a participant reveals at the end into a value."""
    return pack_table(_shares(revealed.seeds)), pack_table(_shares(revealed.secrets))


def unpack_revealed(packed: Any) -> Revealed:
    """Unpack the result of `pack_revealed`; raises the same error as `unpack_terms`."""
    if not isinstance(packed, tuple) or len(packed) != 2:
        raise malformed("it does not hold shares")
    seeds, secrets = map(unpack_bytes, packed)
    return Revealed(_numbers(seeds), _numbers(secrets))


def _shares(numbers: Mapping[str, int]) -> dict[str, bytes]:
    return {name: number.to_bytes(SHARE, "little") for name, number in numbers.items()}


def _numbers(shares: Mapping[str, bytes]) -> dict[str, int]:
    return {name: int.from_bytes(share, "little") for name, share in shares.items()}


def _are_bytes(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, bytes) for value in values)


def _name(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        raise malformed("a name is not a text") from None


def too_far(step: str, expected: str) -> ExecutionError:
    """Return the error for a step that is not the next one of a sum."""
    return ExecutionError(
        "E788",
        f"the server asks for the step {step!r} of a masked sum, and the next one is {expected!r}",
        notes=("a step that is done twice could show what masks hide",),
        help="let the round begin again",
    )
