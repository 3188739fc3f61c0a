"""Tasks: messages to a node, handled by the node's process or by a worker beside it.

If there is a worker, the process for a message imports only this module, not
`tffc.deploy.federation.node`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tffc.deploy.federation.messages import Record, Reply, Request
from tffc.deploy.federation.settings import Config

WORK = "work"
"""The kind of request for which a node folds its clients."""

MASKED_STEPS = ("keys", "shares", "confirmed", "revealed")
"""The kinds of requests for the other steps of masked sums."""


UNFORESEEN = "E772"
"""The code sent for any exception that is not an error of tffc."""


class Memory(NamedTuple):
    """The memory of a node between the messages of a run: the number of the last round, and the
    serialized participant in masked sums."""

    last_round: int = 0
    participant: bytes = b""


class Task(NamedTuple):
    """A message to a node: the request and its kind, the path of the app's bundle, the
    configurations of the node and the run, and the node's memory."""

    bundle: str
    node_config: Config
    run_config: Config
    memory: Memory
    record: Record
    kind: str = WORK


class Done(NamedTuple):
    """The result of a task: the reply, the node's memory, and lines for its log."""

    record: Record
    memory: Memory
    log: Sequence[str]


def reply_to(
    request: Request, *, clients: int = 0, skipped: int = 0, totals: object = None, error: str = ""
) -> Reply:
    """Return a reply to a request with these fields."""
    return Reply(request.program, request.round, request.attempt, clients, skipped, totals, error)


def refusal(code: str, request: Request | None = None) -> Reply:
    """Return a reply with an error code; `request` is None if it could not be parsed."""
    return Reply("", 0, "", error=code) if request is None else reply_to(request, error=code)
