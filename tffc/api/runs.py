"""Runs in Python: rounds that are run as they are asked for, and what is known of finished ones."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from tffc.api.boundary import public
from tffc.api.pages import HtmlPage
from tffc.api.plan import RunPlan
from tffc.api.privacy_budget import ledger_of
from tffc.api.progress import progress_of
from tffc.api.run_cell import round_cell, run_cell
from tffc.assurance.privacy.accounting import Spending
from tffc.assurance.privacy.ledger import with_spending
from tffc.language.type_parts import local_type, without_containers
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.values.concrete import to_python, to_value
from tffc.language.values.misfits import describe
from tffc.runtime.data.identity import source_identity
from tffc.runtime.engines import rounds as engine_rounds
from tffc.runtime.engines.client_states import ClientStates, StateInMemory
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Contributions, Spent
from tffc.runtime.engines.state import State, read_state, write_state
from tffc.runtime.runs.first_state import client_states_beside
from tffc.runtime.runs.kept_states import states_of_run
from tffc.runtime.runs.metrics import MetricsRow, curves, row_of
from tffc.runtime.runs.observed import Observed
from tffc.runtime.runs.report import RunReport, read_report
from tffc.runtime.runs.report_page import report_page
from tffc.runtime.runs.run_folder import RunFolder, find_state
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.tracking.kind import Ending, RunFacts
from tffc.runtime.tracking.tracking import Tracking, parameters
from tffc.support.errors import LanguageValueError
from tffc.support.guards import is_mapping, is_path
from tffc.support.printable import counted

IN_PYTHON = "in Python"
"""The name of a run of a program that has none."""

LONG = ("the output of the round", "the result of the evaluation")
"""Where a value is that is too long for the rows of a run."""


class StatesOfClients(Mapping[str, Any]):
    """The states of the clients that have taken part in a round, by their names; each is read when
    it is asked for, in the containers that the program's author used."""

    def __init__(self, states: ClientStates, written: Type) -> None:
        self.states = states
        self._written = written

    def __getitem__(self, client: str) -> Any:
        return to_python(self.states.held[client].read(), self._written)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.states.held))

    def __len__(self) -> int:
        return len(self.states.held)

    def __repr__(self) -> str:
        return f"<states of {counted(len(self), 'client')}>"


@dataclasses.dataclass(frozen=True, slots=True)
class FinishedRound:
    """A finished round.

    It has its number, the clients that took part and those left out, the state after the round, the
    server output, the result of an evaluation if there was one, the time that was spent, and the
    states of all clients by their names, if clients keep some.  States and results are in the
    containers that the program's author used.  `simulated` are its seconds by a model of delays,
    and `contributions` those that a buffered round has merged.
    """

    number: int
    clients: tuple[str, ...]
    state: Any
    output: Any
    skipped: tuple[str, ...] = ()
    evaluation: Any = None
    spent: Spent = dataclasses.field(default_factory=Spent, compare=False)
    client_states: StatesOfClients | None = dataclasses.field(default=None, compare=False)
    contributions: Contributions | None = None
    simulated: float | None = None

    def _repr_html_(self) -> str:
        about = f"{counted(len(self.clients), 'client')}, {self.spent.seconds:.2f} s"
        if self.skipped:
            about += f"; {counted(len(self.skipped), 'client')} left out"
        values = {"output": self.output, "evaluation": self.evaluation, "state": self.state}
        if self.evaluation is None:
            del values["evaluation"]
        return round_cell(self.number, about, values)


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenTypes:
    """The types of a round's state and outputs with the containers that the program's author used,
    as far as they are known."""

    state: Type
    output: Type
    client_output: Type | None

    @classmethod
    def of(cls, process: Process, signature: FunctionType | None) -> WrittenTypes:
        """Return those of a process whose round was written with a type."""
        if signature is None:
            return cls(process.state_type, process.output_type, process.client_output_type)
        taken, returned = _parts(signature.parameter), _parts(signature.result)[::-1]
        output = process.client_output_type
        return cls(
            _written(process.state_type, taken),
            _written(process.output_type, returned),
            None if output is None else _written(output, returned),
        )


