"""The changes between two versions of a round, classified by what they break."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence

from tffc.assurance.audit.audit import SIDES, Audit, Channel, Depends, Effect, Protection, audit
from tffc.assurance.audit.effects import AT_CLIENTS
from tffc.assurance.audit.programs import leaf_paths
from tffc.assurance.diff.programs import differences
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends.compiler import compile_form
from tffc.language.nodes import Node
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.support.errors import Span


class Breaks(enum.Enum):
    """The kinds of changes, by what they break."""

    STATE = "a run cannot resume from a saved state"
    DATA = "clients' data has to change"
    WIRE = "clients and servers of the two versions cannot work together"
    PRIVACY = "more leaves the clients, or with less protection"
    RESULT = "the server's output changes"
    INSIDE = "only the inside of components has changed"


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A change: its kind, its subject, a message, and the line in the new version."""

    breaks: Breaks
    subject: str
    message: str
    span: Span | None = None


def changes(old: Node, new: Node, form: str) -> list[Change]:
    """Return the changes between two programs of one round, compiled to a form.

    Raises:
      FormError: the form cannot express one of them.
    """
    before, after = audit(old, form), audit(new, form)
    lines = [*_types(old.type, new.type), *_wire(before, after), *_privacy(before, after)]
    return lines or list(_inside(old, new, form))


def _types(old: Type, new: Type) -> Iterator[Change]:
    pairs = (
        (Breaks.STATE, "state", _half(old, 0, "parameter"), _half(new, 0, "parameter")),
        (Breaks.DATA, "data", _half(old, 1, "parameter"), _half(new, 1, "parameter")),
        (Breaks.RESULT, "output", _half(old, -1, "result"), _half(new, -1, "result")),
    )
    for breaks, label, before, after in pairs:
        yield from _leaves(breaks, label, local_type(before), local_type(after))


def _half(type: Type, half: int, end: str) -> Type:
    """Return one element of a round's parameter or result, the last one for -1; a round without a
    state only has an output."""
    assert isinstance(type, FunctionType)
    whole = getattr(type, end)
    if isinstance(whole, StructType) and len(whole) in (2, 3):
        return whole.types[half]
    return whole


def _leaves(breaks: Breaks, label: str, old: Type, new: Type) -> Iterator[Change]:
    """Yield the leaves of a type that were added, removed, or changed their type."""
    before, after = (dict(zip(leaf_paths(t, label), leaves(t), strict=True)) for t in (old, new))
    changed = False
    for path in {**before, **after}:
        one, other = before.get(path), after.get(path)
        if one is None:
            message = f"is new: {other}"
        elif other is None:
            message = f"is gone: {one}"
        elif one != other:
            message = f"was {one}, is {other}"
        else:
            continue
        changed = True
        yield Change(breaks, path, message)
    if not changed and list(before) != list(after):
        yield Change(breaks, label, f"was {old}, is {new}")


def _wire(old: Audit, new: Audit) -> Iterator[Change]:
    """Yield the changes of broadcasts, then of channels."""
    was, now = (", ".join(b.type for b in audit.broadcasts) or "nothing" for audit in (old, new))
    if was != now:
        span = new.broadcasts[0].span if new.broadcasts else None
        yield Change(Breaks.WIRE, "broadcasts", f"were {was}, are {now}", span)
    for before, after in _paired(old, new):
        if before is None and after is not None:
            message = f"is a new channel: {after.operator} of {after.type}"
            yield Change(Breaks.WIRE, after.name, message, after.span)
        elif before is not None and after is None:
            message = f"is no longer a channel: {before.operator} of {before.type}"
            yield Change(Breaks.WIRE, before.name, message)
        elif before is not None and after is not None:
            one, other = ((c.operator, c.type, c.bound) for c in (before, after))
            if one != other:
                message = f"was {_shown(before)}, is {_shown(after)}"
                yield Change(Breaks.WIRE, after.name, message, after.span)


def _shown(channel: Channel) -> str:
    bound = "" if channel.bound is None else f" bound by {channel.bound}"
    return f"{channel.operator} of {channel.type}{bound}"


