"""Observers of pipelines: verifying, comparing with what is written and read again."""

from __future__ import annotations

import dataclasses

from tffc.language import wire
from tffc.language.nodes import Compiled, Node, Reference
from tffc.language.notation import parse, sections, typed
from tffc.language.traverse import rewrite
from tffc.language.type_parts import without_containers
from tffc.language.verify import first_violation
from tffc.passes.pipeline import Finished
from tffc.passes.strip_containers import strip_containers
from tffc.support.errors import VerificationError


def verify_step(finished: Finished) -> None:
    """Check what a step made of the program: it is sound, of the same type, and as promised.

    Raises:
      VerificationError: it is not.
    """
    place = f"the pass {finished.step}, step {finished.position}"
    before, after = (without_containers(p.type) for p in (finished.before, finished.after))
    if before != after:
        raise VerificationError(
            "E380",
            f"the type of the program was `{before}` and now is `{after}`",
            notes=(f"after {place}",),
        )
    violation = first_violation(finished.after, finished.holds)
    if violation is not None:
        error = violation.error()
        error.notes = (*error.notes, _duty(finished, place, violation.invariant))
        raise error


def _duty(finished: Finished, place: str, invariant: str | None) -> str:
    """Return a note on what a step has to do about an invariant."""
    if invariant is None:
        return f"after {place}"
    does = "ensures" if invariant in finished.step.each.ensures else "has to keep"
    return f"{place}, {does} {invariant}"


def verify_roundtrip(program: Node) -> None:
    """Check that a program is the same after it was written and read, as text and as a message.

    Neither keeps Python containers, and a message keeps no contexts and names of sections.

    Raises:
      VerificationError: it is not.
    """
    plain = strip_containers(program)
    if parse(typed(plain), sections(plain)) != plain:
        raise VerificationError("E381", "the program is another one when its text is parsed")
    stored = rewrite(plain, _stored)
    if wire.from_bytes(wire.to_bytes(stored, leaves=False)) != stored:
        raise VerificationError("E381", "the program is another one when its message is read")


def _stored(node: Node) -> Node | None:
    match node:
        case Reference(context=str()):
            return dataclasses.replace(node, context=None)
        case Compiled(name=str()):
            return dataclasses.replace(node, name=None)
        case _:
            return None
