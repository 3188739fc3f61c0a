"""Policies: rules for what may leave the clients, and checking a round against them.

A policy is a YAML file, or in Python also a mapping of the same content; `policy.schema.json`
beside this module is its JSON Schema.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from tffc.assurance.audit.audit import OUTPUT, SHOWN, Audit, Channel, Depends, Effect, Protection
from tffc.assurance.audit.leaves import prefixes
from tffc.assurance.audit.patterns import Aspect, Pattern
from tffc.language.intrinsics import INTRINSICS
from tffc.language.values.misfits import describe
from tffc.runtime.effects.consent import KINDS
from tffc.support.errors import PolicyError, Span, reader
from tffc.support.files.reading import read_named
from tffc.support.files.strict_json import is_text
from tffc.support.guards import is_listing, is_mapping, is_path, is_tuple
from tffc.support.near import did_you_mean

PROTECTIONS = {protection.name.lower(): protection for protection in Protection}
"""Protections by their names in a policy, strongest first."""

EFFECTS = {**KINDS, SHOWN: "shows values while it runs"}
"""The kinds of effects that a policy may allow, described."""

OPERATORS = (*(uri for uri, operator in INTRINSICS.items() if operator.is_aggregation), OUTPUT)
"""The operators that take values from clients, and the word for what clients keep."""

RULES = {
    "operators": "Only these operators take values from clients.",
    "never-leave": "These parts of a client's data are in no channel and in no effect.",
    "largest-bytes": "No channel has more bytes from a client.",
    "single-client": "No channel may release the value of a single client.",
    "effects": "Only these effects are allowed on a side.",
    "protection": "Every channel has at least this protection.",
}
"""The rules that a round can violate, with descriptions."""

DESCRIPTIONS = {
    **RULES,
    "least-clients": "A node with this policy lets no aggregate of fewer clients leave unmasked.",
}
"""The rules and what is checked elsewhere, with descriptions."""


SINGLE = "no channel releases a single client's value"
"""What `single-client: false` requires."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waiver:
    """An exception: a rule that is waived for a channel until the end of a day, with the reason.

    `content` identifies what the channel carries, as reports print it; `channel` is only its name.
    One that `is_optional` may be about a channel that a program does not have.
    """

    channel: str
    content: str
    rule: str
    reason: str
    expires: datetime.date
    is_optional: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a policy; None is unrestricted.

    `least_clients` is about nodes with the policy: the least number of a node's clients in what
    leaves it unmasked, and of all clients in a masked sum.  `path` and `digest` are those of its
    file, if it has one.
    """

    operators: tuple[str, ...] | None = None
    never_leave: tuple[Pattern, ...] = ()
    largest_bytes: int | None = None
    least_clients: int = 0
    single_client: bool = True
    effects: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict[str, tuple[str, ...]]
    )
    protection: Protection = Protection.NONE
    exceptions: tuple[Waiver, ...] = ()
    path: str = ""
    digest: str = ""


def requirements(policy: Policy) -> dict[str, str]:
    """Return the rules that a policy has, each with what it requires, as text."""
    sides = (f"{side}: {', '.join(kinds) or 'none'}" for side, kinds in policy.effects.items())
    texts = {
        "operators": None if policy.operators is None else ", ".join(policy.operators) or "none",
        "never-leave": ", ".join(pattern.shown for pattern in policy.never_leave) or None,
        "largest-bytes": None if policy.largest_bytes is None else f"{policy.largest_bytes:,}",
        "least-clients": str(policy.least_clients) if policy.least_clients else None,
        "single-client": None if policy.single_client else SINGLE,
        "effects": "; ".join(sides) or None,
        "protection": None if policy.protection is Protection.NONE else policy.protection.value,
    }
    return {rule: text for rule, text in texts.items() if text is not None}


# Checking.


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a policy: the rule, the channel or effect, its content, and a message.

    `excepted` is the reason given by an exception that allows it, and `expired` the last day of an
    exception that no longer does; `waiver` is that exception.
    """

    rule: str
    subject: str
    message: str
    span: Span | None
    content: str = ""
    excepted: str | None = None
    expired: datetime.date | None = None
    waiver: Waiver | None = dataclasses.field(default=None, repr=False)


