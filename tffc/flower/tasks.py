"""Messages to a node as tasks, for whatever does them: the node's process, or a worker beside it.

A process for one message imports this and not `tffc.flower.node`, where there is a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tffc.flower.messages import Record, Reply, Request
from tffc.flower.settings import Config

WORK = "work"
"""The kind of request that a node folds its clients for."""

MASKED_STEPS = ("keys", "shares", "confirmed", "revealed")
"""The kinds of requests for the steps of masked sums, besides the one of work."""


class Memory(NamedTuple):
    """What a node remembers between the messages of a run: the greatest number of a round, and its
    participant in masked sums."""

    last_round: int = 0
    participant: bytes = b""


class Task(NamedTuple):
    """A message to a node: where its app's bundle is, the configurations of the node and the run,
    what it remembers, and the request, of a kind."""

    bundle: str
    node_config: Config
    run_config: Config
    memory: Memory
    record: Record
    kind: str = WORK


class Done(NamedTuple):
    """What comes of a task: the reply, what the node remembers, and lines for its log."""

    record: Record
    memory: Memory
    log: Sequence[str]


def reply_to(request: Request, **given: Any) -> Reply:
    """Return the reply to a request, with what else it says."""
    return Reply(request.program, request.round, request.attempt, **given)


def refusal(code: str, request: Request | None = None) -> Reply:
    """Return a reply that is an error, to a request unless that could not be read."""
    return Reply("", 0, "", error=code) if request is None else reply_to(request, error=code)
