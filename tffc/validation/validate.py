"""Comparing a program with what passes and a form made of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tffc.backends.compiler import compile_form
from tffc.backends.forms import Form
from tffc.errors import ExecutionError, ValidationError
from tffc.execution.interpreter import count_clients, invoke
from tffc.execution.values import to_value
from tffc.ir.nodes import Node
from tffc.ir.types import FunctionType, Type
from tffc.ir.verify import verify
from tffc.passes import Pipeline
from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import Finished
from tffc.validation.algebra import AlgebraWatch
from tffc.validation.arguments import Case
from tffc.validation.compare import first_difference
from tffc.validation.draws import Count, DrawnTooOften, Draws
from tffc.validation.rounds import run_round
from tffc.validation.shrink import shrink
from tffc.validation.text import text_of
from tffc.validation.watched import RunSection, Watched

SHARDS = (1, 2)
"""In how many shards aggregations accumulate: in one, as the program says, and as systems do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What running something gave: a value, or why there is none."""

    value: Any = None
    failure: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """What was found in place of what was expected, and where the two first differ."""

    place: str
    shards: int
    found: Outcome
    expected: Outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """Something that was made of the program, and how it is run, in so many shards."""

    name: str
    run: Callable[[Case, Draws, int], Any]
    is_form: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What was tried: how many arguments, on what, and which laws aggregations broke."""

    trials: int
    stages: tuple[str, ...]
    warnings: tuple[ValidationError, ...]


def validate(
    program: Node,
    arguments: Iterable[Case],
    pipeline: Pipeline,
    form: str | None = None,
    *,
    allow_impure_duplicates: bool = False,
) -> Report:
    """Runs the program, what each pass makes of it, and the form, on all arguments.

    Values that are drawn at random are recorded and given to the passes' results again.  The parts
    of a form draw anew, and are compared by how often they draw.

    Raises:
      ValidationError: something computes another result, with the smallest argument found.
      VerificationError: the program, or what a pass made of it, is not sound.
      FormError: the program can not be expressed in the form.
    """
    verify(program)
    stages = list(_stages(program, pipeline, form, allow_impure_duplicates))
    trials = [_Trial(program, case) for case in arguments]
    warnings: dict[tuple[str, str], ValidationError] = {}
    for trial in trials:
        for warning in trial.broken_laws():
            warnings.setdefault((warning.message, str(warning.span)), warning)
    for stage in stages:
        for trial in trials:
            if trial.difference(stage) is not None:
                raise _finding(program, stage, trial.case)
    names = tuple(stage.name for stage in stages)
    return Report(len(trials), names, tuple(warnings.values()))


def _stages(
    program: Node, pipeline: Pipeline, form: str | None, allow_impure_duplicates: bool
) -> Iterator[Stage]:
    """What is made of the program, in the order in which it is made; steps without change left
    out."""
    steps: list[Finished] = []
    observers = (verify_step, steps.append)
    compiled: Form | None = None
    if form is None:
        pipeline.run(program, observers)
    else:
        compiled = compile_form(
            program,
            form,
            pipeline,
            observers=observers,
            allow_impure_duplicates=allow_impure_duplicates,
        )
    for step in steps:
        if step.before != step.after:
            name = f"the pass {step.step}, step {step.position}"
            yield Stage(name, _runner_of_program(step.after))
    if compiled is not None:
        yield Stage(f"the form {form}", _runner_of_form(program.type, compiled), is_form=True)


def _runner_of_program(program: Node) -> Callable[[Case, Draws, int], Any]:
    def run(case: Case, draws: Draws, shards: int) -> Any:
        return _run(program, case, draws.replay().run, shards)

    return run


def _run(program: Node, case: Case, run: RunSection, shards: int) -> Any:
    return invoke(
        program, program.type, case.argument, lambda clients: Watched(clients, run, shards)
    )