def violations(audit: Audit, policy: Policy, today: datetime.date) -> list[Violation]:
    """Return the violations of a policy, including those that exceptions allow.

    Raises:
      PolicyError: the policy names something that the round does not have, so that a rule or an
        exception would do nothing.
    """
    _check_names(audit, policy)
    every = [
        violation for channel in audit.channels for violation in _channel(audit, channel, policy)
    ]
    every += [violation for effect in audit.effects for violation in _effect(audit, effect, policy)]
    for result in (*audit.state, *audit.output):
        if not any(
            channel.name == result.name and channel.operator == OUTPUT for channel in audit.channels
        ):
            for message in _leaving(audit, result.depends, policy):
                every.append(Violation("never-leave", result.name, message, None))
    return [_judged(violation, policy, today) for violation in every]


def broken_rules(broken: Sequence[Violation]) -> list[str]:
    """Return the violations that no exception allows, as texts."""
    return [f"{v.rule}: {v.subject}: {v.message}" for v in broken if v.excepted is None]


def refused_by_policy(reasons: Sequence[str]) -> PolicyError:
    """Return the refusal of a round that goes beyond a node's policy."""
    return PolicyError(
        "E776",
        "a round of the program goes beyond the node's policy",
        notes=tuple(reasons),
        help="change the program, or the policy",
    )


def _channel(audit: Audit, channel: Channel, policy: Policy) -> Iterator[Violation]:
    def violation(rule: str, message: str) -> Violation:
        return Violation(rule, channel.name, message, channel.span, channel.content)

    operators = policy.operators
    if operators is not None and channel.operator not in operators:
        allowed = ", ".join(operators) or "none"
        yield violation("operators", f"{channel.operator} is used; allowed: {allowed}")
    for message in _leaving(audit, channel.depends, policy):
        yield violation("never-leave", message)
    if policy.largest_bytes is not None:
        if channel.size is None:
            yield violation("largest-bytes", "has no fixed size")
        elif channel.size > policy.largest_bytes:
            message = f"has {channel.size} bytes from each client; allowed: {policy.largest_bytes}"
            yield violation("largest-bytes", message)
    if channel.single is not None and not policy.single_client:
        yield violation("single-client", f"may release one client's value: {channel.single}")
    order = list(Protection)
    if order.index(channel.protection) > order.index(policy.protection):
        message = f"{channel.protection.value}; required: {policy.protection.value}"
        yield violation("protection", message)


def _effect(audit: Audit, effect: Effect, policy: Policy) -> Iterator[Violation]:
    def violation(rule: str, message: str) -> Violation:
        return Violation(rule, effect.operation, message, effect.span, effect.content)

    where = f"{EFFECTS.get(effect.kind, effect.kind)} at the {effect.side}"
    allowed = policy.effects.get(effect.side)
    if allowed is not None and effect.kind not in allowed:
        yield violation("effects", where)
    for message in _leaving(audit, effect.depends, policy):
        yield violation("never-leave", f"{message}, and {where}")


def _leaving(audit: Audit, depends: Depends, policy: Policy) -> Iterator[str]:
    """Yield what a value may depend on of a client's data that must not leave it.

    A dependency that the round's type does not explain may be any part of the data.
    """
    for pattern in policy.never_leave:
        known = _known(audit, pattern.aspect)
        names = _names(depends, pattern.aspect)
        covered = {*pattern.covered(names), *(name for name in names if name not in known)}
        leaving = [f"{pattern.aspect.value}{name}" for name in names if name in covered]
        if leaving:
            yield f"may depend on {', '.join(leaving)}"


def _names(depends: Depends, aspect: Aspect) -> Sequence[str]:
    """Return the parts of a client's data of which a value may depend on an aspect."""
    match aspect:
        case Aspect.DATA:
            return depends.elements
        case Aspect.COUNT:
            return depends.counts
        case Aspect.SHAPE:
            # The shape of an element is known to whoever knows the element.
            return (*depends.shapes, *depends.elements)


def _known(audit: Audit, aspect: Aspect) -> Sequence[str]:
    """Return all paths that a pattern about an aspect may be about."""
    return audit.counted if aspect is Aspect.COUNT else audit.data


