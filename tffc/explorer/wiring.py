"""The data flow of a round: the calls whose results are operands of other calls.

Calls that only pack and select are not shown: a value is followed through them to the call that
computed it, with the path of the part that is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tffc.assurance.audit.programs import results_of
from tffc.backends.forms.stages import DATA, STATE, Stage, StagedCall, StagedRound, Use
from tffc.language.calls import operands, uri_of
from tffc.language.intrinsics import MAPS
from tffc.language.nodes import Intrinsic, Lambda, Node, Reference, Selection, StructNode
from tffc.language.traverse import walk
from tffc.language.type_parts import local_type
from tffc.language.types import StructType, Type
from tffc.support.trampoline import Task, run


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A part of a call's result, or of the round's state or data, by its path, such as `.mean`."""

    source: Use
    path: str
    type: Type


Tree: TypeAlias = "Part | tuple[Tree, ...]"
"""A value: one part, or a struct of others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wire:
    """A part used by `target`: a call, which it is an operand of, or one of `RESULTS`."""

    part: Part
    target: str
    role: str


RESULTS = {
    "state": "new state",
    "output": "output",
    "client_state": "client's new state",
}
"""The titles of a round's results, which are no names of calls or the only result."""

PACKS = frozenset({"federated_zip_at_clients", "federated_zip_at_server"})

ROLES: Mapping[str, tuple[str, ...]] = {
    "federated_aggregate": ("", "zero", "accumulate", "merge", "report"),
    "federated_secure_sum": ("", "largest input"),
    "federated_secure_sum_bitwidth": ("", "bits"),
    "federated_secure_modular_sum": ("", "modulus"),
    "federated_weighted_mean": ("", "weight"),
}
"""The roles of operators' operands, other than the value itself."""


def is_plumbing(staged: StagedCall) -> bool:
    """Return whether a call only packs values or selects from them."""
    if not isinstance(staged.call.function, Intrinsic):
        return False
    uri = uri_of(staged.call)
    if uri in MAPS:
        function = operands(staged.call)[0]
        return isinstance(function, Lambda) and _is_made_of_parts(function.result)
    return uri in PACKS


class Wiring:
    """The wires of a round."""

    def __init__(self, program: StagedRound) -> None:
        self._round = program
        parameter = program.type.parameter
        assert isinstance(parameter, StructType)
        self._halves = (
            Part(STATE, "", local_type(parameter[0])),
            Part(DATA, "", local_type(parameter[1])),
        )
        self._values: dict[str, Tree] = {program.parameter: self._halves}
        for staged in program.calls.values():
            self._values[staged.name] = self._value(staged)

    def _value(self, staged: StagedCall) -> Tree:
        if not is_plumbing(staged):
            return Part(staged.name, "", local_type(staged.call.type))
        if uri_of(staged.call) in PACKS:
            assert staged.call.argument is not None
            return run(_evaluate(staged.call.argument, self._values))
        function, argument = operands(staged.call)
        assert isinstance(function, Lambda)
        value = run(_evaluate(argument, self._values))
        name = function.parameter_name
        inner = self._values if name is None else {**self._values, name: value}
        return run(_evaluate(function.result, inner))

    def wires(self) -> Iterator[Wire]:
        """Yield the inputs of each call that is shown, and of the round's results."""
        for staged in self._round.calls.values():
            if not is_plumbing(staged):
                yield from self._into(staged)
        for name, node in results_of(self._round).items():
            yield from self._parts(node, RESULTS[name], "")

    def _into(self, staged: StagedCall) -> Iterator[Wire]:
        argument = staged.call.argument
        if argument is None:
            return
        uri = None if staged.operator is None else staged.operator.uri
        values = argument.values if isinstance(argument, StructNode) else (argument,)
        roles = ROLES.get(uri or "", ())
        for index, node in enumerate(values):
            yield from self._parts(node, staged.name, roles[index] if index < len(roles) else "")

    def _parts(self, node: Node, target: str, role: str) -> Iterator[Wire]:
        """Yield each part that an operand is made of, once."""
        if _is_made_of_parts(node):
            waiting: list[Tree] = [run(_evaluate(node, self._values))]
            seen: set[int] = set()
            while waiting:
                value = waiting.pop()
                if id(value) in seen:
                    continue
                seen.add(id(value))
                if isinstance(value, tuple):
                    waiting.extend(reversed(value))
                else:
                    yield Wire(value, target, role)
            return
        # A function or a computed bound: show the outer values that it uses.
        for use in self._round.uses_of(node):
            value = self._values[use] if isinstance(use, str) else self._halves[use is DATA]
            if isinstance(value, Part):
                yield Wire(value, target, role)


def _is_made_of_parts(node: Node) -> bool:
    return all(isinstance(part, Reference | Selection | StructNode) for part in walk(node))


def _evaluate(node: Node, scope: Mapping[str, Tree]) -> Task[Tree]:
    match node:
        case Reference():
            return scope[node.name]
        case Selection():
            value: Tree = yield _evaluate(node.source, scope)
            return value[node.index] if isinstance(value, tuple) else _selected(value, node.index)
        case StructNode():
            values: list[Tree] = []
            for element in node.values:
                values.append((yield _evaluate(element, scope)))
            return tuple(values)
        case _:
            raise AssertionError(f"{node} is not made of parts")


def _selected(part: Part, index: int) -> Part:
    assert isinstance(part.type, StructType)
    name = part.type.names[index]
    step = f"[{index}]" if name is None else f".{name}"
    return Part(part.source, part.path + step, part.type.types[index])


def first_stage(program: StagedRound, wires: list[Wire]) -> dict[str, Stage]:
    """Return the stage to show each call in; a call that can run anywhere is shown where it is
    first used."""
    stages = {name: staged.stage for name, staged in program.calls.items()}
    uses: dict[str, list[str]] = {}
    for wire in wires:
        if isinstance(wire.part.source, str) and wire.target in stages:
            uses.setdefault(wire.part.source, []).append(wire.target)
    for name in reversed(stages):
        if stages[name] is Stage.ANYWHERE:
            stages[name] = min((stages[use] for use in uses.get(name, ())), default=Stage.RESULT)
    return stages
