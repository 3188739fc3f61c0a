"""The effects of a round: what its sections show, and what they reach outside of TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tffc.assurance.audit.flow import union
from tffc.assurance.audit.outcomes import ERRORS, SHOWN
from tffc.assurance.audit.programs import Kind, RoundFlows, SectionEffect
from tffc.backends.forms.form import Form, Side
from tffc.backends.forms.stages import Stage, StagedRound
from tffc.language.nodes import Node
from tffc.runtime.effects.consent import ComponentUse, find_outside
from tffc.support.errors import Span

CLIENTS, SERVER = "clients", "server"

AT_CLIENTS = frozenset({Stage.WORK, Stage.ANYWHERE})
"""The stages of calls that a client may run."""


@dataclasses.dataclass(frozen=True, slots=True)
class SideEffect:
    """An effect: the side that it happens on, its kind, the operation with what it accesses, and
    the sources of what the operation is given and of whether it runs."""

    side: str
    kind: str
    operation: str
    sources: int
    span: Span | None


def side_effects(program: StagedRound, form: Form, flows: RoundFlows) -> Iterator[SideEffect]:
    """Yield what the components of a form reach outside of TensorFlow, and then what the sections
    of the program show on purpose."""
    for name, side, part in parts_by_side(form):
        for use in find_outside({name: part}):
            yield SideEffect(side, use.use.kind, str(use), _sources_of(use, flows), use.span)
    shown: dict[tuple[str, str, Span | None], int] = {}
    for event in flows.effects:
        if event.effect.kind == SHOWN:
            key = (
                _side(event, program),
                event.effect.operation,
                program.calls[event.call].binding.span,
            )
            shown[key] = shown.get(key, 0) | event.sources
    for (side, operation, span), sources in shown.items():
        yield SideEffect(side, SHOWN, operation, sources, span)


def parts_by_side(form: Form) -> Iterator[tuple[str, str, Node]]:
    """Yield the components of a form, each with its name and the side that it runs on."""
    for name, runs_at, part in form.parts_by_side():
        yield name, CLIENTS if runs_at is Side.CLIENTS else SERVER, part


def in_errors(program: StagedRound, flows: RoundFlows) -> int:
    """Return the sources of what the texts of errors at the clients may have in them."""
    return union(
        effect.sources
        for effect in flows.effects
        if effect.effect.kind == ERRORS and _side(effect, program) == CLIENTS
    )


def _side(effect: SectionEffect, program: StagedRound) -> str:
    return CLIENTS if program.calls[effect.call].stage in AT_CLIENTS else SERVER


def _sources_of(use: ComponentUse, flows: RoundFlows) -> int:
    """Return the sources of what an operation is given.

    The use is one of a component, and the flows are those of the program, so all operations of this
    name count.  What no call of the program leads to may be given any of the clients' data.
    """
    alike = [
        effect.sources for effect in flows.effects if effect.effect.operation == use.use.operation
    ]
    return union(alike) if alike else flows.sources.all_of(Kind.DATA, Kind.COUNT, Kind.SHAPE)