def _runner_of_form(type: Type, form: Form) -> Callable[[Case, Draws, int], Any]:
    assert isinstance(type, FunctionType)
    assert type.parameter is not None
    parameter = type.parameter

    def run(case: Case, draws: Draws, shards: int) -> Any:
        count = Count()
        clients = count_clients(to_value(case.argument, parameter), parameter)
        result = run_round(form, case.argument, clients, count.run, shards)
        count.check(draws)
        return result

    return run


class _Trial:
    """One argument, and what the program itself makes of it, with aggregations in shards."""

    def __init__(self, program: Node, case: Case) -> None:
        self.program = program
        self.case = case
        self.draws = Draws()
        # The first run records what is drawn, and the others draw the same.
        self.expected = {1: outcome(lambda: _run(program, case, self.draws.record, 1))}
        again = _runner_of_program(program)
        for shards in SHARDS[1:] if case.may_reorder else ():
            self.expected[shards] = outcome(functools.partial(again, case, self.draws, shards))

    def found(self, stage: Stage, shards: int) -> Outcome:
        """What a stage makes of the argument."""
        return outcome(lambda: stage.run(self.case, self.draws, shards))

    def difference(self, stage: Stage) -> Difference | None:
        """The first difference between a stage's results and the program's, or None."""
        for shards, expected in self.expected.items():
            found = self.found(stage, shards)
            place = self._place(stage, found, expected, exact=shards == 1 or not stage.is_form)
            if place is not None:
                return Difference(place, shards, found, expected)
        return None

    def _place(self, stage: Stage, found: Outcome, expected: Outcome, *, exact: bool) -> str | None:
        if found.failure is not None or expected.failure is not None:
            agree = found.failure is not None and expected.failure is not None
            return None if agree else "whether there is a result"
        if stage.is_form and self.draws.operations:
            # Parts of a form draw other numbers; how often has been compared.
            return None
        type = _result(self.program.type)
        return first_difference(found.value, expected.value, type, exact=exact)

    def broken_laws(self) -> list[ValidationError]:
        """The laws that aggregations break on this argument."""
        found: list[ValidationError] = []
        if self.case.may_reorder and self.expected[1].failure is None:
            invoke(
                self.program,
                self.program.type,
                self.case.argument,
                lambda clients: AlgebraWatch(clients, found.append),
            )
        return found


def _result(type: Type) -> Type:
    return type.result if isinstance(type, FunctionType) else type


def outcome(run: Callable[[], Any]) -> Outcome:
    """What a run gives, failures of the computation included."""
    try:
        return Outcome(run())
    except ExecutionError as error:
        return Outcome(failure=error.message)
    except DrawnTooOften as error:
        return Outcome(failure=str(error))


def _finding(program: Node, stage: Stage, case: Case) -> ValidationError:
    """The refusal, with the smallest argument that shows the difference."""
    argument = case.argument
    type = program.type

    def trial(argument: Any) -> _Trial:
        return _Trial(program, dataclasses.replace(case, argument=argument))

    given: tuple[str, ...] = ()
    if isinstance(type, FunctionType) and type.parameter is not None:
        argument = shrink(
            argument, type.parameter, lambda smaller: trial(smaller).difference(stage) is not None
        )
        given = (f"for the argument {text_of(argument, type.parameter)}",)
    result = _result(type)
    found = trial(argument).difference(stage)
    assert found is not None
    merged = () if found.shards == 1 else (f"with {found.shards} partial aggregates merged",)
    return ValidationError(
        "E902",
        f"{stage.name} computes something else than the program",
        notes=(
            *given,
            *merged,
            f"the program gives {_shown(found.expected, result)}",
            f"{stage.name} gives {_shown(found.found, result)}",
            f"the first difference is in {found.place}",
        ),
        help="if the pass is yours, mend it; otherwise report this, for it is a defect of tffc",
    )


def _shown(outcome: Outcome, type: Type) -> str:
    if outcome.failure is not None:
        return f"no result: {outcome.failure}"
    return text_of(outcome.value, type)
