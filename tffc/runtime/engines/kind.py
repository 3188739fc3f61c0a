"""What engines there may be: what each can do, and the choice of one with its settings."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import ONE_A_CALL, Batching
from tffc.support.errors import LanguageValueError, MissingExtraError
from tffc.support.extras import installation

if TYPE_CHECKING:
    from tffc.runtime.engines.buffering import Buffering
    from tffc.runtime.engines.engine import ExplainsSpeed
    from tffc.runtime.engines.process import Process


@dataclasses.dataclass(frozen=True, slots=True)
class EngineKind:
    """An engine: its name, how its class is loaded, what it can do, and its texts in help.

    `load` is called when the engine is used.  What it returns is called with a process, `batching`,
    and those of `workers`, `masks_sums`, `shows_clients` and `options` that the engine takes.

    It is told a number of workers if it `takes_workers`.  If it `measures_batches`, it can choose
    their size by measuring, and takes a device for them.  It can mask secure sums between the
    clients of a round if it `masks_sums`, and show what clients' code prints, and its errors, if it
    `shows_clients`.  It runs buffered rounds if it `buffers`, and in simulated time if it
    `simulates`.  `options` describes options of its own, and `workers_option` is the one for
    the number of workers, with {} for the number.  `packages` maps the import names of the packages
    that it needs to their titles; `extra` of tffc installs them.

    Packages offer engines as entry points of the group `tffc.engines`.
    """

    name: str
    load: Callable[[], Callable[..., ExplainsSpeed]]
    summary: str
    takes_workers: bool = False
    measures_batches: bool = False
    masks_sums: bool = False
    shows_clients: bool = False
    buffers: bool = False
    simulates: bool = False
    options: str | None = None
    workers_option: str | None = None
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    extra: str | None = None

    def own_option(self, workers: int | None) -> str | None:
        """Return the engine's own option for a number of workers, if it has one."""
        return self.workers_option and self.workers_option.format(workers)

    def check_installed(self) -> None:
        """Check that the packages that the engine needs are installed.

        Raises:
          MissingExtraError: one is not.
        """
        for package, title in self.packages.items():
            if importlib.util.find_spec(package) is None:
                raise MissingExtraError(
                    "E701",
                    f"{title} is not installed, and the engine {self.name!r} needs it",
                    help=installation(self.extra) if self.extra else f"pip install {package}",
                )


@dataclasses.dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine and its settings, which are as `tffc.run` describes them; `buffering` says
    how its rounds are buffered, and `delays` is the model of simulated time."""

    kind: EngineKind
    workers: int | None = None
    options: Sequence[str] = ()
    batching: Batching = ONE_A_CALL
    masks_sums: bool = False
    shows_clients: bool = False
    groups: ClientGroups | None = None
    buffering: Buffering | None = None
    delays: Delays | None = None

    def check(self, others: Iterable[EngineKind]) -> None:
        """Check that the engine can do what is asked for; errors name `others` that can.

        Raises:
          LanguageValueError: it cannot.
          MissingExtraError: a package that it needs is not installed.
        """
        for ability in ABILITIES:
            if ability.is_asked_for(self) and not ability.is_of(self.kind):
                able = [kind.name for kind in others if ability.is_of(kind)]
                own = self.kind.own_option(self.workers) if ability is WORKERS else None
                options = f", found {' '.join(self.options)}" if ability is OPTIONS else ""
                help = f"choose the engine {' or '.join(able)}, or {ability.instead}"
                raise LanguageValueError(
                    "E747",
                    f"the engine {self.kind.name!r} {ability.lack}{options}",
                    help=f"give an option of its own, such as '{own}'" if own else help,
                )
        self.kind.check_installed()

    def engine(self, process: Process) -> ExplainsSpeed:
        """Return the engine for a process.

        Raises:
          LanguageValueError: its clients are to come in groups, and its form has none.
        """
        if self.groups is not None:
            # Imported late: it loads what runs rounds.
            from tffc.runtime.engines.groups import GroupedEngine

            return GroupedEngine(process, self.groups, self._engine)
        return self._engine(process)

    def _engine(self, process: Process) -> ExplainsSpeed:
        settings: dict[str, Any] = {}
        if self.kind.takes_workers:
            settings["workers"] = self.workers
        if self.kind.masks_sums:
            settings["masks_sums"] = self.masks_sums
        if self.kind.shows_clients:
            settings["shows_clients"] = self.shows_clients
        if self.kind.options is not None:
            settings["options"] = self.options
        return self.kind.load()(process, batching=self.batching, **settings)


@dataclasses.dataclass(frozen=True, slots=True)
class Ability:
    """What some engines can do: which can, which choices ask for it, what an engine without it is
    said to do, and what to do instead."""

    is_of: Callable[[EngineKind], bool]
    is_asked_for: Callable[[EngineChoice], bool]
    lack: str
    instead: str


WORKERS = Ability(
    lambda kind: kind.takes_workers,
    lambda choice: choice.workers is not None,
    "takes no number of workers",
    "let it choose how many work at a time",
)
BATCHES = Ability(
    lambda kind: kind.measures_batches,
    lambda choice: choice.batching.size is None or bool(choice.batching.device),
    "neither measures whether batches pay nor chooses a device for them",
    "give how many clients are in a batch",
)
OPTIONS = Ability(
    lambda kind: kind.options is not None,
    lambda choice: bool(choice.options),
    "takes no options",
    "give no options",
)
MASKED_SUMS = Ability(
    lambda kind: kind.masks_sums,
    lambda choice: choice.masks_sums,
    "adds secure sums unmasked",
    "leave secure sums unmasked",
)
SHOWN_CLIENTS = Ability(
    lambda kind: kind.shows_clients,
    lambda choice: choice.shows_clients,
    "shows nothing of clients",
    "do without",
)
BUFFERS = Ability(
    lambda kind: kind.buffers,
    lambda choice: choice.buffering is not None,
    "runs no buffered rounds",
    "run whole rounds",
)
SIMULATED_TIME = Ability(
    lambda kind: kind.simulates,
    lambda choice: choice.buffering is not None and choice.delays is not None,
    "runs buffered rounds in real time, without a model of delays",
    "give no delays",
)
ABILITIES = (WORKERS, BATCHES, OPTIONS, MASKED_SUMS, SHOWN_CLIENTS, BUFFERS, SIMULATED_TIME)


def _local_engine() -> Callable[..., ExplainsSpeed]:
    from tffc.runtime.engines.local import LocalEngine

    return LocalEngine


LOCAL = EngineKind(
    "local",
    _local_engine,
    "this process",
    takes_workers=True,
    measures_batches=True,
    masks_sums=True,
    shows_clients=True,
    buffers=True,
    simulates=True,
)
"""The engine in this process."""
