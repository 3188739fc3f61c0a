"""Comparison of a program with the results of passes and with the form compiled from it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tffc.assurance.validation.algebra import AlgebraWatch
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.assurance.validation.compare import first_difference, rounding_of_results
from tffc.assurance.validation.coverage import Coverage, Outcome, has_data
from tffc.assurance.validation.draws import ALL_ALIKE, IN_ORDER, SHARED, Calls, Draws, Numbering
from tffc.assurance.validation.eager import EagerComparison
from tffc.assurance.validation.rounds import run_round
from tffc.assurance.validation.shrink import shrink
from tffc.assurance.validation.sources import Arguments, OwnStates
from tffc.assurance.validation.text import text_of
from tffc.assurance.validation.watched import AGGREGATE, Seen, Watched
from tffc.backends.compiler import compile_form
from tffc.backends.forms.form import Form
from tffc.language.nodes import Intrinsic, Node
from tffc.language.traverse import walk
from tffc.language.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    StructType,
    Type,
    at_clients,
)
from tffc.language.values.concrete import to_value
from tffc.language.verify import verify
from tffc.passes import Pipeline
from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import Finished
from tffc.runtime.data.source import Progress, no_progress
from tffc.runtime.interpreter.interpreter import count_clients, invoke
from tffc.runtime.interpreter.operators import SUMS
from tffc.support.cell import verdict_cell
from tffc.support.errors import ExecutionError, ValidationError
from tffc.support.guards import is_mapping

GROUPED = frozenset({AGGREGATE, *SUMS})
"""The operators that sum or aggregate clients' values."""

LEAST_RETRIES, RETRIES = 30, 5
"""How many plainer arguments are tried in vain at most: so many, or so many for each argument."""

SHARDS = (2, 3)
"""The numbers of shards for aggregations, besides a single one and one for each client."""


@dataclasses.dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The draws of a run, and its result or its failure."""

    draws: Draws
    value: Any = None
    failure: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Mismatch:
    """An unexpected outcome, the expected one, and where the two first differ."""

    place: str
    shards: int
    outcome: TrialOutcome
    expected: TrialOutcome

    @property
    def failed(self) -> bool:
        """Whether one of the two runs failed."""
        return self.outcome.failure is not None or self.expected.failure is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled program or form: its name, and a function that runs it with a number of shards."""

    name: str
    run: Callable[[ArgumentCase, Draws, int], Any]
    gives_each: bool = False
    """Whether it returns a list of clients' values even if they are all equal."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The arguments tried, the stages tried on them, and warnings: broken laws of aggregations, and
    few results."""

    coverage: Coverage
    stages: tuple[str, ...]
    warnings: tuple[ValidationError, ...]
    eager: EagerComparison | None = None

    @property
    def trials(self) -> int:
        """The number of arguments tried."""
        return self.coverage.tried

    @property
    def compared(self) -> tuple[str, ...]:
        """What gave the same results: the stages, and PyTorch where it ran."""
        return self.stages if self.eager is None else (*self.stages, str(self.eager))

    def __repr__(self) -> str:
        return f"<verification: {self.coverage}>"

    def __str__(self) -> str:
        same = (
            "and the same results from"
            if self.stages or self.eager
            else "and nothing changed the program"
        )
        warned = [f"warning: {warning}" for warning in self.warnings]
        beside = [] if self.eager is None else [str(self.eager)]
        stages = [f"  {stage}" for stage in (*self.stages, *beside)]
        return "\n".join([f"{self.coverage}, {same}", *stages, *self.coverage.notes(), *warned])

    def _repr_html_(self) -> str:
        verdict, kind = ("few results", "doubtful") if self.warnings else ("same results", "good")
        return verdict_cell("Verification", verdict, kind, str(self))


