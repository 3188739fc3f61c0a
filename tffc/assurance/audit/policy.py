"""Policies: rules for what may leave the clients, and checking a round against them."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tffc.assurance.audit.audit import OUTPUT, SHOWN, Audit, Channel, Depends, Effect, Protection
from tffc.assurance.audit.leaves import prefixes
from tffc.assurance.audit.patterns import Aspect, Pattern
from tffc.assurance.privacy.question import ANY_COHORTS, PrivacyQuestion
from tffc.language.intrinsics import INTRINSICS
from tffc.runtime.effects.consent import KINDS
from tffc.support.errors import PolicyError, Span
from tffc.support.near import did_you_mean

if TYPE_CHECKING:
    from tffc.assurance.privacy.answer import Privacy

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
    "epsilon": "Differential privacy is shown, with at most this ε.",
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
    epsilon: PrivacyQuestion | None = None
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
        "epsilon": None if policy.epsilon is None else policy.epsilon.text(),
    }
    return {rule: text for rule, text in texts.items() if text is not None}


def without_choices(policy: Policy) -> Policy:
    """Return a policy whose ε gains nothing by which clients take part, and how often, because
    nobody who judges by it sees to that."""
    question = policy.epsilon
    if question is None:
        return policy
    plain = dataclasses.replace(question, cohorts=ANY_COHORTS, participations=None)
    return dataclasses.replace(policy, epsilon=plain)


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


def violations(
    audit: Audit, policy: Policy, today: datetime.date, privacy: Privacy | None = None
) -> list[Violation]:
    """Return the violations of a policy, including those that exceptions allow.

    `privacy` is the answer to the question of the policy; without one, nothing is shown.

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
    every += _epsilon(policy, privacy)
    return [_judged(violation, policy, today) for violation in every]


def _epsilon(policy: Policy, privacy: Privacy | None) -> Iterator[Violation]:
    question = policy.epsilon
    if question is None:
        return
    if privacy is None or privacy.question != question:
        yield Violation("epsilon", "the rounds", "privacy is not shown: nobody has looked", None)
        return
    for step in privacy.steps:
        message = f"{step.step} is not shown: {step.reason}"
        yield Violation("epsilon", step.subject, message, step.span)
    spent, most = privacy.spending, question.at_most
    if spent is not None and most is not None and not spent.epsilon <= most:
        message = f"{privacy.sentence()}; allowed: {most:g}"
        yield Violation("epsilon", "the rounds", message, None)


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
