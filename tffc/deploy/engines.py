"""The table of engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tffc.deploy.beam import BEAM
from tffc.deploy.ray import RAY
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import ONE_A_CALL, Batching
from tffc.runtime.engines.kind import LOCAL, EngineChoice, EngineKind
from tffc.support.errors import LanguageValueError
from tffc.support.plugins import PluginGroup, PluginTable

if TYPE_CHECKING:
    from tffc.runtime.engines.engine import ExplainsSpeed
    from tffc.runtime.engines.process import Process

GROUP = PluginGroup("tffc.engines", "engine", EngineKind, LanguageValueError)

ENGINES = PluginTable(GROUP, (LOCAL, BEAM, RAY))
"""The engines by name."""


def choose_engine(
    name: str,
    workers: int | None = None,
    options: Sequence[str] = (),
    batching: Batching = ONE_A_CALL,
    *,
    masks_sums: bool = False,
    shows_clients: bool = False,
    groups: ClientGroups | None = None,
    buffering: Buffering | None = None,
    delays: Delays | None = None,
) -> EngineChoice:
    """Return the choice of an engine by its name, checked.

    Raises:
      LanguageValueError: there is no such engine, or it cannot do what is asked for.
      MissingExtraError: a package that it needs is not installed.
    """
    choice = EngineChoice(
        ENGINES.find(name, "E706"),
        workers,
        options,
        batching,
        masks_sums=masks_sums,
        shows_clients=shows_clients,
        groups=groups,
        buffering=buffering,
        delays=delays,
    )
    choice.check(ENGINES.own.values())
    return choice


def make_engine(
    name: str,
    process: Process,
    workers: int | None = None,
    options: Sequence[str] = (),
    batching: Batching = ONE_A_CALL,
    *,
    masks_sums: bool = False,
    shows_clients: bool = False,
) -> ExplainsSpeed:
    """Return the engine of a name for a process; arguments and errors are those of
    `choose_engine`."""
    choice = choose_engine(
        name, workers, options, batching, masks_sums=masks_sums, shows_clients=shows_clients
    )
    return choice.engine(process)