def _judged(violation: Violation, policy: Policy, today: datetime.date) -> Violation:
    """Return a violation with the exception that allows it, or one that no longer does."""
    about = violation.content, violation.rule
    for waiver in policy.exceptions:
        if violation.content and (waiver.content, waiver.rule) == about:
            if today <= waiver.expires:
                excepted = waiver.reason
                return dataclasses.replace(
                    violation, excepted=excepted, expired=None, waiver=waiver
                )
            violation = dataclasses.replace(violation, expired=waiver.expires, waiver=waiver)
    return violation


# Names that match nothing.


def _check_names(audit: Audit, policy: Policy) -> None:
    """Check that all patterns and exceptions of a policy are about something in a round.

    Raises:
      PolicyError: one is not.
    """
    for pattern in policy.never_leave:
        known = _known(audit, pattern.aspect)
        if not pattern.is_optional and not pattern.covered(known):
            raise _unmatched(pattern, known)
    subjects = {channel.content: channel.name for channel in audit.channels}
    subjects |= {effect.content: effect.operation for effect in audit.effects}
    for waiver in policy.exceptions:
        if waiver.content not in subjects and not waiver.is_optional:
            raise _changed(waiver, subjects)


def _unmatched(pattern: Pattern, known: Sequence[str]) -> PolicyError:
    aspect = pattern.aspect.value
    parts = {f"{aspect}{prefix}": None for path in known for prefix in reversed(prefixes(path))}
    near = did_you_mean(pattern.text, parts)
    shown = ", ".join(known[:MOST_SHOWN]) + (", ..." if len(known) > MOST_SHOWN else "")
    what = "sequences in it" if pattern.aspect is Aspect.COUNT else "parts"
    return PolicyError(
        "E977",
        f"never-leave has the pattern {pattern.text!r}, which matches nothing of a client's data",
        notes=(f"the {what} are {shown}" if shown else f"there are no {what}",),
        help=(f"{near} " if near else "")
        + "For a policy of several programs, write "
        + f"{{pattern: {pattern.text!r}, optional: true}}",
        span=pattern.span,
    )


MOST_SHOWN = 10
"""The number of names that an error lists."""


def _changed(waiver: Waiver, subjects: Mapping[str, str]) -> PolicyError:
    """Return the refusal of an exception for a content that the round does not have."""
    same = [content for content, name in subjects.items() if name == waiver.channel]
    rule = f"the exception to {waiver.rule} for {waiver.channel!r}"
    if same:
        message = f"{rule} has ended, because the channel has changed"
        notes = tuple(
            f"it was reviewed with the content {waiver.content}, and has {content}"
            for content in same
        )
        help = "review the channel again; to renew the exception, give it the new content"
    else:
        message = f"{rule} is of no channel and no effect of the round"
        notes = (f"nothing in it has the content {waiver.content}",)
        near = did_you_mean(waiver.channel, subjects.values())
        help = (f"{near} " if near else "") + (
            "Remove it, or in a policy of several programs add optional: true"
        )
    return PolicyError("E977", message, notes=notes, help=help, span=waiver.span)


# Reading.


PolicySource: TypeAlias = "Policy | Mapping[str, Any] | str | os.PathLike[str]"
"""A policy in Python: read already, the content of a file, or the path of one."""


def policy_of(source: PolicySource) -> Policy:
    """Return the policy that a caller in Python names.

    Raises:
      PolicyError: the file cannot be read, or what is named is not a policy.
    """
    if isinstance(source, Policy):
        return source
    if is_path(source):
        return read_policy(pathlib.Path(source))
    if not is_mapping(source):
        raise PolicyError(
            "E971",
            f"a policy cannot be {describe(source)}",
            help="give the path of a YAML file, or its content as a dictionary, such as "
            "{'operators': ['federated_secure_sum']}",
        )
    return _Reader(None, None).policy(source)


