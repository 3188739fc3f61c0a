"""Rounds one after another, beginning with the first state: the noise that each of them adds, as
far as the state alone decides it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tffc.assurance.audit.contents import Contents
from tffc.assurance.audit.names import call_names
from tffc.assurance.audit.places import report_place
from tffc.assurance.audit.programs import leaf_paths, results_of
from tffc.assurance.privacy.expressions import QuantityEvaluator, flat
from tffc.assurance.privacy.graphs.sections import Place
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.combinations import Combination
from tffc.assurance.privacy.quantities.quantity import Quantity
from tffc.assurance.privacy.quantities.streams import Row, Stream, row, stream_of
from tffc.assurance.privacy.unrolled.graphs import values_of_graph
from tffc.assurance.privacy.unrolled.values import UNKNOWN, NormalDraws, SeedVector, StepsError
from tffc.backends.compiler import compile_initialize
from tffc.backends.forms.stages import Stage, StagedRound
from tffc.language.nodes import Compiled, Node
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType
from tffc.linking.operand import from_leaves, rebuild

MOST_ROUNDS = 2048
"""The rounds that are followed one by one."""

MOST_WEIGHTS = 20_000_000
"""The weights of draws that are remembered."""

Application = tuple[str, int]
"""A section where it is applied: the call of the round, and its number there."""


@dataclasses.dataclass(frozen=True, slots=True)
class FollowedNoise:
    """The noise of a number of rounds, by the sections and the outputs in them that have it.

    The elements `secret` of the first state are such noise, or its seeds, and `constant` ones are
    the same whenever rounds begin.
    """

    streams: Mapping[Application, Mapping[Place, Stream]]
    secret: frozenset[str]
    constant: frozenset[str]
    assumptions: tuple[str, ...]


def follow(
    program: StagedRound, initialize: Node, rounds: int, *, has_secret_seeds: bool
) -> FollowedNoise | None:
    """Return the noise that rounds add, beginning with the first state; None if there is none.

    Raises:
      StepsError: that takes too many steps, or a seed is used in two ways.
      TffcError: a section, or the computation of the first state, is malformed.
    """
    if rounds > MOST_ROUNDS:
        raise StepsError(f"more than {MOST_ROUNDS:,} rounds are not followed one by one")
    draws = NormalDraws(has_secret_seeds=has_secret_seeds)
    draws.place = "the first state"
    state = values_of_graph(compile_initialize(initialize), [], draws, {})
    unrolled = _UnrolledRounds(program, draws)
    if len(state) != len(unrolled.paths):
        return None
    secret = frozenset(
        path
        for path, value in zip(unrolled.paths, state, strict=True)
        if isinstance(value, (Combination, SeedVector))
    )
    constant = frozenset(
        path
        for path, value in zip(unrolled.paths, state, strict=True)
        if isinstance(value, np.ndarray)
    )
    assumptions = [
        f"{path} begins as a seed that cannot be guessed, and is never the same as another seed, "
        "whatever is added to either"
        for path, value in zip(unrolled.paths, state, strict=True)
        if isinstance(value, SeedVector)
    ]
    for number in range(rounds):
        state = unrolled.next_state(state)
        if number and not unrolled.has_noise:
            return None
    streams = unrolled.streams(rounds)
    if not unrolled.has_noise:
        return None
    return FollowedNoise(streams, secret, constant, (*assumptions, *draws.assumptions))


class _UnrolledRounds(QuantityEvaluator):
    """Evaluates rounds by value, which quantities have as their content."""

    def __init__(self, program: StagedRound, draws: NormalDraws) -> None:
        super().__init__(Algebra())
        self._round = program
        self._draws = draws
        self._names = call_names(program, Contents(program))
        self._application: Application | None = None
        self._rows: dict[Application, dict[Place, list[Row]]] = {}
        self._count = 0
        self.has_noise = False
        """Whether any noise was seen in what is not known."""
        parameter = program.type.parameter
        assert isinstance(parameter, StructType)
        self._types = parameter
        self.paths = leaf_paths(local_type(parameter[0]), parameter.names[0] or "state")

    def next_state(self, state: Sequence[Any]) -> list[Any]:
        """Return the leaves of the state after a round."""
        values = iter(state)
        self.values = {
            self._round.parameter: (
                rebuild(local_type(self._types[0]), lambda _: _holding(next(values))),
                rebuild(local_type(self._types[1]), lambda _: _holding(UNKNOWN)),
            )
        }
        for staged in self._round.calls.values():
            span = staged.binding.span
            self._draws.place = (
                self._names.get(staged.name, "") if span is None else report_place(span)
            )
            if staged.stage in (Stage.WORK, Stage.AGGREGATE, Stage.BROADCAST):
                self.values[staged.name] = self.filled(staged.call.type, [])
                continue
            self._application = staged.name, 0
            value = self.value(staged.call)
            if staged.stage is Stage.ANYWHERE:
                value = rebuild(value, _constant)
            self.values[staged.name] = value
        results = results_of(self._round)
        self._application = None
        return [leaf.content for leaf in flat(self.value(results["state"]))]

    def streams(self, rounds: int) -> dict[Application, dict[Place, Stream]]:
        """Return the noise that outputs of nodes have in all rounds."""
        streams: dict[Application, dict[Place, Stream]] = {}
        for application, places in self._rows.items():
            for place, rows in places.items():
                stream = stream_of(rows) if len(rows) == rounds else None
                if stream is not None:
                    streams.setdefault(application, {})[place] = stream
        return streams

    def section(self, section: Compiled, argument: Any) -> Any:
        type = section.type
        assert isinstance(type, FunctionType)
        if section.kind != "tensorflow":
            return self.filled(type.result, [])
        seen: dict[Place, Combination] = {}
        contents = [] if argument is None else [_content(each) for each in flat(argument)]
        results = values_of_graph(section, contents, self._draws, seen)
        if self._application is not None:
            places = self._rows.setdefault(self._application, {})
            for place, value in seen.items():
                places.setdefault(place, []).append(self._row(value))
            self._application = self._application[0], self._application[1] + 1
        return from_leaves(type.result, list(map(_holding, results)))

    def _row(self, value: Combination) -> Row:
        weights = row(value)
        self._count += len(weights.draws)
        self.has_noise |= len(weights.draws) > 0
        if self._count > MOST_WEIGHTS:
            raise StepsError("it has more noise than is followed")
        return weights

    def filled(self, type: Any, values: Any) -> Any:
        """Return a value of a type that is not followed."""
        return rebuild(local_type(type), lambda _: _holding(UNKNOWN))


def _holding(value: Any) -> Quantity:
    return Quantity(0, content=value)


def _content(value: Quantity) -> Any:
    return UNKNOWN if value.content is None else value.content


def _constant(value: Quantity) -> Quantity:
    return value if isinstance(value.content, np.ndarray) else _holding(UNKNOWN)
