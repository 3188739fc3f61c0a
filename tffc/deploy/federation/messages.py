"""Messages between the server and its nodes.

A message is a `Record`: named texts, numbers and bytes, and arrays beside them.  Other modules send
it.  Either side may run modified code, so everything received is parsed strictly.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.process import Process
from tffc.support.errors import ExecutionError, reader
from tffc.support.files.strict_json import is_count
from tffc.support.guards import Array, is_list, is_tuple

OPEN, MASKED = "open", "masked"
"""The ways of adding secure sums."""

NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
"""Valid names of nodes."""

STATE_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)
"""Valid names of runs and of the states of a node's clients."""

LONGEST_TEXT = 1000
"""The most characters of a text in a message."""


class Record(NamedTuple):
    """A message in transit."""

    entries: Mapping[str, Any]
    arrays: Sequence[Any]

    @property
    def size(self) -> int:
        """The bytes of its arrays and of the other values, without what Flower adds."""
        rest = self.entries.get("rest")
        others = len(rest) if isinstance(rest, bytes) else 0
        return others + sum(np.asarray(array).nbytes for array in self.arrays)


class StateNames(NamedTuple):
    """Which states of a run the clients of a node begin a round with, and the name of those after
    it.  `before` is empty if the node has taken part in no round; `node` stands for its name."""

    run: str
    node: str
    before: str
    after: str

    @property
    def are_valid(self) -> bool:
        """Whether the names are such that a server of tffc gives."""
        names = [self.run, self.node, self.after, *([self.before] if self.before else [])]
        return all(map(STATE_NAME.fullmatch, names))

    @property
    def receipt(self) -> bytes:
        """What the server remembers of the node if the round counts."""
        return f"{self.run}/{self.after}".encode()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request of the server to a node in an attempt at a round.

    `program` is the digest of the programs that both have to run; `attempt` is the id that the
    reply must have.  `carried` is the part of the server's values that aggregations need, and
    `sent` has the values for the clients.  `states` says which states clients that keep some begin
    with.
    """

    program: str
    round: int
    attempt: str
    secure_sums: str
    carried: Any
    sent: Any
    states: StateNames | None = None

    def to_record(self) -> Record:
        """Return the request as a record."""
        arrays: list[Array] = []
        rest = encode((self.carried, self.sent), arrays)
        about = {
            "program": self.program,
            "round": self.round,
            "attempt": self.attempt,
            "secure-sums": self.secure_sums,
            **(self.states._asdict() if self.states is not None else {}),
        }
        return Record({**about, "rest": rest}, arrays)

    @classmethod
    @reader("a message of a federation", ExecutionError)
    def from_record(cls, record: Record) -> Request:
        """Parse a request.

        Raises:
          ExecutionError: the record is not a valid request.
        """
        fields = _Fields(record)
        value = fields.value()
        if not is_tuple(value) or len(value) != 2:
            raise malformed("it does not hold two values")
        carried, sent = value
        mode = fields.text("secure-sums")
        if mode not in (OPEN, MASKED):
            raise malformed(f"its 'secure-sums' is neither {OPEN} nor {MASKED}")
        program, round = fields.text("program"), fields.count("round")
        states = (
            StateNames(*map(fields.text, StateNames._fields)) if "run" in record.entries else None
        )
        if states is not None and not states.are_valid:
            raise malformed("its names of clients' states are none of a server's")
        return cls(program, round, fields.text("attempt"), mode, carried, sent, states)


def with_states(
    request: Request, nodes: Iterable[str], states: Mapping[str, StateNames]
) -> dict[str, Request]:
    """Return a request for each node, with its names of states; nodes of equal ones share it."""
    of_names = {names: dataclasses.replace(request, states=names) for names in states.values()}
    return {node: of_names[states[node]] if node in states else request for node in nodes}


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """A node's reply: the accumulators of its clients, or an error code.

    `clients` took part and `skipped` were left out.  `totals` is None if no client took part, or if
    rounds do not aggregate.
    """

    program: str
    round: int
    attempt: str
    clients: int = 0
    skipped: int = 0
    totals: Any = None
    error: str = ""

    @property
    def accumulators(self) -> list[object]:
        """The accumulators, if there are any."""
        return self.totals if is_list(self.totals) else []

    def to_record(self) -> Record:
        """Return the reply as a record."""
        arrays: list[Array] = []
        rest = encode(self.totals, arrays)
        about = {field: getattr(self, field) for field in _ABOUT_REPLY}
        return Record({**about, "rest": rest}, arrays)

    @classmethod
    @reader("a message of a federation", ExecutionError)
    def from_record(cls, record: Record) -> Reply:
        """Parse a reply.

        Raises:
          ExecutionError: the record is not a valid reply.
        """
        fields = _Fields(record)
        return cls(
            fields.text("program"),
            fields.count("round"),
            fields.text("attempt"),
            fields.count("clients"),
            fields.count("skipped"),
            fields.value(),
            fields.text("error"),
        )


_ABOUT_REPLY = ("program", "round", "attempt", "clients", "skipped", "error")


def program_digest(process: Process) -> str:
    """Return the digest of all programs of the bundle, which every message includes."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(process.digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class _Fields:
    """The entries of a record, checked to be of the expected type."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def text(self, name: str) -> str:
        text = self._record.entries.get(name)
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise malformed(f"its {name!r} is not a text, or too long")
        return text

    def count(self, name: str) -> int:
        count = self._record.entries.get(name)
        if not isinstance(count, int) or not is_count(count):
            raise malformed(f"its {name!r} is not a count")
        return int(count)

    def value(self) -> object:
        rest = self._record.entries.get("rest")
        if not isinstance(rest, bytes):
            raise malformed("it holds no value")
        try:
            return decode(rest, self._record.arrays)
        except ValueError as error:
            raise malformed(str(error)) from None


def malformed(reason: str) -> ExecutionError:
    """Return the error for a message that is malformed, or not one of tffc's."""
    return ExecutionError(
        "E763",
        f"a message of the federation is not one of tffc's: {reason}",
        help="run the same version of tffc at the server and at every node",
    )


def name_record(name: str) -> Record:
    """Return a node's reply to the request for its name."""
    return Record({"name": name}, ())


@reader("a message of a federation", ExecutionError)
def read_name(record: Record) -> str:
    """Return the name in a node's reply; empty if it is not a valid name."""
    name = record.entries.get("name")
    return name if isinstance(name, str) and NAME.fullmatch(name) else ""
