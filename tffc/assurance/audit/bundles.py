"""What is read when a bundle is audited: its program, or its components.

A bundle holds a program and the components that run.  Only a proof ties them together, so what a
program says is believed of a bundle only where its components are proved to compute it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any

from tffc.assurance.audit.audit import Audit, Effect, audit_round
from tffc.assurance.audit.contents import Contents
from tffc.assurance.audit.effects import SERVER
from tffc.assurance.proof.prove import VERSION, Answer, Proof, prove, refusal
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import normalized
from tffc.backends.forms.stages import assign_stages
from tffc.language import wire
from tffc.language.nodes import Node
from tffc.runtime.effects.consent import find_outside
from tffc.support.errors import TffcError, WireError

RUN_ANYWAY = (
    "if it is meant to, as with impure duplicates, run it with demands that have 'proof: false'"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """The program that stands for a bundle in audits.

    It is the program in the bundle if `is_proved`, else what the components themselves compute,
    written as a program.
    """

    program: Node
    proof: Proof
    error: TffcError | None

    @property
    def is_proved(self) -> bool:
        """Whether the components are proved to compute the program in the bundle."""
        return self.proof.answer is Answer.PROVED

    @property
    def is_forged(self) -> bool:
        """Whether the components compute something else than the program in the bundle."""
        return self.proof.answer is Answer.DIFFERENT

    def check_not_forged(self) -> None:
        """Check that the components do not compute something else than the program.

        Raises:
          ValidationError: they do.
        """
        if self.error is not None and self.is_forged:
            raise self.error

    def check_may_run(self) -> None:
        """Check the same before rounds run, which demands may leave out.

        Raises:
          ValidationError: they do.
        """
        if self.error is not None and self.is_forged:
            self.error.help = f"compile the program again; {RUN_ANYWAY}"
            raise self.error

    def answer(self) -> dict[str, Any]:
        """Return the answer of the prover, its version and its reason, as data for a report."""
        reason = None if self.error is None else self.error.message
        return {"answer": self.proof.answer.value, "prover": VERSION, "reason": reason}


def refuse_forged(bundle: Bundle) -> Reading:
    """Return what is read of a bundle, after checking that its components do not compute something
    else than its program; they may be undecided.

    Raises:
      ValidationError: they do.
      FormError: they are not those of the form, or do not fit each other.
    """
    reading = read_for_audit(bundle)
    reading.check_not_forged()
    return reading


def read_for_audit(bundle: Bundle) -> Reading:
    """Return the program to audit for a bundle, after an attempt to prove its components.

    Raises:
      FormError: the components are not those of the form, or do not fit each other.
    """
    form = bundle.read_form()
    proof = prove(bundle.computation, bundle.form, bundle.components)
    error = refusal(proof, f"form {bundle.form}")
    if proof.answer is Answer.PROVED:
        return Reading(bundle.computation, proof, None)
    return Reading(form.decompile(), proof, error)


def audit_bundle(bundle: Bundle, reading: Reading) -> Audit:
    """Return the audit of what was read of a bundle; effects are those of its own components, and
    of the computations of its first state and its discount.

    Raises:
      FormError: the components do not fit each other, or the program is not a round.
      GraphError: a section is malformed.
    """
    staged = assign_stages(normalized(reading.program, bundle.form))
    audit = audit_round(staged, bundle.read_form(), bundle.form)
    beside = {"initialize": bundle.initialize, "discount": bundle.discount}
    effects = [
        effect
        for name, section in beside.items()
        if section is not None
        for effect in effects_beside(name, section, Contents(staged))
    ]
    return dataclasses.replace(
        audit,
        effects=(*audit.effects, *effects),
        may_be_buffered=bundle.discount is not None,
    )


def effects_beside(name: str, section: Node, contents: Contents) -> Iterator[Effect]:
    """Yield what a computation beside the round reaches outside of TensorFlow: that of the first
    state, or of the discount."""
    for use in find_outside({name: section}):
        labels = (SERVER, use.use.kind, str(use))
        content = contents.of_effect(labels, (section,))
        yield Effect(SERVER, use.use.kind, str(use), use.span, content=content)


def program_digests(program: Node) -> dict[str, str]:
    """Return the SHA-256 of the message of a program, as a bundle's manifest has it; nothing for a
    program that has no message."""
    try:
        content = wire.to_bytes(program)
    except WireError:
        return {}
    return {"computation": hashlib.sha256(content).hexdigest()}
