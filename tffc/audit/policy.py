"""Policies: rules for what may leave the clients, and checking a round against them.

A policy is a YAML file; `policy.schema.json` beside this module is its JSON Schema.
"""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tffc.audit.audit import Audit, Channel, Protection
from tffc.effects.consent import KINDS
from tffc.errors import PolicyError, Span
from tffc.files.reading import read_named
from tffc.files.strict_json import is_text
from tffc.near import did_you_mean

PROTECTIONS = {each.name.lower(): each for each in Protection}
"""Protections by their names in a policy, strongest first."""

RULES = {
    "operators": "Only these operators take values from clients.",
    "never-leave": "These elements of a client's data are in no channel.",
    "largest-bytes": "No channel has more bytes from a client.",
    "effects": "Only these effects are allowed on a side.",
    "protection": "Every channel has at least this protection.",
    "noise": "Fresh noise is added to every channel before it reaches the state or the output.",
}
"""The rules, with descriptions."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waiver:
    """An exception: a rule that is waived for a channel until the end of a day, with the reason."""

    channel: str
    rule: str
    reason: str
    expires: datetime.date


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a policy; None is unrestricted.

    `least_clients` is the least number of clients that an aggregate must be made of before it
    leaves where it was made: an engine's round, a node, or a masked sum.
    """

    operators: tuple[str, ...] | None = None
    never_leave: tuple[str, ...] = ()
    largest_bytes: int | None = None
    least_clients: int = 0
    effects: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    protection: Protection = Protection.NONE
    noise: bool = False
    exceptions: tuple[Waiver, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a policy: the rule, the channel or effect, and a message.

    `excepted` is the reason given by an exception that allows it, and `expired` the last day of an
    exception that no longer does.
    """

    rule: str
    subject: str
    message: str
    span: Span | None
    excepted: str | None = None
    expired: datetime.date | None = None


def violations(audit: Audit, policy: Policy, today: datetime.date) -> list[Violation]:
    """Return the violations of a policy, including those that exceptions allow."""
    found = [each for channel in audit.channels for each in _channel(channel, policy)]
    if policy.noise:
        found += _without_noise(audit)
    for effect in audit.effects:
        allowed = policy.effects.get(effect.side)
        if allowed is not None and effect.kind not in allowed:
            message = f"{KINDS[effect.kind]} at the {effect.side}"
            found.append(Violation("effects", effect.operation, message, effect.span))
    return [_judged(each, policy, today) for each in found]


def _channel(channel: Channel, policy: Policy) -> Iterator[Violation]:
    def violation(rule: str, message: str) -> Violation:
        return Violation(rule, channel.name, message, channel.span)

    operators = policy.operators
    if operators is not None and channel.operator not in operators:
        allowed = ", ".join(operators) or "none"
        yield violation("operators", f"{channel.operator} is used; allowed: {allowed}")
    for pattern in policy.never_leave:
        leaving = [name for name in channel.depends.elements if fnmatch.fnmatchcase(name, pattern)]
        if leaving:
            yield violation("never-leave", f"may depend on {', '.join(leaving)}")
    if policy.largest_bytes is not None:
        if channel.size is None:
            yield violation("largest-bytes", "has no fixed size")
        elif channel.size > policy.largest_bytes:
            message = f"has {channel.size} bytes from each client; allowed: {policy.largest_bytes}"
            yield violation("largest-bytes", message)
    order = list(Protection)
    if order.index(channel.protection) > order.index(policy.protection):
        message = f"{channel.protection.value}; required: {policy.protection.value}"
        yield violation("protection", message)


def _without_noise(audit: Audit) -> Iterator[Violation]:
    """Yield the channels that reach the state or the output without a fresh random draw."""
    spans = {channel.name: channel for channel in audit.channels}
    for result in (*audit.state, *audit.output):
        for name in result.depends.channels:
            channel = spans[name]
            draws = (*channel.depends.draws, *result.depends.draws)
            if not any(draw.is_fresh for draw in draws):
                yield Violation(
                    "noise", name, f"no noise on the way to {result.name}", channel.span
                )


def _judged(found: Violation, policy: Policy, today: datetime.date) -> Violation:
    for each in policy.exceptions:
        if each.channel == found.subject and each.rule == found.rule:
            if today <= each.expires:
                return dataclasses.replace(found, excepted=each.reason)
            found = dataclasses.replace(found, expired=each.expires)
    return found


# Reading.


def read_policy(path: pathlib.Path) -> Policy:
    """Return the policy in a file.

    Raises:
      PolicyError: it cannot be read, or is not a policy.
    """
    import yaml

    from tffc.files.yaml_file import MAX_BYTES, read_yaml, repeated_key

    try:
        content, root = read_yaml(read_named(path, MAX_BYTES).decode())
    except OSError as error:
        raise PolicyError(
            "E970",
            f"cannot read the policy {path}: {error.strerror}",
            help="give the path of a file of YAML",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PolicyError(
            "E971",
            f"the policy {path} is not YAML",
            notes=(str(error),),
            help="fix the error in the note; tffc audit --help shows a policy",
        ) from None
    twice = repeated_key(root)
    if twice is not None:
        span = Span(str(path), twice.start_mark.line + 1, twice.start_mark.column)
        raise PolicyError(
            "E972", f"the key {twice.value!r} occurs twice", help="remove one", span=span
        )
    return _Reader(path, root).policy(content)


class _Reader:
    def __init__(self, path: pathlib.Path, root: Any) -> None:
        self._path = path
        self._root = root

    def policy(self, content: Any) -> Policy:
        entries = self._mapping("the policy", {} if content is None else content, FIELDS, ())
        return Policy(**{name.replace("-", "_"): value for name, value in entries.items()})

    def _mapping(
        self, what: str, content: Any, fields: Mapping[str, _Field], path: tuple[Any, ...]
    ) -> dict[str, Any]:
        if not isinstance(content, dict):
            raise self.wrong(f"{what} must be a mapping", path)
        for key in content:
            if key not in fields:
                raise PolicyError(
                    "E973",
                    f"{what} cannot have the key {key!r}",
                    help=did_you_mean(str(key), fields) or f"its keys are {', '.join(fields)}",
                    span=self._span((*path, key)),
                )
        return {key: fields[key](self, value, (*path, key)) for key, value in content.items()}

    def wrong(self, message: str, path: tuple[Any, ...], help: str | None = None) -> PolicyError:
        help = help or "tffc audit --help shows a policy"
        return PolicyError("E974", message, help=help, span=self._span(path))

    def _span(self, path: tuple[Any, ...]) -> Span:
        """Return the span of the value at a path of keys and indices."""
        node = self._root
        for step in path:
            for at, child in enumerate(getattr(node, "value", ())):
                if isinstance(child, tuple) and child[0].value == step:
                    node = child[1] if step is not path[-1] else child[0]
                elif at == step and not isinstance(child, tuple):
                    node = child
        if node is None:
            return Span(str(self._path), 1)
        return Span(str(self._path), node.start_mark.line + 1, node.start_mark.column)

    # Values.

    def kinds(self, value: Any, path: tuple[Any, ...]) -> tuple[str, ...]:
        found = TEXTS(self, value, path)
        for kind in found:
            if kind not in KINDS:
                message = f"{kind!r} is not a kind of effect"
                raise self.wrong(message, path, f"the kinds are {', '.join(KINDS)}")
        return found

    def effects(self, value: Any, path: tuple[Any, ...]) -> dict[str, Any]:
        return self._mapping(
            "effects", value, {"clients": _Reader.kinds, "server": _Reader.kinds}, path
        )

    def exceptions(self, value: Any, path: tuple[Any, ...]) -> tuple[Waiver, ...]:
        if not isinstance(value, list):
            raise self.wrong("exceptions must be a list", path)
        return tuple(self._exception(each, (*path, at)) for at, each in enumerate(value))

    def _exception(self, value: Any, path: tuple[Any, ...]) -> Waiver:
        found = self._mapping("an exception", value, EXCEPTION, path)
        missing = [key for key in EXCEPTION if key not in found]
        if missing:
            raise self.wrong(f"an exception has no {' and no '.join(missing)}", path)
        return Waiver(**found)

    def rule(self, value: Any, path: tuple[Any, ...]) -> str:
        if not isinstance(value, str) or value not in RULES:
            near = did_you_mean(str(value), RULES)
            message = f"{value!r} is not a rule"
            raise self.wrong(message, path, near or f"the rules are {', '.join(RULES)}")
        return value


_Field = Callable[[_Reader, Any, tuple[Any, ...]], Any]


def _field(
    expected: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda value: value
) -> _Field:
    """Return a reader of a field, which converts values that `fits` accepts and refuses others."""

    def read(reader: _Reader, value: Any, path: tuple[Any, ...]) -> Any:
        if not fits(value):
            raise reader.wrong(f"{path[-1]} must be {expected}", path)
        return convert(value)

    return read


TEXT = _field("text", lambda value: is_text(value) and value.strip())
TEXTS = _field(
    "a list of names", lambda value: isinstance(value, list) and all(map(is_text, value)), tuple
)

FIELDS: dict[str, _Field] = {
    "operators": TEXTS,
    "never-leave": TEXTS,
    "largest-bytes": _field("a number of bytes", lambda value: type(value) is int and value >= 0),
    "least-clients": _field("a number of clients", lambda value: type(value) is int and value >= 0),
    "effects": _Reader.effects,
    "protection": _field(
        f"one of {', '.join(PROTECTIONS)}",
        lambda value: is_text(value) and value in PROTECTIONS,
        PROTECTIONS.__getitem__,
    ),
    "noise": _field("true or false", lambda value: isinstance(value, bool)),
    "exceptions": _Reader.exceptions,
}

EXCEPTION: dict[str, _Field] = {
    "channel": TEXT,
    "rule": _Reader.rule,
    "reason": TEXT,
    # A datetime is a date too, but has a time.
    "expires": _field("a date, such as 2030-01-31", lambda value: type(value) is datetime.date),
}
