"""Saving the states, outputs and metrics of `tffc run`, and plots of the metrics."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import click

from tffc.api.plan import RunPlan
from tffc.assurance.privacy.ledger import Ledger, privacy_of_run, with_spending
from tffc.cli.command_line import command_line
from tffc.cli.output import say
from tffc.cli.progress import start_tensorflow
from tffc.language.type_parts import leaves
from tffc.language.types import Type
from tffc.runtime.data.identity import source_identity
from tffc.runtime.engines.encoding import encode
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State, write_state
from tffc.runtime.frameworks.tensorflow.load import is_installed
from tffc.runtime.runs import metrics
from tffc.runtime.runs.command_record import CommandRecord
from tffc.runtime.runs.first_state import FirstState, read_first_state
from tffc.runtime.runs.metrics import Log, MetricsRow, row_of
from tffc.runtime.runs.observed import Observed
from tffc.runtime.runs.plot import plot
from tffc.runtime.runs.report import RunReport, read_report
from tffc.runtime.runs.report_page import report_page
from tffc.runtime.runs.run_folder import RunFolder
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.tracking.kind import Ending, RunFacts, TrackerKind
from tffc.runtime.tracking.table import TENSORBOARD, TRACKERS
from tffc.runtime.tracking.tracking import Tracking, parameters
from tffc.support.errors import DataError
from tffc.support.files import atomic
from tffc.support.files.inputs import check_no_input, replaceable
from tffc.support.near import near_file


@dataclasses.dataclass(frozen=True, slots=True)
class OutputOptions:
    """The options that select what is saved.

    Raises:
      click.UsageError: options do not go together.
      DataError: the folder for a file does not exist.
      MissingExtraError: a tracker is not installed.
    """

    out: pathlib.Path | None
    resume: bool
    state_out: pathlib.Path | None
    state_in: pathlib.Path | None
    continue_from: pathlib.Path | None
    log: str
    track: tuple[str, ...]
    plot: pathlib.Path | None
    report: pathlib.Path | None

    def __post_init__(self) -> None:
        out = self.out
        for name, needs_folder in (
            ("--resume", self.resume),
            ("--log tensorboard", self.log == TENSORBOARD.name),
            *((f"--track {kind.name}", kind.needs_folder) for kind in self.trackers),
        ):
            if needs_folder and out is None:
                raise click.UsageError(f"{name} needs --out DIR, the run folder")
        if self.state_in is not None and self.continue_from is not None:
            raise click.UsageError("--state-in and --continue-from exclude each other")
        if self.resume and self.first_state is not None:
            option = "--state-in" if self.continue_from is None else "--continue-from"
            raise click.UsageError(
                f"--resume continues from the state in the run folder: omit {option}"
            )
        state_out = self.state_out
        if (
            out is not None
            and state_out is not None
            and out.resolve() in state_out.resolve().parents
        ):
            raise click.UsageError(
                f"{out} is the run folder, which keeps the state itself: omit --state-out, or give "
                "it a file elsewhere"
            )
        for path, writes, suffix in (
            (self.plot, "--plot draws an SVG file", ".svg"),
            (self.report, "--report writes an HTML file", ".html"),
        ):
            if path is not None and path.suffix != suffix:
                raise click.UsageError(f"{writes}, whose name ends in {suffix}, not {path}")
        for path in self.files:
            _check_folder(path)
        for kind in self.trackers:
            kind.check_installed()

    @property
    def trackers(self) -> list[TrackerKind]:
        """The trackers of the run, each once."""
        names = (*self.track, *((self.log,) if self.log == TENSORBOARD.name else ()))
        return [TRACKERS[name] for name in dict.fromkeys(names)]

    @property
    def first_state(self) -> pathlib.Path | None:
        """The file or the folder with the state to start from."""
        return self.state_in or self.continue_from

    @property
    def files(self) -> list[pathlib.Path]:
        """The files outside of the folder of the run."""
        return [path for path in (self.state_out, self.plot, self.report) if path is not None]


class RunOutputs:
    """Writes the files that the options of the command ask for.

    `name` names the program.  `evaluation` is the type of
    evaluations' results, if there are any.

    Raises:
      click.UsageError: clients have outputs, and there is no folder for them.
      DataError: the state to start from cannot be read.
      LoadError: a file would replace what the command has read.
    """

    def __init__(
        self, name: str, process: Process, evaluation: Type | None, options: OutputOptions
    ) -> None:
        keeps_states = process.client_state_type is not None
        if process.client_output_type is not None and not keeps_states and options.out is None:
            raise click.UsageError("clients of this bundle have outputs: add --out DIR for them")
        self.process = process
        self._evaluation = evaluation
        self._options = options
        self.is_table = options.log == "table"
        self.finished = self._begun_at = 0
        self.has_begun = False
        self._last: State | None = None
        self._begun_with = b""
        self._first = None if options.first_state is None else self._read(options.first_state)
        self.client_states = self._first and self._first.client_states
        """The states of clients to continue from, if they keep any; see `begin`."""
        for path in options.files:
            check_no_input(path)
        self._folder = None
        if options.out is not None:
            self._folder = RunFolder(options.out, process, evaluation)
        self._log = _open_log(options.log)
        self._tracking = Tracking(options.trackers, options.out, _warn)
        self.ending: Ending = "failed"
        self._name = name
        self._command = CommandRecord.of_now(name, command_line())
        self._identity: RunIdentity | None = None
        self._has_budget = False
        self._rows: list[MetricsRow] = []
        self._observed: list[Observed] = []

    def begin(self, plan: RunPlan) -> tuple[State, Sampling]:
        """Lock the folder of a run, and return the state to continue from, and the sampling: with
        the secret seed of the run that goes on.

        Raises:
          DataError: the folder of the run cannot be locked, read or written.
          TffcError: the first state cannot be made.
        """
        state = origin = None
        sampling = plan.sampling
        if self._first is not None:
            state, origin = self._first.state, self._first.origin
        self._has_budget = plan.privacy is not None
        if self._folder is not None or self._keeps_identity:
            self._identity = plan.identity(source_identity(plan.source))
        if self._folder is not None and self._identity is not None:
            state = self._folder.begin(
                self._identity,
                state,
                resume=self._options.resume,
                origin=origin,
                command=self._command,
                client_states=self.client_states,
            )
            self.client_states = self._folder.client_states
            sampling = self._folder.sampling or sampling
            self._identity = dataclasses.replace(self._identity, sampling=sampling)
        if is_installed():
            start_tensorflow()
        self._begin_tracking()
        state = state or self.process.first_state()
        self.finished = self._begun_at = state.rounds
        if self._place() is None:
            self._begun_with = _digest(state)
        self.has_begun = True
        return state, sampling

    def _begin_tracking(self) -> None:
        if not self._tracking or self._identity is None:
            return
        about = parameters(self._name, self._identity, self.process, self._command.command)
        facts = RunFacts(self._name, about, self._options.out)
        self._tracking.begin(facts, [] if self._folder is None else self._folder.rows())
        for place in self._tracking.places():
            say(place)

    def _read(self, path: pathlib.Path) -> FirstState:
        """Return the state at a path, and say what it is."""
        continues = self._options.continue_from is not None
        goes_on = self._options.state_out == path
        with replaceable() if goes_on else contextlib.nullcontext():
            first = read_first_state(path, self.process, continues=continues)
        if first.file != path:
            say(f"starts from {first.file}, the state of that run")
        if first.is_of_another_program and not continues and first.origin.rounds:
            say(
                "that state is of another program, so rounds count from 1; --continue-from counts "
                f"on from round {first.origin.rounds}"
            )
        return first

    def with_known(self, batching: Batching) -> Batching:
        """Return a choice of batching with the measurements stored in the run's folder."""
        return dataclasses.replace(batching, known=self._folder.batching if self._folder else {})

    def end(self, state: State, rounds: int) -> None:
        """Draw the metrics and write the report; if no round ran, also save the state."""
        if rounds == 0 and self._options.state_out is not None:
            write_state(self._options.state_out, state, self.process.state_type)
        self.draw()
        self.ending = "finished"

    def close(self) -> None:
        """End the run at its trackers, and unlock its folder."""
        try:
            self._tracking.end(self.ending, lambda: self._report() if self.finished else None)
        finally:
            if self._folder is not None:
                self._folder.close()

    def save(self, finished: Round) -> None:
        """Save a finished round; raises DataError if that fails."""
        if self._folder is not None:
            self._folder.save(finished)
        if self._options.state_out is not None:
            write_state(self._options.state_out, finished.state, self.process.state_type)
        self.finished = finished.number
        self._last = finished.state
        row = row_of(finished, self.process.output_type, evaluation=self._evaluation)
        if self._folder is None and (self._options.plot is not None or self._keeps_identity):
            self._rows.append(row)
            self._observed.append(Observed.of(finished))
        if self._log is not None:
            self._log.add(row)
        self._tracking.add(row)

    def save_client(self, client: str, output: Any) -> None:
        """Save a client's output of the running round, if that is not a state, which is kept."""
        if self._folder is not None and self.process.client_state_type is None:
            self._folder.save_client(self.finished + 1, client, output)

    def abandon(self) -> None:
        """Undo `begin` for a run whose first round could not start, so that the run can begin
        again."""
        if self._folder is not None:
            self._folder.abandon()

    def draw(self) -> None:
        """Draw the metrics of all known rounds, and write the report."""
        if self._options.plot is not None:
            _write(self._options.plot, plot(self._known_rows()))
        if self._options.report is not None and self._identity is not None:
            _write(self._options.report, self._report())

    def _report(self) -> str:
        return report_page(with_spending(self._content()))

    def _content(self) -> RunReport:
        if self._folder is not None:
            return read_report(self._folder.path)
        assert self._identity is not None
        origin = self._first and self._first.origin
        rows, observed = self._rows, self._observed
        return RunReport.in_memory(
            self._name, self._identity, rows, observed, self._command, origin
        )

    def most_rounds(self, wanted: int) -> int:
        """Return how many of the `wanted` rounds the budget of the run has, once it has begun.

        Raises:
          BudgetSpentError: none, though some are wanted.
        """
        ledger = self._ledger()
        if ledger is None or not wanted:
            return wanted
        rows = self._known_rows()
        most = ledger.most_rounds(rows, wanted)
        if not most:
            raise ledger.refusal(rows, self.finished + 1)
        return most

    def refuse_more(self) -> None:
        """Refuse the round after the last one, for which the budget of the run is too small.

        Raises:
          BudgetSpentError: always.
        """
        ledger = self._ledger()
        assert ledger is not None
        raise ledger.refusal(self._known_rows(), self.finished + 1)

    def _ledger(self) -> Ledger | None:
        identity = self._identity
        if identity is None or identity.privacy is None:
            return None
        return Ledger(identity.privacy, identity)

    def _known_rows(self) -> list[MetricsRow]:
        return self._rows if self._folder is None else self._folder.rows()

    @property
    def _keeps_identity(self) -> bool:
        """Whether something beside the folder of the run needs to know what is run."""
        return self._options.report is not None or bool(self._tracking) or self._has_budget

    def end_of_run(self) -> Iterator[str]:
        """Yield lines about the end of a run: whether rounds were left, and where the state is."""
        if self.finished == self._begun_at:
            done = f"{self.finished} rounds are finished"
            yield f"nothing to do: {done}, and --rounds asks for no more"
        if self._has_budget and self._identity is not None:
            yield f"privacy: {privacy_of_run(self._content())}"
        keeps_states = self.process.client_state_type is not None
        if keeps_states and self._folder is None and self._last is not None:
            yield "the states of the clients were not kept; --out DIR keeps them"
        if not leaves(self.process.state_type):
            return
        place = self._place()
        if place is None:
            if self._last is None or _digest(self._last) == self._begun_with:
                return
            yield "the state was not kept; --out DIR or --state-out FILE keeps it"
        else:
            yield f"the state after round {self.finished} is in {place}"

    @property
    def folder(self) -> pathlib.Path | None:
        """The folder of the run."""
        return self._options.out

    def _place(self) -> pathlib.Path | None:
        """Return where the state is."""
        return self._options.state_out or (self._folder and self._folder.path / "state.npz")

    def what_is_kept(self) -> str:
        """Return a line about the saved state, for after an interruption."""
        if self.finished == self._begun_at:
            if self._options.resume and self._folder is not None:
                return f"no further round was finished; the run in {self._folder.path} is as it was"
            return "no round was finished"
        place = self._place()
        if place is None:
            return "the state is lost; --out or --state-out would have kept it"
        return f"the state after round {self.finished} is in {place}"


def _warn(text: str) -> None:
    say(f"warning: {text}")


def _digest(state: State) -> bytes:
    return hashlib.sha256(encode(state.value)).digest()


def _write(path: pathlib.Path, text: str) -> None:
    try:
        atomic.write_file(path, text.encode())
    except OSError as error:
        raise DataError(
            "E851",
            f"cannot write {path}: {error.strerror}",
            help="give the path of a file in an existing, writable folder, on a disk with enough "
            "space",
        ) from error


def _check_folder(path: pathlib.Path) -> None:
    """Check that the folder of an output file exists, before any round has run for it."""
    if not path.parent.is_dir():
        raise DataError(
            "E851",
            f"cannot write {path}: there is no folder {path.parent}",
            help=near_file(path.parent, os.path.isdir) or f"make it: mkdir -p {path.parent}",
        )


def _open_log(kind: str) -> Log | None:
    if kind == "jsonl":
        return metrics.JsonStream()
    if kind == "csv":
        return metrics.CsvStream()
    return None