def _parts(type: Type | None) -> list[Type]:
    """Return the elements of a type and the type itself, without placements."""
    if type is None:
        return []
    elements = type.types if isinstance(type, StructType) else ()
    return [local_type(part) for part in (*elements, type)]


def _written(plain: Type, candidates: Sequence[Type]) -> Type:
    """Return the first candidate that differs from a type in its containers only, or the type."""
    same = (type for type in candidates if without_containers(type) == without_containers(plain))
    return next(same, plain)


class Run(Iterator[FinishedRound]):
    """A run: an iterator of its rounds, each of which is run when it is asked for.

    A run that was interrupted, or failed, goes on after the last finished round when it is asked
    again.  It keeps the last round, and of all rounds the metrics.
    """

    def __init__(
        self,
        plan: RunPlan,
        first: State | None,
        rounds: int,
        types: WrittenTypes,
        evaluation_type: Type | None,
        deliver: Callable[[str, Any], None],
        folder: RunFolder | None,
        tracking: Tracking,
        *,
        name: str,
        resume: bool,
        client_states: ClientStates | None = None,
    ) -> None:
        self.rows: list[MetricsRow] = []
        """The number of each finished round, its clients and its metrics."""
        self.observed: list[Observed] = []
        """The times of each finished round."""
        self.last: FinishedRound | None = None
        """The last finished round."""
        self.rounds = rounds
        """The number of rounds that were asked for."""
        self._plan, self._types, self._evaluation_type = plan, types, evaluation_type
        self._deliver, self._folder, self._resume = deliver, folder, resume
        self._tracking, self._name = tracking, name
        self._state = first
        self._client_states = client_states
        self._ends_after: int | None = None
        self._running: Iterator[engine_rounds.Round] | None = None

    @property
    def state(self) -> Any:
        """The state after the last finished round, or the one that the run begins with."""
        if self.last is not None:
            return self.last.state
        return to_python(self.engine_state().value, self._types.state)

    @property
    def client_states(self) -> StatesOfClients | None:
        """The states of all clients that have had a round, by their names; None if clients keep
        none."""
        return self._view(self._client_states)

    def _view(self, states: ClientStates | None) -> StatesOfClients | None:
        type = self._plan.process.client_state_type
        if type is None:
            return None
        return StatesOfClients(states or ClientStates(type), self._types.client_output or type)

    @property
    def output(self) -> Any:
        """The server output of the last finished round; None before the first."""
        return None if self.last is None else self.last.output

    @property
    def metrics(self) -> Mapping[str, Sequence[tuple[int, float]]]:
        """The numbers that rounds have put out, by name: pairs of a round and its number.

        Names of evaluations' results begin with "evaluation."; numbers that are not finite are left
        out.
        """
        return curves(self.rows)

    def __iter__(self) -> Self:
        return self

    @public
    def __next__(self) -> FinishedRound:
        if self._running is None:
            self._running = self._finished_rounds()
        try:
            outcome = next(self._running)
        except BaseException:
            # It has ended, also where it was interrupted: the next one begins after the last round.
            self._running = None
            raise
        return self._add(outcome)

    def finish(self) -> Self:
        """Run all rounds that are left, and return the run.

        An interruption leaves it with the rounds that were finished; it can be asked again.

        Raises:
          TffcError: a round fails.
        """
        for _ in self:
            pass
        return self

    def engine_state(self) -> State:
        """Return the state to go on from, as engines have it."""
        if self._state is None:
            self._state = self._plan.process.first_state()
        return self._state

    @public
    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the last state to a file, for `tffc.run(..., state=path)` and `tffc.load_state`.

        Raises:
          DataError: the file cannot be written.
        """
        write_state(pathlib.Path(path), self.engine_state(), self._plan.process.state_type)

    @public
    def report(self, name: str = IN_PYTHON) -> HtmlPage:
        """Return the HTML page about the run, as `tffc report` writes it: of all that is in its
        folder, or if it has none, of the rounds that this object has run under a name.

        Raises:
          DataError: the clients' data cannot be read.
        """
        if self._folder is not None:
            return HtmlPage(report_page(with_spending(read_report(self._folder.path))))
        report = RunReport.in_memory(name, self._identity(), self.rows, self.observed)
        return HtmlPage(report_page(with_spending(report)))

    @property
    @public
    def spent(self) -> Spending | None:
        """The ε of all rounds so far, of an earlier run too whose state this one went on with; None
        without a privacy budget.

        Raises:
          MissingExtraError: `dp-accounting` is not installed.
        """
        ledger = ledger_of(self._plan)
        return None if ledger is None else ledger.spending(self._rows_so_far())

    def _rows_so_far(self) -> Sequence[MetricsRow]:
        return self.rows if self._folder is None else self._folder.rows()

    def _most_rounds(self, wanted: int) -> int:
        """Return how many of the `wanted` rounds the privacy budget has, if there is one."""
        ledger = ledger_of(self._plan)
        return wanted if ledger is None else ledger.most_rounds(self._rows_so_far(), wanted)

    def _identity(self) -> RunIdentity:
        return self._plan.identity(source_identity(self._plan.source))

    def _finished_rounds(self) -> Iterator[engine_rounds.Round]:
        """Run the rounds that are left; the folder of the run is locked meanwhile."""
        folder, process = self._folder, self._plan.process
        if self.rows and self._plan.buffering is not None:
            raise LanguageValueError(
                "E706",
                "a buffered run that was interrupted cannot go on: its clients in flight are lost",
                help="begin another one with tffc.run(..., state=run)",
            )
        ending: Ending = "failed"
        try:
            begins = self._state
            if folder is not None:
                begins = (
                    folder.begin(
                        self._identity(),
                        begins,
                        resume=self._resume,
                        client_states=self._client_states,
                    )
                    or begins
                )
                self._client_states = folder.client_states
                sampling = folder.sampling or self._plan.sampling
                self._plan = dataclasses.replace(self._plan, sampling=sampling)
                if self._resume and not self.rows:
                    self.rows += folder.rows()
            self._state = begins or process.first_state()
            if self._ends_after is None:
                # A run that is resumed has so many rounds in total.
                self._ends_after = self.rounds + (0 if self._resume else self._state.rounds)
            # What is in the folder from now on is this run.
            self._resume = True
            self._begin_tracking()
            number, last = self._state.rounds, self._ends_after
            if number >= last:
                ending = "finished"
                return
            asked, last = last, number + self._most_rounds(last - number)
            engine = self._plan.engine.engine(process)
            with progress_of(f"rounds {number + 1} to {last}") as progress:
                progress(0, last - number)
                finished = self._plan.run(
                    engine,
                    self._state,
                    last - number,
                    self._deliver_client,
                    client_states=self._client_states,
                )
                for done, outcome in enumerate(finished, start=1):
                    if folder is not None:
                        folder.save(outcome)
                    for line in outcome.lost:
                        warnings.warn(line, RuntimeWarning, stacklevel=2)
                    progress(done, last - number)
                    yield outcome
            if last < asked:
                ending = "stopped"
                self._refuse_round(last + 1)
            ending = "finished"
        except (KeyboardInterrupt, GeneratorExit):
            ending = "stopped"
            raise
        finally:
            try:
                self._tracking.end(ending, self._tracked_report)
            finally:
                if folder is not None:
                    folder.close()

    def _refuse_round(self, number: int) -> None:
        """Refuse a round for which the privacy budget is too small.

        Raises:
          BudgetSpentError: always.
        """
        ledger = ledger_of(self._plan)
        assert ledger is not None
        raise ledger.refusal(self._rows_so_far(), number)

    def _begin_tracking(self) -> None:
        if self._tracking:
            about = parameters(self._name, self._identity(), self._plan.process, None)
            folder = self._folder
            facts = RunFacts(self._name, about, None if folder is None else folder.path)
            self._tracking.begin(facts, self.rows if folder is None else folder.rows())

    def _tracked_report(self) -> str | None:
        if not (self.rows if self._folder is None else self._folder.rows()):
            return None
        return str(self.report(self._name))

    def _deliver_client(self, client: str, value: Any) -> None:
        if self._folder is not None and self._plan.process.client_state_type is None:
            self._folder.save_client(self.engine_state().rounds + 1, client, value)
        type = self._types.client_output
        self._deliver(client, value if type is None else to_python(value, type))

    def _add(self, outcome: engine_rounds.Round) -> FinishedRound:
        """Count a round as finished, and return it in the author's containers."""
        self._state, self._client_states = outcome.state, outcome.client_states
        measured, evaluation = outcome.evaluation, self._evaluation_type
        self.rows.append(row_of(outcome, self._plan.process.output_type, evaluation, LONG))
        self._tracking.add(self.rows[-1])
        self.observed.append(Observed.of(outcome))
        if measured is not None and evaluation is not None:
            measured = to_python(measured, evaluation)
        self.last = FinishedRound(
            outcome.number,
            outcome.clients,
            to_python(outcome.state.value, self._types.state),
            to_python(outcome.output, self._types.output),
            outcome.skipped,
            measured,
            outcome.spent,
            self._view(outcome.client_states),
            outcome.contributions,
            outcome.simulated,
        )
        return self.last

    def __repr__(self) -> str:
        return f"<run of {self.rounds} rounds, {len(self.rows)} of them finished>"

    def _repr_html_(self) -> str:
        state = None if self.last is None else self.last.state
        return run_cell(self.rows, self.observed, self.rounds, state)