def validate(
    program: Node,
    arguments: Arguments | Iterable[ArgumentCase],
    pipeline: Pipeline,
    form: str | None = None,
    *,
    allow_impure_duplicates: bool = False,
    progress: Progress = no_progress,
    compile: Callable[..., Form] = compile_form,
) -> Report:
    """Run the program, the result of each pass, and the form on all arguments, and compare the
    results.

    All of these draw the same random numbers; see `tffc.assurance.validation.draws`.  `progress` is
    called before each run.  `compile` makes the form, as `compile_form` does.

    For an argument on which the program fails, plainer `arguments` are tried too, if there are any.

    Raises:
      ValidationError: a result differs; the error shows the smallest argument found.
      NothingCompared: no argument had a result on both sides.
      VerificationError: the program, or the result of a pass, is malformed.
      FormError: the program cannot be expressed in the form.
    """
    verify(program)
    compiler = functools.partial(compile, allow_impure_duplicates=allow_impure_duplicates)
    stages = list(_candidates(program, pipeline, form, compiler))
    numbering = SHARED if allow_impure_duplicates else IN_ORDER
    eager = EagerComparison() if EagerComparison.concerns(program) else None
    trials = list(_trials(program, arguments, numbering, 1 + len(stages), progress, eager))
    runs = len(trials) * (1 + len(stages))
    warnings: dict[tuple[str, str], ValidationError] = {}
    for trial in trials:
        for warning in trial.broken_laws():
            warnings.setdefault((warning.message, str(warning.span)), warning)
    for position, candidate in enumerate(stages, start=1):
        for index, trial in enumerate(trials):
            progress(position * len(trials) + index, runs)
            mismatch = trial.difference(candidate)
            # Ignore a difference that does not occur again: it is not the candidate's fault.
            if mismatch is not None and trial.fresh().difference(candidate) is not None:
                raise _finding(candidate, trial, mismatch)
    names = tuple(candidate.name for candidate in stages)
    coverage = Coverage.of(trial.summary() for trial in trials)
    refused = coverage.refusal()
    if refused is not None:
        raise refused
    little = coverage.warning(arguments.failure if isinstance(arguments, OwnStates) else None)
    all_warnings = (*warnings.values(), *filter(None, (little,)))
    return Report(coverage, names, all_warnings, eager)


def _trials(
    program: Node,
    arguments: Arguments | Iterable[ArgumentCase],
    numbering: Numbering,
    sides: int,
    progress: Progress,
    eager: EagerComparison | None,
) -> Iterator[_Trial]:
    """Yield a trial of each argument, and of the first plainer one on which the program does not
    fail, if it fails on the argument."""
    cases = list(arguments)
    in_vain = 0
    for index, case in enumerate(cases):
        progress(index, len(cases) * sides)
        trial = _Trial(program, case, index, numbering, eager)
        yield trial
        if not trial.fails() or not isinstance(arguments, Arguments):
            continue
        for plainer in arguments.plainer(index):
            if in_vain >= max(LEAST_RETRIES, RETRIES * len(cases)):
                break
            trial = _Trial(program, plainer, index, numbering, eager)
            if not trial.fails():
                yield trial
                break
            in_vain += 1


def _candidates(
    program: Node, pipeline: Pipeline, form: str | None, compile: Callable[..., Form]
) -> Iterator[Candidate]:
    """Yield the results of the passes that change the program, in order, and then the form."""
    steps: list[Finished] = []
    observers = (verify_step, steps.append)
    if form is None:
        pipeline.run(program, observers)
        compiled = None
    else:
        compiled = compile(program, form, pipeline, observers=observers)
    for step in steps:
        if step.before != step.after:
            name = f"the pass {step.step}, step {step.position}"
            yield Candidate(name, functools.partial(_run, step.after))
    if compiled is not None:
        run = functools.partial(_run_form, program.type, compiled)
        yield Candidate(f"the form {form}", run, gives_each=True)


def _run(
    program: Node,
    case: ArgumentCase,
    draws: Draws,
    shards: int,
    shift: int = 0,
    seen: Seen | None = None,
) -> Any:
    def interpreter(clients: int) -> Watched:
        return Watched(clients, draws, shards, shift, seen=seen)

    return invoke(program, program.type, case.argument, interpreter)


def _run_form(type: Type, form: Form, case: ArgumentCase, draws: Draws, shards: int) -> Any:
    clients = _clients(case.argument, type)
    return run_round(form, case.argument, clients, draws, shards)


def _clients(argument: Any, type: Type) -> int:
    if not isinstance(type, FunctionType) or type.parameter is None:
        return 0
    return count_clients(to_value(argument, type.parameter), type.parameter)


