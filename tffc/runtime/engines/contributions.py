"""Contributions of single clients to buffered rounds, wherever they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tffc.backends.forms.steps import RoundSteps, Value
from tffc.runtime.batching.pieces import OneByOne
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.groups import group_result
from tffc.runtime.engines.shards import ClientWork
from tffc.runtime.engines.showing import client_code, showing, without_logs
from tffc.runtime.engines.speed import Stopwatch


class Contributor:
    """Computes contributions of clients that are given one state, with the `group` steps of
    `BufferedSteps`: what the server keeps of the state and what it sends."""

    def __init__(
        self,
        group: RoundSteps,
        source: ClientSource,
        carried: Value,
        sent: Value,
        skip_bad: bool,
        stopwatch: Stopwatch,
        *,
        shows: bool = False,
    ) -> None:
        self._group, self._carried, self._shows = group, carried, shows
        self._work = ClientWork(
            group, source, carried, sent, skip_bad, None, stopwatch, shows=shows
        )

    def contribution(self, client: str) -> Value | None:
        """Return what a client contributes; None if it is left out.

        Raises:
          DataError: its data cannot be read, and bad clients are not skipped.
          ExecutionError: its work fails.
        """
        skipped: list[str] = []

        def tell(clients: Sequence[str], values: Sequence[Any] | None) -> None:
            if values is None:
                skipped.extend(clients)

        with without_logs(self._shows):
            totals = self._work.run(OneByOne((client,)), tell)
            if skipped:
                return None
            with showing(self._shows), client_code():
                return group_result(self._group, self._carried, totals)
