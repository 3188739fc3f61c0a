"""The paths by which engines compute a round, beside the interpreter."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.corpus.cases import Case, recordings
from tests.runtime.engines.batches import LOOPED
from tests.runtime.engines.recorded import arguments, result_type, run_round
from tests.runtime.interpreter.rounds import as_recorded, by_position
from tffc.backends.compiler import compile_bundle
from tffc.language import FunctionType, Node
from tffc.language.values.concrete import to_python
from tffc.runtime.batching.choices import PJRT, TENSORFLOW
from tffc.runtime.batching.limits import Limits
from tffc.runtime.engines import sections
from tffc.runtime.engines.engine import ONE_A_CALL, Batching
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.interpreter import interpreter
from tffc.support.errors import ExecutionError

SIZE = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Path:
    """A way to compute a round; if it is `lowered`, single sections are compiled by JAX."""

    batching: Batching = ONE_A_CALL
    lowered: bool = False


def _batches(compiler: str, limits: Limits) -> Path:
    # A device is named so that convolutions are computed in batches too.
    return Path(Batching(SIZE, "CPU:0", limits=limits, compiler=compiler))


PATHS = {
    "alone": Path(),
    "lowered": Path(lowered=True),
    "pjrt": _batches(PJRT, Limits()),
    "pjrt looped": _batches(PJRT, LOOPED),
    "tensorflow": _batches(TENSORFLOW, Limits()),
    "tensorflow looped": _batches(TENSORFLOW, LOOPED),
}


class RefusedError(Exception):
    """A path does not compute the clients of a round; says why."""


@contextlib.contextmanager
def lowering() -> Iterator[None]:
    """Have single sections lowered by JAX, as where TensorFlow is not installed."""
    sections._graph.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "is_installed", lambda: False)
        try:
            yield
        finally:
            sections._graph.cache_clear()


class Rounds:
    """Rounds of one process on one path; a kernel is kept from one to the next."""

    def __init__(self, path: str, process: Process) -> None:
        self._path = PATHS[path]
        self.engine = LocalEngine(process, 1, self._path.batching)
        self.together = 0

    def run(self, state: Any, clients: Sequence[Any]) -> Any:
        """Return the result of a round, of a state and what clients hold.

        Raises:
          RefusedError: the path does not compute all of its clients.
        """
        before = self.engine.stopwatch.clients["computing in batches"]
        context = lowering() if self._path.lowered else contextlib.nullcontext()
        try:
            with context:
                result = run_round(self.engine, state, list(clients))
        except ExecutionError as error:
            if error.code == "E701":
                raise RefusedError(error.notes[0].partition(": ")[2]) from None
            raise
        together = self.engine.stopwatch.clients["computing in batches"] - before
        if self._path.batching.size != 1 and together < len(clients):
            raise RefusedError(self._reason(len(clients) - together))
        self.together += together
        return result

    def _reason(self, alone: int) -> str:
        told = [line for line in self.engine.planner.decisions if "one client a call" in line]
        last = told[-1].removeprefix("one client a call: ") if told else ""
        return last or f"{alone} clients are computed one by one"


def differences(case: Case, form: str, path: str) -> list[str]:
    """What a path gives for a recorded computation that the interpreter does not.

    Raises:
      FormError: the case is not of this form.
      RefusedError: the path does not compute it.
    """
    program = case.program()
    rounds = Rounds(path, Process(compile_bundle(program, form)))
    recorded = case.rounds()
    type = program.type
    assert isinstance(type, FunctionType)
    told: list[str] = []
    for number, (one, expected) in enumerate(zip(recorded.rounds, _expected(case), strict=True)):
        state, clients = arguments(type, one)
        result = to_python(rounds.run(state, clients), result_type(rounds.engine, program))
        lines = recordings().compare(
            recorded.result_type,
            result,
            expected,
            1e-5,
            1e-6,
            recorded.unstable,
            recorded.row_sets,
        )
        told += [f"round {number}: {line}" for line in lines]
    return told


def _expected(case: Case) -> list[Any]:
    """What the interpreter gives for each recorded round."""
    recorded = case.rounds()
    program: Node = case.program()
    return [
        as_recorded(
            interpreter.run(program, by_position(one.arg, recorded.param_type)),
            recorded.result_type,
        )
        for one in recorded.rounds
    ]
