"""Running a bundle's rounds in this process.

    c    = prepare(s)                           once
    ui   = work((di, c))                        for each sampled client
    a    = accumulate ... from zero()           in shards, joined by merge
    r    = report(a)
    s, x = update((s, (r, secure sums)))

Secure sums are plain sums here, which keeps no secret; their bounds are checked.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from tffc.backends.bundle import Bundle, text
from tffc.backends.data import ClientFolder
from tffc.backends.forms import MapReduceForm, assemble
from tffc.backends.secure_sums import SecureSums
from tffc.backends.state import State
from tffc.errors import BundleError, DataError
from tffc.execution.sections import run_section
from tffc.ir.nodes import Compiled
from tffc.ir.trampoline import Task
from tffc.ir.trampoline import run as run_task
from tffc.ir.types import FunctionType, StructType, Type, leaves

SHARD = 32
"""How many clients one accumulator takes.  Real systems merge many, so this one does too."""

Progress = Callable[[int, int], None]
"""Told how many of how many sampled clients of the round are done."""


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """A finished round: its number, who took part, the state after it and the server output."""

    number: int
    clients: tuple[str, ...]
    state: State
    output: Any


class LocalEngine:
    """Runs rounds of one bundle.

    Raises:
      BundleError: the bundle's form is not one that is run here.
      FormError: the bundle does not hold the components of its form.
    """

    def __init__(self, bundle: Bundle) -> None:
        if bundle.form != "mapreduce":
            raise BundleError(
                "E660",
                f"a bundle of the form {bundle.form} can not be run",
                help="compile the program with --form mapreduce",
            )
        form = assemble(bundle.form, bundle.computation.type, bundle.components)
        assert isinstance(form, MapReduceForm)
        self.form = form
        self.initialize = bundle.initialize
        self.program = hashlib.sha256(text(bundle.computation).encode()).hexdigest()

    @property
    def state_type(self) -> Type:
        """The type of the server state."""
        return _parameter(self.form.prepare)

    @property
    def data_type(self) -> Type:
        """The type of what each client holds."""
        return _struct(_parameter(self.form.work))[0]

    @property
    def output_type(self) -> Type:
        """The type of the server output."""
        return _struct(_function(self.form.update).result)[1]

    def first_state(self) -> State:
        """The state before the first round.

        Raises:
          BundleError: the bundle does not say how to make it, and it holds something.
          ExecutionError: making it fails.
        """
        if self.initialize is not None:
            return State(run_section(self.initialize, None), self.program, 0)
        if leaves(self.state_type):
            raise BundleError(
                "E661",
                f"the bundle does not say how the state of type `{self.state_type}` begins",
                help="give a state with --state-in, or compile an iterative process",
            )
        return State(run_task(_empty(self.state_type)), self.program, 0)

    def run(
        self,
        state: State,
        folder: ClientFolder,
        rounds: int,
        *,
        clients: int | None = None,
        seed: int = 0,
        progress: Progress = lambda done, total: None,
    ) -> Iterator[Round]:
        """Runs so many rounds from `state` on, each with so many sampled clients or with all.

        Who is sampled depends on the seed, the number of the round and the clients' names alone,
        so rounds that go on from a saved state are the rounds that would have followed.

        Raises:
          DataError: there are fewer clients, or one's data does not fit.
          ExecutionError: a component fails.
        """
        for _ in range(rounds):
            number = state.rounds + 1
            names = sample(folder.clients, clients, seed, number)
            value, output = self._round(state.value, folder, names, progress)
            state = State(value, self.program, number)
            yield Round(number, names, state, output)

    def _round(
        self, state: Any, folder: ClientFolder, clients: tuple[str, ...], progress: Progress
    ) -> tuple[Any, Any]:
        form = self.form
        context = run_section(form.prepare, state)
        shards: list[Any] = []
        sums = SecureSums(form)
        for done, client in enumerate(clients):
            progress(done, len(clients))
            update, *secured = run_section(form.work, (folder.read(client), context))
            if done % SHARD == 0:
                shards.append(run_section(form.zero, None))
            shards[-1] = run_section(form.accumulate, (shards[-1], update))
            sums.add(secured, client)
        progress(len(clients), len(clients))
        merged = shards[0]
        for shard in shards[1:]:
            merged = run_section(form.merge, (merged, shard))
        report = run_section(form.report, merged)
        return run_section(form.update, (state, (report, *sums.totals())))


def sample(clients: tuple[str, ...], count: int | None, seed: int, number: int) -> tuple[str, ...]:
    """The clients that take part in round `number`, in the order of their names.

    They are those of which a hash of seed, round and name is lowest, so that a client can tell by
    itself how early it comes, and no library's random numbers have to stay the same.

    Raises:
      DataError: there are fewer than `count`.
    """
    if count is None:
        return clients
    if count > len(clients):
        raise DataError(
            "E662",
            f"can not sample {count} clients of {len(clients)}",
            help="give a smaller number to --clients-per-round",
        )

    def rank(client: str) -> bytes:
        return hashlib.sha256(f"{seed}/{number}/{client}".encode(errors="surrogateescape")).digest()

    return tuple(sorted(sorted(clients, key=rank)[:count]))


def _parameter(component: Compiled) -> Type:
    parameter = _function(component).parameter
    assert parameter is not None
    return parameter


def _function(component: Compiled) -> FunctionType:
    assert isinstance(component.type, FunctionType)
    return component.type


def _struct(type: Type) -> StructType:
    assert isinstance(type, StructType)
    return type


def _empty(type: Type) -> Task[Any]:
    """The value of a type without tensors."""
    elements = []
    for element in _struct(type):
        elements.append((yield _empty(element)))
    return tuple(elements)
