"""The configuration of a run, at the server, and of each node."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.effects.consent import read_kinds
from tffc.errors import LanguageValueError
from tffc.flower.messages import MASKED, OPEN

Config = Mapping[str, Any]
"""Texts, numbers and booleans by name, as Flower passes them on."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunSettings:
    """The configuration of a run; its entries have these names, with hyphens.

    A round begins once `min_nodes` are connected, asks the given fraction of them, and counts if
    `min_replies` reply within `timeout` seconds.  Otherwise it begins again after `pause` seconds,
    up to `attempts` times in all.
    """

    rounds: int = 1
    min_nodes: int = 2
    min_replies: int = 2
    fraction: float = 1.0
    timeout: float = 600.0
    pause: float = 10.0
    attempts: int = 5
    seed: int = 0
    out: pathlib.Path | None = None
    resume: bool = False
    secure_sums: str = ""
    bundle: pathlib.Path | None = None
    allow_effects: frozenset[str] = frozenset()

    @classmethod
    def read(cls, config: Config) -> RunSettings:
        """Parse a run configuration; missing entries have defaults.

        Raises:
          LanguageValueError: an entry is invalid.
        """
        entries = _Entries("the run configuration", config)
        found = {field: entries.read(field, *rule) for field, rule in _RUN.items()}
        given = {field: value for field, value in found.items() if value is not None}
        return cls(**given, allow_effects=entries.effects())


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSettings:
    """The configuration of a node; its entries have these names, with hyphens.

    `data` says where its clients' data is, as `tffc run --data` does.  With `partition_id` and
    `num_partitions` the node has only every n-th of the clients.  `policy` is a file that says what
    may leave the node.  `out` is the folder for the clients' final values, if rounds do not
    aggregate, `worker` one for the process that stays loaded, and `cache` one for bundle files that
    are too large for an app.  In masked sums the node signs with its private `key`, and takes part
    only with nodes whose public keys are in the folder `known`.
    """

    data: str = ""
    partition_id: int | None = None
    num_partitions: int | None = None
    policy: pathlib.Path | None = None
    out: pathlib.Path | None = None
    name: str = ""
    skip_bad_clients: bool = False
    worker: pathlib.Path | None = None
    cache: pathlib.Path | None = None
    key: pathlib.Path | None = None
    known: pathlib.Path | None = None
    allow_effects: frozenset[str] = frozenset()

    @classmethod
    def read(cls, config: Config, run: Config) -> NodeSettings:
        """Parse the configuration of a node.

        Nobody configures the nodes of a simulation: they have a partition but no data, and take
        `data` and `out` from the configuration of the run, which no other node does.

        Raises:
          LanguageValueError: an entry is invalid.
        """
        if "partition-id" in config and "data" not in config:
            shared = {"data": run.get("data", ""), "out": run.get("clients-out", "")}
            config = {**shared, **config}
        entries = _Entries("the node's configuration", config)
        found = {field: entries.read(field, *rule) for field, rule in _NODE.items()}
        given = {field: value for field, value in found.items() if value is not None}
        made = cls(**given, allow_effects=entries.effects())
        if not made.data:
            raise LanguageValueError(
                "E767",
                "the node's configuration does not say where its clients' data is",
                help="start it with --node-config 'data=\"/path/to/data\"'; a run in the "
                "simulation is given it by --run-config",
            )
        parts = made.partition_id, made.num_partitions
        if (None in parts and parts != (None, None)) or not _is_partition(*parts):
            raise entries.wrong("partition-id", "a number below num-partitions, which is there too")
        return made


def _is_partition(partition: int | None, count: int | None) -> bool:
    return partition is None or count is None or partition < count


class _Entries:
    def __init__(self, what: str, config: Config) -> None:
        self._what = what
        self._config = config

    def read(self, field: str, expected: str, convert: Callable[[Any], Any]) -> Any:
        """Return an entry, or None if it is missing or empty."""
        name = field.replace("_", "-")
        found = self._config.get(name, "")
        if isinstance(found, str) and not found:
            return None
        converted = convert(found)
        if converted is None:
            raise self.wrong(name, expected)
        return converted

    def effects(self) -> frozenset[str]:
        found = self._config.get("allow-effects", "")
        if not isinstance(found, str):
            raise self.wrong("allow-effects", "kinds of effects with commas between them")
        return read_kinds([each.strip() for each in found.split(",") if each.strip()])

    def wrong(self, name: str, expected: str) -> LanguageValueError:
        return LanguageValueError(
            "E766",
            f"{name!r} in {self._what} is {self._config.get(name)!r}, expected {expected}",
            help="docs/flower.md has a table of all entries",
        )


def _count(least: int) -> tuple[str, Callable[[Any], Any]]:
    def convert(found: Any) -> int | None:
        is_number = isinstance(found, int) and not isinstance(found, bool)
        return found if is_number and least <= found < 2**31 else None

    return f"a number from {least} on", convert


def _amount(expected: str, holds: Callable[[float], bool]) -> tuple[str, Callable[[Any], Any]]:
    def convert(found: Any) -> float | None:
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return float(found) if is_number and math.isfinite(found) and holds(found) else None

    return expected, convert


def _seed(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


_FLAG = "true or false", lambda found: found if isinstance(found, bool) else None
_PATH = "a path", lambda found: pathlib.Path(found) if isinstance(found, str) else None
_TEXT = "a text", lambda found: found if isinstance(found, str) else None

_RUN = {
    "rounds": _count(1),
    "min_nodes": _count(1),
    "min_replies": _count(1),
    "fraction": _amount("a number above 0, of at most 1", lambda found: 0 < found <= 1),
    "timeout": _amount("seconds", lambda found: found > 0),
    "pause": _amount("seconds", lambda found: found >= 0),
    "attempts": _count(1),
    "seed": ("a whole number", _seed),
    "out": _PATH,
    "resume": _FLAG,
    "secure_sums": (
        f"{OPEN!r} or {MASKED!r}",
        lambda found: found if found in (OPEN, MASKED) else None,
    ),
    "bundle": _PATH,
}

_NODE = {
    "data": _TEXT,
    "partition_id": _count(0),
    "num_partitions": _count(1),
    "policy": _PATH,
    "out": _PATH,
    "name": _TEXT,
    "skip_bad_clients": _FLAG,
    "worker": _PATH,
    "cache": _PATH,
    "key": _PATH,
    "known": _PATH,
}