class _Trial:
    """One argument and the program's own results for it.

    Candidates are run with the same number of shards as the program, so that sums round alike.
    """

    def __init__(
        self,
        program: Node,
        case: ArgumentCase,
        index: int = 0,
        numbering: Numbering = IN_ORDER,
        eager: EagerComparison | None = None,
    ) -> None:
        self.program = program
        self.case = case
        self.index = index
        self.numbering = numbering
        self._itself = Candidate(
            "the program",
            functools.partial(_run, program, seen=None if eager is None else eager.check),
        )
        self._expected: dict[tuple[int, Numbering], TrialOutcome] = {}

    def fresh(self, case: ArgumentCase | None = None) -> _Trial:
        """Return a trial of the same case, or of another, without remembered results."""
        return _Trial(self.program, case or self.case, self.index, self.numbering)

    def difference(self, candidate: Candidate) -> Mismatch | None:
        """Return the first difference between a candidate's results and the program's, or None."""
        for shards in self._shards():
            mismatch = self._difference(candidate, shards, self.numbering)
            if mismatch is None or self._agrees_up_to_rounding(candidate, mismatch):
                continue
            if not self._agrees_in_any_order(candidate, shards):
                return mismatch
        return None

    def fails(self) -> bool:
        """Return whether the program itself fails on the argument."""
        return self.expected(1).failure is not None

    def summary(self) -> Outcome:
        """Return what came of the argument, once all candidates agree with the program on it."""
        outcomes = [self.expected(shards) for shards in self._shards()]
        failure = next(
            (outcome.failure for outcome in outcomes if outcome.failure is not None), None
        )
        type = self.program.type
        parameter = type.parameter if isinstance(type, FunctionType) else None
        is_loose = any(outcome.draws.loose for outcome in outcomes)
        return Outcome(failure, is_loose, has_data(self.case.argument, parameter))

    def _shards(self) -> tuple[int, ...]:
        if not self.case.may_reorder:
            return (1,)
        clients = max(2, _clients(self.case.argument, self.program.type))
        return (1, (clients, *SHARDS)[self.index % (1 + len(SHARDS))])

    def expected(self, shards: int, numbering: Numbering | None = None) -> TrialOutcome:
        """Return the outcome of the program itself."""
        key = (shards, numbering or self.numbering)
        if key not in self._expected:
            self._expected[key] = self._outcome(self._itself, *key)
        return self._expected[key]

    def _outcome(self, candidate: Candidate, shards: int, numbering: Numbering) -> TrialOutcome:
        draws = Draws(self.index, numbering)
        try:
            return TrialOutcome(draws, candidate.run(self.case, draws, shards))
        except ExecutionError as error:
            return TrialOutcome(draws, failure=error.message)

    def _difference(
        self, candidate: Candidate, shards: int, numbering: Numbering
    ) -> Mismatch | None:
        expected = self.expected(shards, numbering)
        outcome = self._outcome(candidate, shards, numbering)
        if expected.failure is None and outcome.failure is None and not numbering.by_all:
            failure = outcome.draws.too_often(expected.draws)
            outcome = dataclasses.replace(outcome, failure=failure)
        place = self._place(candidate, outcome, expected)
        return None if place is None else Mismatch(place, shards, outcome, expected)

    def _place(
        self,
        candidate: Candidate,
        found: TrialOutcome,
        expected: TrialOutcome,
        beside: Sequence[TrialOutcome] = (),
    ) -> str | None:
        """Return the place of the first difference of two outcomes.

        With `beside`, only differences larger than those between these outcomes count.
        """
        if found.failure is not None or expected.failure is not None:
            agree = found.failure is not None and expected.failure is not None
            return None if agree else "whether there is a result"
        if expected.draws.loose:
            # Results vary in each run; `too_often` has compared how often such operations ran.
            return None
        type = _result(self.program.type)
        values = [outcome.value for outcome in (expected, *beside)]
        if candidate.gives_each:
            clients = _clients(self.case.argument, self.program.type)
            type, values = _each(type, values, clients)
        tolerance = rounding_of_results if beside else None
        return first_difference(found.value, values[0], type, tolerance, values)

    def _agrees_up_to_rounding(self, candidate: Candidate, difference: Mismatch) -> bool:
        """Return whether a candidate differs from the program no more than the program from itself.

        The program runs with its sums grouped in other ways, and with sums shifted by the bound of
        their rounding in both directions.  This applies only to programs with sums that may be
        reordered, and only if all these runs make the same draws.
        """
        is_grouped = any(
            isinstance(node, Intrinsic) and node.uri in GROUPED for node in walk(self.program)
        )
        expected = self.expected(1)
        if not is_grouped or not self.case.may_reorder or difference.failed or self.broken_laws():
            return False
        clients = max(2, _clients(self.case.argument, self.program.type))
        beside = [self.expected(shards) for shards in dict.fromkeys((1, *SHARDS, clients))]
        for shift in (1, -1):
            shifted = Candidate("", functools.partial(_run, self.program, shift=shift))
            beside.append(self._outcome(shifted, 1, self.numbering))
        if any(o.failure is not None or o.draws.calls() != expected.draws.calls() for o in beside):
            return False
        return self._place(candidate, difference.outcome, difference.expected, beside) is None

    def _agrees_in_any_order(self, candidate: Candidate, shards: int) -> bool:
        """Return whether a candidate only makes the draws of some places in another order.

        First, the results must be equal if all draws of a place are equal.  Then one draw of a
        place at a time is made different, and the candidate must have the same set of results as
        the program.
        """
        repeated = self.expected(shards).draws.repeated()
        if not repeated or self.numbering.by_all:
            return False
        if self._difference(candidate, shards, ALL_ALIKE) is not None:
            return False
        return all(
            self._has_same_effects(candidate, shards, calls, count)
            for calls, count in repeated.items()
        )

    def _has_same_effects(
        self, candidate: Candidate, shards: int, calls: Calls, count: int
    ) -> bool:
        numberings = [Numbering(apart=calls, position=position) for position in range(count)]
        wanted = [self.expected(shards, one) for one in numberings]
        for one in numberings:
            outcome = self._outcome(candidate, shards, one)
            same = (
                index
                for index, w in enumerate(wanted)
                if self._place(candidate, outcome, w) is None
            )
            index = next(same, None)
            if index is None:
                return False
            # Each result of the program may match only one of the candidate's.
            del wanted[index]
        return True

    def broken_laws(self) -> list[ValidationError]:
        """Return the laws that aggregations break on this argument."""
        failures: list[ValidationError] = []
        if self.case.may_reorder and self.expected(1).failure is None:
            # A function may fail on what the program itself never gives it, such as two parts.
            with contextlib.suppress(ExecutionError):
                invoke(
                    self.program,
                    self.program.type,
                    self.case.argument,
                    lambda clients: AlgebraWatch(clients, failures.append),
                )
        return failures


