"""The configuration of a run, at the server, and of each node."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeGuard, TypeVar, get_type_hints

from tffc.deploy.federation.messages import MASKED, OPEN
from tffc.runtime.effects.consent import read_kinds
from tffc.runtime.engines.buffering import Buffering
from tffc.support.errors import LanguageValueError
from tffc.support.near import did_you_mean

T = TypeVar("T")

TABLES = "docs/flower.md and docs/nvflare.md have tables of all entries"

Config: TypeAlias = Mapping[str, object]
"""Texts, numbers and booleans by name, as the configuration of a federation has them."""


class _Rule(NamedTuple):
    """A rule for an entry: the expected value in words, a condition, and the conversion."""

    expected: str
    holds: Callable[[object], bool]
    convert: Callable[[Any], object] = lambda value: value


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_way(value: object) -> bool:
    return value in (OPEN, MASKED)


def _count(least: int) -> _Rule:
    def is_right(value: object) -> bool:
        return _is_whole(value) and least <= value < 2**31

    return _Rule(f"a number from {least} on", is_right)


def _amount(expected: str, holds: Callable[[float], bool]) -> _Rule:
    def is_right(value: object) -> bool:
        number = value if isinstance(value, float) or _is_whole(value) else math.nan
        return math.isfinite(number) and holds(number)

    return _Rule(expected, is_right, float)


def _kinds(text: str) -> frozenset[str]:
    return read_kinds([word.strip() for word in text.split(",") if word.strip()])


_Positive: TypeAlias = Annotated[int, _count(1)]
_Text: TypeAlias = Annotated[str, _Rule("a text", _is_text)]
_Path: TypeAlias = Annotated[pathlib.Path | None, _Rule("a path", _is_text, pathlib.Path)]
_Flag: TypeAlias = Annotated[bool, _Rule("true or false", _is_flag)]
_Fraction = _amount("a number above 0, of at most 1", lambda value: 0 < value <= 1)
_SecureSums = _Rule(f"{OPEN!r} or {MASKED!r}", _is_way)
_Effects: TypeAlias = Annotated[
    frozenset[str], _Rule("kinds of effects with commas between them", _is_text, _kinds)
]


@dataclasses.dataclass(frozen=True, slots=True)
class RunSettings:
    """The configuration of a run; entries are named like these fields, but with hyphens.

    A round begins once `min_nodes` are connected, asks the given fraction of them, and counts if
    `min_replies` reply within `timeout` seconds.  Otherwise it begins again after `pause` seconds,
    for at most `attempts` attempts in all.

    With `buffer`, rounds are buffered: each is a step after so many contributions of nodes, of
    which `in_flight` work at the same time.
    """

    rounds: _Positive = 1
    min_nodes: _Positive = 2
    min_replies: _Positive = 2
    fraction: Annotated[float, _Fraction] = 1.0
    timeout: Annotated[float, _amount("seconds", lambda value: value > 0)] = 600.0
    pause: Annotated[float, _amount("seconds", lambda value: value >= 0)] = 10.0
    attempts: _Positive = 5
    seed: Annotated[int, _Rule("a whole number", _is_whole)] = 0
    out: _Path = None
    resume: _Flag = False
    secure_sums: Annotated[str, _SecureSums] = ""
    bundle: _Path = None
    allow_effects: _Effects = frozenset()
    buffer: Annotated[int | None, _count(1)] = None
    in_flight: Annotated[int | None, _count(1)] = None
    max_age: Annotated[int | None, _count(0)] = None

    @classmethod
    def read(cls, config: Config) -> RunSettings:
        """Parse a run configuration; missing entries have defaults.

        Raises:
          LanguageValueError: an entry is invalid, or has no effect.
        """
        settings = _read(cls, "the run configuration", config)
        if config.get("delays", "") != "":
            raise LanguageValueError(
                "E766",
                "'delays' in the run configuration has no effect: nodes work in real time",
                help="leave it out; tffc run simulates delays in its local engine",
            )
        if config.get("sampling-rate", "") != "":
            raise LanguageValueError(
                "E766",
                "'sampling-rate' in the run configuration has no effect: which nodes take part "
                "depends on who is connected and replies",
                help="leave it out; 'fraction' asks a part of the nodes that are connected",
            )
        settings.check_buffered()
        return settings

    @property
    def buffering(self) -> Buffering | None:
        """How rounds are buffered; None if they are not."""
        if self.buffer is None or self.in_flight is None:
            return None
        return Buffering(self.buffer, self.in_flight, self.max_age)

    def check_buffered(self) -> None:
        """Check that what is said of buffered rounds goes together.

        Raises:
          LanguageValueError: it does not.
        """
        if self.buffer is not None and self.in_flight is not None:
            for name, has_effect, why in (
                ("fraction", self.fraction != 1, "'in-flight' says how many nodes work"),
                ("resume", self.resume, "the nodes in flight are lost"),
            ):
                if has_effect:
                    raise LanguageValueError(
                        "E766",
                        f"{name!r} in the run configuration is not for buffered rounds: {why}",
                        help="leave it out, or 'buffer' and 'in-flight'",
                    )
        elif (self.buffer, self.in_flight, self.max_age) != (None, None, None):
            raise LanguageValueError(
                "E766",
                "buffered rounds need both 'buffer' and 'in-flight' in the run configuration",
                help="give the contributions of a step and the nodes that work at the same time, "
                "or leave out 'buffer', 'in-flight' and 'max-age'",
            )


@dataclasses.dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the operator of a server lets runs of others do there: `out` is the folder in which they
    may keep their folders, and `allow_effects` the effects that their bundles may have."""

    out: _Path = None
    allow_effects: _Effects = frozenset()

    @classmethod
    def read(cls, config: Config) -> ServerSettings:
        """Parse the configuration of a server.

        Raises:
          LanguageValueError: an entry is invalid.
        """
        return _read(cls, "the server's configuration", config)

    def check(self, run: RunSettings) -> RunSettings:
        """Return the settings of a run, with its folder in that of the server.

        Raises:
          LanguageValueError: the server does not let it have its folder, or its effects.
        """
        lacking = sorted(run.allow_effects - self.allow_effects)
        if lacking:
            raise LanguageValueError(
                "E766",
                f"the server does not let bundles have these effects: {', '.join(lacking)}",
                help="the operator of the server allows them, and not who submits a run",
            )
        if run.out is None:
            return run
        root = None if self.out is None else self.out.resolve()
        folder = None if root is None else (root / run.out).resolve()
        if root is None or folder is None or root not in folder.parents:
            raise LanguageValueError(
                "E766",
                f"the server does not let runs keep their folder in {str(run.out)!r}",
                help="leave 'out' out, or name a folder in the one that the operator of the server "
                "gives to runs",
            )
        return dataclasses.replace(run, out=folder)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSettings:
    """The configuration of a node; entries are named like these fields, but with hyphens.

    `data` is the location of its clients' data, as for `tffc run --data`.  With `partition_id` and
    `num_partitions`, the node has only every n-th of the clients.  `policy` is a file that says
    what may leave the node.  `out` is the folder for the clients' final values, if rounds do not
    aggregate; `worker` is the folder of its worker process, and `cache` the folder for bundle files
    that are too large for an app.  In masked sums the node signs with its private `key`, and takes
    part only with nodes whose public keys are in the folder `known`, its own not needed.  It
    reveals nothing of a sum of fewer than `least_participants`, and `memory` is the folder where it
    remembers the rounds of such sums.  `demands` is the file with what it demands of a bundle.
    """

    data: _Text = ""
    partition_id: Annotated[int | None, _count(0)] = None
    num_partitions: Annotated[int | None, _count(1)] = None
    policy: _Path = None
    out: _Path = None
    name: _Text = ""
    skip_bad_clients: _Flag = False
    worker: _Path = None
    cache: _Path = None
    key: _Path = None
    known: _Path = None
    least_participants: Annotated[int, _count(2)] = 3
    memory: _Path = None
    allow_effects: _Effects = frozenset()
    demands: _Path = None

    @classmethod
    def read(cls, config: Config, run: Config) -> NodeSettings:
        """Parse the configuration of a node.

        The nodes of a simulation cannot be configured: they have a partition but no data.  Only
        they take `data` and `out` from the configuration of the run.

        Raises:
          LanguageValueError: an entry is invalid, or there is none of its name.
        """
        what = "the node's configuration"
        check_names(cls, what, config)
        if "partition-id" in config and "data" not in config:
            shared = {"data": run.get("data", ""), "out": run.get("clients-out", "")}
            config = {**shared, **config}
        settings = _read(cls, what, config)
        if not settings.data:
            raise LanguageValueError(
                "E766",
                "the node's configuration does not say where its clients' data is",
                help="start it with --node-config 'data=\"/path/to/data\"'; a run in the "
                "simulation is given it by --run-config",
            )
        partition, count = settings.partition_id, settings.num_partitions
        if (partition, count) != (None, None) and partition not in range(count or 0):
            expected = "a number below num-partitions, which is there too"
            raise _wrong("partition-id", what, config, expected)
        return settings


def check_names(kind: type[Any], what: str, config: Config) -> None:
    """Check that all entries of a configuration are known: without its policy, a node would reveal
    more.

    Raises:
      LanguageValueError: one is not; `what` names the configuration.
    """
    known = [field.name.replace("_", "-") for field in dataclasses.fields(kind)]
    for name in config:
        if name not in known:
            raise LanguageValueError(
                "E766",
                f"{name!r} in {what} is not an entry",
                help=did_you_mean(name, known) or TABLES,
            )


def _read(kind: type[T], what: str, config: Config) -> T:
    """Return the settings of a kind; entries that are missing or empty have defaults."""
    settings: dict[str, object] = {}
    for field, annotated in get_type_hints(kind, include_extras=True).items():
        name = field.replace("_", "-")
        value = config.get(name, "")
        if value == "":
            continue
        (rule,) = annotated.__metadata__
        if not rule.holds(value):
            raise _wrong(name, what, config, rule.expected)
        settings[field] = rule.convert(value)
    return kind(**settings)


def _wrong(name: str, what: str, config: Config, expected: str) -> LanguageValueError:
    return LanguageValueError(
        "E766",
        f"{name!r} in {what} is {config.get(name)!r}, expected {expected}",
        help=TABLES,
    )
