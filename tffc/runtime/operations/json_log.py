"""Logs with a JSON object on each line, for those who collect the logs of many machines:

    {"time": "2026-11-28T09:30:00.125Z", "level": "info", "run": "digits", "round": 3,
     "node": "silo-0", "message": "round 3 of 20"}

`TFFC_LOG=json` in the environment asks for them.  Control characters and what is invisible in a
message are escaped, so a line is a line whatever a stranger's name is in it.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import logging
import os
from collections.abc import Generator, Mapping
from typing import Any

from tffc.support.errors import LanguageValueError
from tffc.support.printable import json_text

VARIABLE = "TFFC_LOG"
"""The environment variable with the format of logs: `json`, or nothing."""

_CONTEXT: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("tffc")


class JsonLines(logging.Formatter):
    """Writes each record as one line of JSON, with the context in which it was logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **_CONTEXT.get({}),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json_text(line)


@contextlib.contextmanager
def logged_as(
    *, run: str | None = None, round: int | None = None, node: str | None = None
) -> Generator[None]:
    """Say in each line that is logged meanwhile to which run, round and node it belongs; what is
    not given stays as it is around."""
    given = {"run": run, "round": round, "node": node}
    known = {name: value for name, value in given.items() if value is not None}
    token = _CONTEXT.set({**_CONTEXT.get({}), **known})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def write_as_configured(logger: logging.Logger) -> None:
    """Make the handlers of a logger, which gets one for stderr if it has none, write JSON where
    `TFFC_LOG` asks for it.

    Raises:
      LanguageValueError: `TFFC_LOG` asks for something else.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "json"):
        raise LanguageValueError(
            "E895",
            f"{VARIABLE} is {wanted[:100]!r}, expected 'json' or nothing",
            help="set it to json for logs with a JSON object on each line, or unset it",
        )
    if not wanted:
        return
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
        logger.propagate = False
    for handler in logger.handlers:
        # No formatter is set: some handlers have a format of their own, as Flower's do.
        handler.format = JsonLines().format