def _result(type: Type) -> Type:
    return type.result if isinstance(type, FunctionType) else type


def _each(type: Type, values: Sequence[Any], clients: int) -> tuple[Type, list[Any]]:
    """Return the type of a result and results with a value for each client in the whole or in its
    elements, also where all clients' values are known to be equal."""
    if isinstance(type, FederatedType) and type.placement is CLIENTS and type.all_equal:
        return at_clients(type.member), [[value] * clients for value in values]
    if not isinstance(type, StructType) or not any(isinstance(t, FederatedType) for t in type):
        return type, list(values)
    rows: list[list[Any]] = [
        list(value.values() if is_mapping(value) else value) for value in values
    ]
    columns = [_each(t, [row[i] for row in rows], clients) for i, t in enumerate(type)]
    types = tuple(t for t, _ in columns)
    return type.with_types(types), list(zip(*(column for _, column in columns), strict=True))


def _finding(candidate: Candidate, trial: _Trial, first: Mismatch) -> ValidationError:
    """Return the error, with the smallest argument found that shows the difference."""
    case, type = trial.case, trial.program.type
    differences = [first]

    def differs(argument: Any) -> bool:
        mismatch = trial.fresh(dataclasses.replace(case, argument=argument)).difference(candidate)
        differences.extend(filter(None, (mismatch,)))
        return mismatch is not None

    notes: tuple[str, ...] = ()
    if isinstance(type, FunctionType) and type.parameter is not None:
        argument = shrink(case.argument, type.parameter, differs)
        notes = (f"for the argument {text_of(argument, type.parameter)}",)
    result = _result(type)
    mismatch = differences[-1]
    merged = () if mismatch.shards == 1 else (f"with {mismatch.shards} partial aggregates merged",)
    return ValidationError(
        "E902",
        f"{candidate.name} computes something else than the program",
        notes=(
            *notes,
            *merged,
            f"the program gives {_shown(mismatch.expected, result)}",
            f"{candidate.name} gives {_shown(mismatch.outcome, result)}",
            f"the first difference is in {mismatch.place}",
        ),
        help="if the pass is yours, fix it; otherwise report this as a defect of tffc",
    )


def _shown(outcome: TrialOutcome, type: Type) -> str:
    if outcome.failure is not None:
        return f"no result: {outcome.failure}"
    return text_of(outcome.value, type)
