"""The costs of a masked sum for one participant, over the messages of a Flower app.

python -m benchmarks.masking [PARTICIPANTS ...]

One participant does all of its five steps, with keys that sign and without.  The others make their
keys, sign, and seal a share for it, which is all that it needs of them; nobody drops out.  Counted
are the processor seconds of a step with reading and writing its messages, and their bytes.  Beside
them is what section 7.1 of Bonawitz et al. 2017 says of bytes: 2n keys and 5n - 4 shares of 256
bits, and a vector whose numbers have the bits of the sum.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tffc.deploy.federation.masked_steps import (
    MaskedStep,
    attempt_of,
    pack_keys,
    pack_revealed,
    pack_table,
    pack_terms,
    unpack_bytes,
    unpack_keys,
    unpack_table,
)
from tffc.deploy.federation.messages import MASKED, Reply, Request
from tffc.runtime.masking.keys import PrivateKey
from tffc.runtime.masking.participant import Participant
from tffc.runtime.masking.terms import Confirmation, Demands, Terms
from tffc.runtime.masking.vectors import Segment

SIZE = 100_000
MODULUS = 2**32
COUNTS = (10, 100, 1000)
PROGRAM, LABEL, SENT = "0" * 64, "0" * 32, bytes(32)


def main() -> None:
    """Measure masked sums and print their costs."""
    for count in [int(word) for word in sys.argv[1:]] or COUNTS:
        for is_signing in (False, True):
            view = View(count, is_signing=is_signing)
            view.run()
            steps = ", ".join(f"{step} {used:.3f}" for step, used in view.seconds.items())
            total = view.sent + view.received
            click.echo(
                f"{count} participants, {'signing' if is_signing else 'not signing'}: "
                f"{sum(view.seconds.values()):.3f} processor seconds ({steps}); "
                f"{view.sent} bytes sent, {view.received} received, {total / SIZE / 4:.3f} of the "
                f"vector; in the paper {paper(count) / SIZE / 4:.3f}"
            )


def paper(count: int, size: int = SIZE, bits: int = 32) -> float:
    """Return how many bytes a client sends and receives by the formula of the paper."""
    of_sum = (count * (2**bits - 1)).bit_length()
    return (2 * count * 256 + (5 * count - 4) * 256 + size * of_sum) / 8


class View:
    """One participant of many, its steps and its messages."""

    def __init__(self, count: int, *, is_signing: bool) -> None:
        segments = (Segment(MODULUS, SIZE),)
        threshold = Demands().threshold(count)
        terms = Terms(bytes.fromhex(LABEL), threshold, segments, PROGRAM, 1, SENT)
        names = [f"silo-{number:04}" for number in range(count)]
        signers = {name: PrivateKey(Ed25519PrivateKey.generate()) for name in names}
        known = {name: signer.public() for name, signer in signers.items()}
        self._terms = terms
        self._people = {
            name: Participant(
                name, terms, None, *((signers[name], known) if is_signing else (None, None))
            )
            for name in names
        }
        self._own = names[count // 2]
        self.sent = self.received = 0
        self.seconds: dict[str, float] = {}

    def run(self) -> None:
        """Run all steps."""
        own, others = self._people[self._own], dict(self._people)
        del others[self._own]
        vector = [np.arange(SIZE, dtype=np.uint32)]
        first = self._step(
            MaskedStep.KEYS, pack_terms(self._own, self._terms), lambda _: pack_keys(own.keys())
        )
        packed = {name: pack_keys(each.keys()) for name, each in others.items()}
        table = pack_table({**packed, self._own: first})
        keys = {name: unpack_keys(each) for name, each in unpack_table(table).items()}
        self._step(MaskedStep.SHARES, table, lambda t: pack_table(own.shares(_keys(t))))
        sealed: dict[str, bytes] = {}
        for name, each in others.items():
            each._keys = keys
            sealed[name] = each._dealt(self._own, 1, 1)
        self._step(
            MaskedStep.WORK, pack_table(sealed), lambda t: own.masked(unpack_bytes(t), vector, SENT)
        )
        names = tuple(name.encode() for name in self._people)
        said = self._step(
            MaskedStep.CONFIRMED, names, lambda t: own.confirmed([name.decode() for name in t])
        )
        confirmations = {
            name: Confirmation(1, each._sign(own._said(name, 1))).to_bytes()
            for name, each in others.items()
        }
        self._step(
            MaskedStep.REVEALED,
            pack_table({**confirmations, self._own: said}),
            lambda t: pack_revealed(own.revealed(unpack_bytes(t))),
        )

    def _step(self, step: MaskedStep, sent: Any, does: Callable[[Any], Any]) -> Any:
        attempt = attempt_of(LABEL, step)
        request = Request(PROGRAM, 1, attempt, MASKED, None, sent).to_record()
        begin = time.process_time()
        answer = does(Request.from_record(request).sent)
        reply = Reply(PROGRAM, 1, attempt, 1, 0, answer).to_record()
        self.seconds[step.value] = time.process_time() - begin
        self.received += _size(request)
        self.sent += _size(reply)
        return Reply.from_record(reply).totals


def _keys(table: Any) -> Any:
    return {name: unpack_keys(each) for name, each in unpack_table(table).items()}


def _size(record: Any) -> int:
    texts = (each if isinstance(each, bytes) else str(each) for each in record.entries.values())
    return sum(map(len, texts)) + sum(array.nbytes for array in record.arrays)


if __name__ == "__main__":
    main()