def state_of(process: Process, state: object) -> State | None:
    """Return the state that a run begins with, from what a user has; None for the first state.

    A run, a round of one, and a file continue the numbers of their rounds; any other value is
    a state before the first round.

    Raises:
      DataError: a file cannot be read, or holds a state of another type.
      LanguageTypeError: the value is not of the type of the state.
    """
    match state:
        case None | State():
            return state
        case Run():
            return process.state_from_python(state.state, state.engine_state().rounds)
        case FinishedRound():
            return process.state_from_python(state.state, state.number)
        case _ if is_path(state):
            file = find_state(pathlib.Path(state))
            return read_state(file, process.state_type, process.program)
        case _:
            return process.state_from_python(state)


def client_states_of(process: Process, states: object, state: object) -> ClientStates | None:
    """Return the states that clients begin with, from what a user has: those of a run or of one of
    its rounds, of the folder of a run, or values by the names of clients; by default those that
    belong to the `state` of the run.  None for the first states.

    Raises:
      DataError: a file cannot be read, or holds a state of another type.
      LanguageTypeError: a value is not of the type of the states.
      LanguageValueError: clients keep no states.
    """
    type = process.client_state_type
    if type is None:
        if states is None:
            return None
        raise LanguageValueError(
            "E706",
            "clients of this program keep no states",
            help="give none, or return a third value from the round: the new states of clients",
        )
    begins = state if states is None else states
    if isinstance(begins, (Run, FinishedRound)):
        begins = begins.client_states
    if isinstance(begins, StatesOfClients):
        return ClientStates(type, begins.states.held)
    if states is None:
        # A state of the server alone has no clients' states beside it.
        return client_states_beside(pathlib.Path(begins), process) if is_path(begins) else None
    if is_path(states):
        return states_of_run(pathlib.Path(states), type)
    if not is_mapping(states):
        raise LanguageValueError(
            "E706",
            f"client_states are {describe(states)}",
            help="give a run, one of its rounds, the folder of a run, or a dict of states by the "
            "names of clients",
        )
    held = {
        str(client): StateInMemory(to_value(value, type, f"the state of client {client}"))
        for client, value in states.items()
    }
    return ClientStates(type, held)
