"""The messages of masked sums between the server and the nodes.

The five steps are those of `tffc.runtime.masking`.  The third is the request to work: besides the
values sent to clients it has the sealed shares of other nodes, and the reply has masked
accumulators.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from tffc.deploy.federation.messages import Request, malformed
from tffc.runtime.engines.encoding import encode
from tffc.runtime.masking.commitments import SHARE
from tffc.runtime.masking.terms import Keys, Revealed, Terms
from tffc.runtime.masking.vectors import Segment
from tffc.support.errors import ExecutionError
from tffc.support.guards import is_tuple

T = TypeVar("T")

MOST_SEGMENTS, MOST_VALUES, MOST_PARTICIPANTS = 2**16, 2**40, 2**12
"""Splitting secrets takes time in the square of the participants: some seconds for the most."""

LABEL, DIGEST = 16, 32
"""The bytes of labels, and of digests of what the server sends."""


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


def digest_of_sent(carried: object, sent: object) -> bytes:
    """Return the digest of all that the server sends for a round: its own values that aggregations
    need, such as bounds, and the values for the clients."""
    # Equal values have equal encodings, on both sides of a message.
    return hashlib.sha256(encode((carried, sent))).digest()


def pack_terms(name: str, terms: Terms) -> tuple[object, ...]:
    """Pack what the first request holds of the terms, and the participant's name."""
    segments = tuple((str(s.modulus).encode(), np.int64(s.size)) for s in terms.segments)
    return name.encode(), np.int64(terms.threshold), segments, terms.sent


_PackedTerms: TypeAlias = tuple[bytes, object, Iterable[tuple[bytes, object]], object]
"""The types of packed terms, if they are right; others fail where they are used."""


def unpack_terms(request: Request) -> tuple[str, Terms]:
    """Unpack the participant's name and the terms from the first request.

    Raises:
      ExecutionError: the request is malformed.
    """
    try:
        name, threshold, pairs, sent = cast("_PackedTerms", request.sent)
        label = bytes.fromhex(label_of(request.attempt))
        is_named = label.hex() == label_of(request.attempt) and len(label) == LABEL
        segments = tuple(Segment(int(modulus), _whole(size)) for modulus, size in pairs)
        is_right = all(1 <= s.modulus <= 2**64 and 0 <= s.size < MOST_VALUES for s in segments)
        # This includes `dtype`, which fails for moduli that masks cannot be drawn for.
        is_right = is_right and len(segments) < MOST_SEGMENTS and all(s.dtype for s in segments)
        if is_right and is_named and isinstance(sent, bytes) and len(sent) == DIGEST:
            count = _whole(threshold)
            return name.decode(), Terms(
                label, count, segments, request.program, request.round, sent
            )
    except (ValueError, TypeError, AttributeError, StopIteration):
        pass
    raise malformed("it does not hold the terms of a masked sum")


def _whole(value: object) -> int:
    if not isinstance(value, np.integer):
        raise TypeError("it is not a number as we write it")
    return int(cast("np.integer[Any]", value))


def pack_keys(keys: Keys) -> tuple[bytes, ...]:
    """Pack the public keys of a participant into a value."""
    return keys.sealing, keys.masking, keys.signature


def unpack_keys(packed: object) -> Keys:
    """Unpack the result of `pack_keys`; raises the same error as `unpack_terms`."""
    if not is_tuple(packed) or len(packed) != 3 or not _are_bytes(packed):
        raise malformed("it does not hold the keys of a participant")
    sealing, masking, signature = packed
    return Keys(sealing, masking, signature)


def pack_table(table: Mapping[str, T]) -> tuple[tuple[bytes, T], ...]:
    """Pack a mapping into a value."""
    return tuple((name.encode(), table[name]) for name in sorted(table))


def unpack_table(packed: object) -> dict[str, object]:
    """Unpack the result of `pack_table`; raises the same error as `unpack_terms`."""
    table: dict[str, object] = {}
    for pair in packed if is_tuple(packed) else (None,):
        encoded, value = pair if is_tuple(pair) and len(pair) == 2 else (None, None)
        if not isinstance(encoded, bytes):
            raise malformed("it does not hold a table")
        name = _name(encoded)
        if name in table or len(table) == MOST_PARTICIPANTS:
            raise malformed("its table has a name twice, or too many")
        table[name] = value
    return table


def unpack_bytes(packed: object) -> dict[str, bytes]:
    """Unpack a table whose values are bytes; raises the same error as `unpack_terms`."""
    table = unpack_table(packed)
    values = tuple(table.values())
    if not _are_bytes(values):
        raise malformed("it does not hold a table of bytes")
    return dict(zip(table, values, strict=True))


def pack_revealed(revealed: Revealed) -> tuple[object, ...]:
    """Pack the shares that a participant reveals at the end into a value."""
    return pack_table(_shares(revealed.seeds)), pack_table(_shares(revealed.secrets))


def unpack_revealed(packed: object) -> Revealed:
    """Unpack the result of `pack_revealed`; raises the same error as `unpack_terms`."""
    if not is_tuple(packed) or len(packed) != 2:
        raise malformed("it does not hold shares")
    seeds, secrets = map(unpack_bytes, packed)
    if any(len(share) != SHARE for share in (*seeds.values(), *secrets.values())):
        raise malformed("a share has another size")
    return Revealed(_numbers(seeds), _numbers(secrets))


def _shares(numbers: Mapping[str, int]) -> dict[str, bytes]:
    return {name: number.to_bytes(SHARE, "little") for name, number in numbers.items()}


def _numbers(shares: Mapping[str, bytes]) -> dict[str, int]:
    return {name: int.from_bytes(share, "little") for name, share in shares.items()}


def _are_bytes(values: tuple[object, ...]) -> TypeGuard[tuple[bytes, ...]]:
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
