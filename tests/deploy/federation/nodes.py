"""A federation in this process, whose nodes can be late, dead, failing, or say anything."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.runtime.engines.sources import Values
from tffc.backends.bundle.bundle import Bundle
from tffc.deploy.federation.asking import Arrival
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import Record
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.rounds import run_federation
from tffc.deploy.federation.settings import NodeSettings, RunSettings
from tffc.runtime.engines.process import Process

GOOD, DOUBLED, LATE, DEAD, GONE = "good", "doubled", "late", "dead", "gone"
FAILS, BROKEN, FLOWER, OTHER, EMPTY = "fails", "broken", "flower", "other", "empty"
ANSWERS = (GOOD, DOUBLED)
"""What nodes do that take part."""
ALL = (GOOD, DOUBLED, LATE, DEAD, GONE, FAILS, BROKEN, FLOWER, OTHER, EMPTY)

Plan = Callable[[int, str], str]
"""Given the number of an attempt, from 0, and a node's name, returns what the node does."""

Delivery = Callable[[list[Arrival], list[Arrival]], list[Arrival]]
"""Given what has arrived, and the answers of one more node, returns what then has arrived."""


def in_turn(arrived: list[Arrival], answers: list[Arrival]) -> list[Arrival]:
    """Delivers what nodes answer, one after another."""
    return [*arrived, *answers]


def make_node(
    bundle: Bundle, clients: Values, log: list[str], config: Mapping[str, Any] | None = None
) -> Node:
    """A node of these clients."""
    settings = {"data": "in memory", **(config or {})}
    return Node(
        lambda fetch: bundle,
        lambda: NodeSettings.read(settings, {}),
        log.append,
        lambda location, type: clients,
    )


class Defective(Values):
    """Clients whose reading fails in a way that nobody foresaw."""

    def read(self, client: str) -> Any:
        raise KeyError("a defect")


class Together:
    """Nodes by their names, which do what a plan says, and whose answers arrive as `deliver` says.

    `asked` is what the server has sent, and `seen` what it has seen.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        plan: Plan = lambda attempt, name: GOOD,
        deliver: Delivery = in_turn,
    ) -> None:
        self.nodes = nodes
        self.plan = plan
        self.attempt = 0
        self.asked: list[Record] = []
        self.seen: list[Record] = []
        self.log: list[str] = []
        self._deliver = deliver
        self._arriving: list[Arrival] = []
        self._held_back: list[Arrival] = []

    def names(self) -> Sequence[str]:
        found = [name for name in self.nodes if self.plan(self.attempt, name) != GONE]
        self.attempt += not found  # While nobody is there, time goes on.
        return found

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        self.asked += records.values()
        self._arriving, self._held_back = self._held_back, []
        # The last one first: what comes first does not matter.
        for name, record in reversed(list(records.items())):
            answers = self._answers(kind, name, record, self.plan(self.attempt, name))
            self._arriving = self._deliver(self._arriving, answers)
        self.attempt += 1

    def _answers(self, kind: str, name: str, record: Record, action: str) -> list[Arrival]:
        """Return what arrives of a node's answer before the next attempt."""
        node = self.nodes[name]
        if action in (DEAD, GONE):
            return []
        if action == FAILS:
            record = Record({**record.entries, "program": "another"}, record.arrays)
        if action == FLOWER:
            return [Arrival(name, None, "Flower reports its error 2")]
        reply = node.answer(record, kind)
        self.seen.append(reply)
        if action == BROKEN:
            reply = reply._replace(arrays=[*reply.arrays[1:], np.array(["x"])])
        if action == OTHER:
            reply = Record({**reply.entries, "round": 77}, reply.arrays)
        if action == EMPTY:
            reply = Record({**reply.entries, "clients": 0, "rest": b"N"}, ())
        if action == LATE:
            self._held_back.append(Arrival(name, reply))
            return []
        return [Arrival(name, reply)] * (2 if action == DOUBLED else 1)

    def receive(self, timeout: float) -> Iterator[Arrival]:
        yield from self._arriving
        yield Arrival("a stranger", None, "it was not asked")


@dataclasses.dataclass
class Ran:
    """Rounds that ran, what the log says, and how long was waited for what."""

    rounds: list[Any]
    log: list[str]
    waited: list[float]


def run(process: Process, together: Together, **settings: Any) -> Ran:
    """Run rounds to their end."""
    ran = Ran([], [], [])
    run_settings = RunSettings(**{"pause": 1.0, **settings})
    engine = FederationEngine(process, together, run_settings, ran.log.append)
    state = process.first_state()
    for each in run_federation(engine, state, run_settings, ran.log.append, ran.waited.append):
        ran.rounds.append(each)
    return ran


def planned(actions: Sequence[Mapping[str, str]]) -> Plan:
    """A plan: for each attempt what some nodes do; the others, and all later, are good."""

    def plan(attempt: int, name: str) -> str:
        return actions[attempt].get(name, GOOD) if attempt < len(actions) else GOOD

    return plan


def counted(log: Sequence[str]) -> collections.Counter[str]:
    """How often lines say what, without their round."""
    return collections.Counter(line.partition(": ")[2] for line in log)