@reader("a policy", PolicyError)
def read_policy(path: pathlib.Path) -> Policy:
    """Return the policy in a file.

    Raises:
      PolicyError: it cannot be read, or is not a policy.
    """
    import yaml

    from tffc.support.files.yaml_file import MAX_BYTES, read_yaml

    try:
        data = read_named(path, MAX_BYTES)
        content, root, twice = read_yaml(data.decode())
    except OSError as error:
        raise PolicyError(
            "E850",
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
    if twice is not None:
        span = Span(str(path), twice.start_mark.line + 1, twice.start_mark.column)
        raise PolicyError(
            "E971", f"the key {twice.value!r} occurs twice", help="remove one", span=span
        )
    policy = _Reader(path, root).policy(content)
    return dataclasses.replace(policy, path=str(path), digest=hashlib.sha256(data).hexdigest())


KeyPath: TypeAlias = "tuple[object, ...]"
"""The keys and indices that lead to a value of a policy."""


class _Reader:
    """Reads the content of a policy; `path` is that of its file, and `root` the file's root."""

    def __init__(self, path: pathlib.Path | None, root: Any) -> None:
        self._path = path
        self._root = root

    def policy(self, content: object) -> Policy:
        if is_mapping(content) and "noise" in content:
            raise self.wrong(
                "the key 'noise' is not a rule: that a value depends on random draws does not say "
                "that it is private",
                ("noise",),
                "remove it; the report lists the draws of each channel, and what they do to "
                "privacy has to be shown otherwise",
            )
        entries = self._mapping("the policy", {} if content is None else content, FIELDS, ())
        return Policy(**{name.replace("-", "_"): value for name, value in entries.items()})

    def _mapping(
        self, what: str, content: object, fields: Mapping[str, _Field], path: KeyPath
    ) -> dict[str, Any]:
        if not is_mapping(content):
            raise self.wrong(f"{what} must be a mapping", path)
        entries: dict[str, object] = {}
        for key, value in content.items():
            if not isinstance(key, str) or key not in fields:
                near = did_you_mean(_quoted(key), fields)
                raise self.wrong(
                    f"{what} cannot have the key {_quoted(key)}",
                    (*path, key),
                    near or f"its keys are {', '.join(fields)}",
                )
            entries[key] = value
        return {key: fields[key](self, value, (*path, key)) for key, value in entries.items()}

    def wrong(self, message: str, path: KeyPath, help: str | None = None) -> PolicyError:
        if self._path is None:
            help = help or "tffc explain E971 shows a policy"
            notes = (f"at {_steps(path)} of the policy",) if path else ()
            return PolicyError("E971", message, notes=notes, help=help)
        help = help or "tffc audit --help shows a policy"
        return PolicyError("E971", message, help=help, span=self._span(path))

    def _span(self, path: KeyPath) -> Span | None:
        """Return the span of the value at a path of keys and indices, if it is in a file."""
        if self._path is None:
            return None
        node = self._root
        for step in path:
            # The children of a mapping are pairs of nodes, those of a list are nodes.
            children: Iterable[Any] = getattr(node, "value", ())
            for at, child in enumerate(children):
                if not is_tuple(child):
                    node = child if at == step else node
                    continue
                key, value = cast("tuple[Any, Any]", child)
                if key.value == step:
                    node = value if step is not path[-1] else key
        if node is None:
            return Span(str(self._path), 1)
        return Span(str(self._path), node.start_mark.line + 1, node.start_mark.column)

    # Values.

    def kinds(self, value: object, path: KeyPath) -> tuple[str, ...]:
        known = f"the kinds are {', '.join(EFFECTS)}"
        return self._known(value, path, EFFECTS, "a kind of effect", known)

    def operators(self, value: object, path: KeyPath) -> tuple[str, ...]:
        known = f"the operators are {', '.join(OPERATORS)}"
        return self._known(value, path, OPERATORS, "an operator that takes values", known)

    def _known(
        self, value: object, path: KeyPath, names: Iterable[str], what: str, help: str
    ) -> tuple[str, ...]:
        """Return a list of names, each of which must be one of those known."""
        listed: tuple[str, ...] = TEXTS(self, value, path)
        for name in listed:
            if name not in names:
                near = did_you_mean(name, names) or help
                raise self.wrong(f"{name!r} is not {what}", path, near)
        return listed

    def patterns(self, value: object, path: KeyPath) -> tuple[Pattern, ...]:
        if not is_listing(value):
            raise self.wrong(f"{path[-1]} must be a list of patterns", path)
        return tuple(self._pattern(entry, (*path, at)) for at, entry in enumerate(value))

    def _pattern(self, value: object, path: KeyPath) -> Pattern:
        if is_text(value):
            value = {"pattern": value}
        fields = self._mapping("a pattern", value, PATTERN, path)
        if "pattern" not in fields:
            raise self.wrong("a pattern has no text", path, "give the text as pattern: ...")
        span = self._span(path)
        pattern = Pattern(fields["pattern"].strip(), fields.get("optional", False), span)
        if not pattern.path:
            raise self.wrong("a pattern has no path", path, "give a path as reports print it")
        return pattern

    def effects(self, value: object, path: KeyPath) -> dict[str, Any]:
        return self._mapping(
            "effects", value, {"clients": _Reader.kinds, "server": _Reader.kinds}, path
        )

    def exceptions(self, value: object, path: KeyPath) -> tuple[Waiver, ...]:
        if not is_listing(value):
            raise self.wrong("exceptions must be a list", path)
        return tuple(self._exception(entry, (*path, at)) for at, entry in enumerate(value))

    def _exception(self, value: object, path: KeyPath) -> Waiver:
        fields = self._mapping("an exception", value, EXCEPTION, path)
        missing = [key for key in REQUIRED if key not in fields]
        if missing:
            help = None
            if missing == ["content"]:
                help = "the report of tffc audit has the content of each channel and effect"
            raise self.wrong(f"an exception has no {' and no '.join(missing)}", path, help)
        is_optional = fields.pop("optional", False)
        return Waiver(is_optional=is_optional, span=self._span(path), **fields)

    def day(self, value: object, path: KeyPath) -> datetime.date:
        # A datetime is a date too, but has a time.
        if type(value) is not datetime.date:
            help = "write datetime.date(2030, 1, 31)" if self._path is None else None
            raise self.wrong(f"{path[-1]} must be a date, such as 2030-01-31", path, help)
        return value

    def rule(self, value: object, path: KeyPath) -> str:
        if not isinstance(value, str) or value not in RULES:
            near = did_you_mean(_quoted(value), RULES)
            message = f"{_quoted(value)} is not a rule"
            raise self.wrong(message, path, near or f"the rules are {', '.join(RULES)}")
        return value


LONGEST_QUOTATION = 200
"""The most characters that are shown of a value."""


def _quoted(value: object) -> str:
    """Return a value of a policy for a message: its text, or what it is if it is not text."""
    if not isinstance(value, str):
        return f"of type {type(value).__name__}"
    return repr(value[:LONGEST_QUOTATION])


def _steps(path: KeyPath) -> str:
    """Return the keys and indices of a path as Python writes them."""
    return "".join(f"[{step if type(step) is int else _quoted(step)}]" for step in path)


_Field = Callable[[_Reader, object, KeyPath], Any]


def _field(
    expected: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda value: value
) -> _Field:
    """Return a reader of a field, which converts values that `fits` accepts and refuses others."""

    def read(reader: _Reader, value: object, path: KeyPath) -> Any:
        if not fits(value):
            raise reader.wrong(f"{path[-1]} must be {expected}", path)
        return convert(value)

    return read


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


TEXT = _field("text", lambda value: is_text(value) and bool(value.strip()))
TEXTS = _field(
    "a list of names", lambda value: is_listing(value) and all(map(is_text, value)), tuple
)
BOOLEAN = _field("true or false", lambda value: isinstance(value, bool))

PATTERN: dict[str, _Field] = {"pattern": TEXT, "optional": BOOLEAN}

FIELDS: dict[str, _Field] = {
    "operators": _Reader.operators,
    "never-leave": _Reader.patterns,
    "largest-bytes": _field("a number of bytes", _is_number),
    "least-clients": _field("a number of clients", _is_number),
    "single-client": BOOLEAN,
    "effects": _Reader.effects,
    "protection": _field(
        f"one of {', '.join(PROTECTIONS)}",
        lambda value: is_text(value) and value in PROTECTIONS,
        PROTECTIONS.__getitem__,
    ),
    "exceptions": _Reader.exceptions,
}

EXCEPTION: dict[str, _Field] = {
    "channel": TEXT,
    "content": _field(
        "32 hexadecimal digits, as the report prints them",
        lambda value: is_text(value) and re.fullmatch("[0-9a-f]{32}", value) is not None,
    ),
    "rule": _Reader.rule,
    "reason": TEXT,
    "expires": _Reader.day,
    "optional": BOOLEAN,
}

REQUIRED = [key for key in EXCEPTION if key != "optional"]
"""The keys that every exception has."""