def _paired(old: Audit, new: Audit) -> Iterator[tuple[Channel | None, Channel | None]]:
    """Yield pairs of old and new channels, in the order of the new ones.

    Channels with equal names are paired first, the others in order.
    """
    before = {channel.name: channel for channel in old.channels}
    after = {channel.name: channel for channel in new.channels}
    left = iter([channel for name, channel in before.items() if name not in after])
    for name, channel in after.items():
        yield (before[name] if name in before else next(left, None)), channel
    for channel in left:
        yield channel, None


def _privacy(old: Audit, new: Audit) -> Iterator[Change]:
    """Yield the values that newly leave the clients, and those that are less protected."""
    order = list(Protection)
    for before, after in _paired(old, new):
        if after is None:
            continue
        for message in _more(None if before is None else before.depends, after.depends):
            yield Change(Breaks.PRIVACY, after.name, message, after.span)
        if after.single is not None and (before is None or before.single is None):
            message = f"may release one client's value: {after.single}"
            yield Change(Breaks.PRIVACY, after.name, message, after.span)
        if before is None:
            continue
        if order.index(after.protection) > order.index(before.protection):
            message = f"was {before.protection.value}, is {after.protection.value}"
            yield Change(Breaks.PRIVACY, after.name, message, after.span)
        if _has_own_draws(before) and not _has_own_draws(after):
            message = "no longer depends on a fresh random draw at the clients"
            yield Change(Breaks.PRIVACY, after.name, message, after.span)
    yield from _effects(old, new)


def _has_own_draws(channel: Channel) -> bool:
    """Tell whether a channel depends on a fresh random draw at the clients."""
    sides = {SIDES[stage] for stage in AT_CLIENTS}
    return any(draw.is_fresh and draw.side in sides for draw in channel.depends.draws)


def _more(was: Depends | None, now: Depends) -> Iterator[str]:
    """Yield what a value may depend on of a client's data that it did not depend on before."""
    before = {} if was is None else was.listed()
    for label in ("data", "how many", "shape of"):
        # The shape of an element is known to whoever knows the element.
        included = before.get("data", ()) if label == "shape of" else ()
        known = {*before.get(label, ()), *included}
        more = [name for name in now.listed().get(label, ()) if name not in known]
        if more:
            yield f"may depend on more of a client ({label}): {', '.join(more)}"


def _effects(old: Audit, new: Audit) -> Iterator[Change]:
    """Yield the new effects at the clients, and those that get more of a client's data."""
    for effect in new.effects:
        if effect.side != "clients":
            continue
        what = (effect.side, effect.kind, effect.operation)
        same = [
            effect for effect in old.effects if (effect.side, effect.kind, effect.operation) == what
        ]
        if not same:
            message = f"is a new effect at the clients: {effect.kind}"
            yield Change(Breaks.PRIVACY, effect.operation, message, effect.span)
        for message in _more(_together(same), effect.depends):
            yield Change(Breaks.PRIVACY, effect.operation, message, effect.span)


def _together(effects: Sequence[Effect]) -> Depends:
    """Return all that several effects may depend on of a client's data."""
    return Depends(
        elements=tuple(name for effect in effects for name in effect.depends.elements),
        counts=tuple(name for effect in effects for name in effect.depends.counts),
        shapes=tuple(name for effect in effects for name in effect.depends.shapes),
    )


def _inside(old: Node, new: Node, form: str) -> Iterator[Change]:
    """Yield the change between programs with the same interface, if they differ.

    The prover decides, if it can, whether the new components compute the old program.
    """
    parts = list(differences({"round": old}, {"round": new}))
    if not parts:
        return
    proof = prove(old, form, compile_form(new, form, allow_impure_duplicates=True).components())
    answers: Mapping[Answer, tuple[Breaks, str]] = {
        Answer.PROVED: (Breaks.INSIDE, "has changed, and is proved to compute the same"),
        Answer.DIFFERENT: (Breaks.RESULT, "computes something else"),
    }
    undecided = (Breaks.INSIDE, "has changed; whether it computes the same is undecided")
    breaks, message = answers.get(proof.answer, undecided)
    shown = proof.difference
    if shown is not None and proof.answer is Answer.DIFFERENT:
        message = f"{message}: {shown.leaf}"
    lines = [line.strip() for difference in parts for line in difference.sections]
    ending = f" ({lines[0]})" if lines else ""
    yield Change(breaks, "round", message + ending, None if shown is None else shown.span)
