"""What trackers there may be, and what one gets of a run."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
from collections.abc import Callable, Mapping
from typing import Literal, Protocol, TypeAlias

from tffc.support.errors import MissingExtraError

Ending: TypeAlias = Literal["finished", "stopped", "failed"]
"""How a run ended: with its last round, by somebody, or by an error."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run from its start: its name, its parameters, and its folder if it has
    one."""

    name: str
    parameters: Mapping[str, str]
    folder: pathlib.Path | None


class Tracker(Protocol):
    """A run in another program.  Whatever one of its members raises ends no round."""

    @property
    def run(self) -> str:
        """The program's name for the run, by which it is continued; empty if it needs none."""
        ...

    @property
    def place(self) -> str:
        """Where people find the run."""
        ...

    def add(self, round: int, numbers: Mapping[str, float]) -> None:
        """Add the numbers of a round, such as `metrics/loss`."""
        ...

    def end(self, ending: Ending, report: str | None) -> None:
        """End the run; `report` is an HTML page about it, if it has any rounds."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class TrackerKind:
    """A tracker: its name, its title in messages, and how its class is loaded.

    What `load` returns is called with the facts of a run and with `Tracker.run` of the one that it
    continues, or None.  `package` is the import name of the package that it needs, and `install`
    what pip installs for it.  If it `needs_folder`, it writes to the folder of the run.

    Packages offer trackers as entry points of the group `tffc.trackers`.
    """

    name: str
    title: str
    load: Callable[[], Callable[[RunFacts, str | None], Tracker]]
    package: str | None = None
    install: str | None = None
    needs_folder: bool = False

    def check_installed(self) -> None:
        """Check that the package that the tracker needs is installed.

        Raises:
          MissingExtraError: it is not.
        """
        if self.package is None:
            return
        spec = importlib.util.find_spec(self.package)
        # A folder of that name, such as those in which W&B keeps runs, is a package without origin.
        if spec is None or spec.origin is None:
            raise MissingExtraError(
                "E701",
                f"{self.title} is not installed, and its log is written by it",
                help=f"pip install {self.install or self.package}",
            )
