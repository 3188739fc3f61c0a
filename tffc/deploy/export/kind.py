"""What can be exported, and to what: models of components, models of a trained state, its arrays,
an app."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tffc.deploy.export.target import MODELS

if TYPE_CHECKING:
    from tffc.backends.bundle.bundle import Bundle
    from tffc.deploy.export.trained import StatePart
    from tffc.language.nodes import Node


@dataclasses.dataclass(frozen=True, slots=True)
class Exported:
    """The files of an export by their paths in its folder, and what to report of them.

    `summary` says what was written, `lines` are about single models, and `left_out` are the
    components that have none, each with the reason.  An export to a single file has the path "".
    """

    files: Mapping[str, bytes]
    summary: str
    lines: Sequence[str] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name or 'one file'}: {len(d)} bytes" for name, d in self.files.items())
        return f"<{self.summary}; {sizes}>"


OfComponents: TypeAlias = "Callable[[Mapping[str, Node], bool], Exported]"
"""Exports components by name; the inputs of a model are named without its name if the second
argument is true."""

OfBundle: TypeAlias = "Callable[[Bundle, pathlib.Path], Exported]"
"""Exports a bundle to a folder, which gives the app its name."""

OfState: TypeAlias = "Callable[[str | Callable[[], object], StatePart], Exported]"
"""Exports a part of a trained state as the model that a function makes, which is given itself or as
`MODULE:NAME`."""

OfPart: TypeAlias = "Callable[[StatePart], Exported]"
"""Exports the arrays of a part of a trained state, without a program."""


@dataclasses.dataclass(frozen=True, slots=True)
class Exporter:
    """How one kind of export is made; one of the functions is enough.

    `component` is what a trained function is called in its model.  `own` matches the files of an
    earlier export, which may be replaced, and `holding` says what they are.  `suffix` is that of
    the file, if the export is a file.  Unless it `repeats`, the same export gives other bytes.
    """

    of_components: OfComponents | None = None
    of_bundle: OfBundle | None = None
    of_state: OfState | None = None
    of_part: OfPart | None = None
    component: str = "model"
    repeats: bool = True
    own: re.Pattern[str] = MODELS
    holding: str = "models"
    suffix: str = ""

    @property
    def takes_states(self) -> bool:
        """Whether it exports something with a trained state."""
        return self.of_components is not None or self.of_state is not None

    @property
    def takes_bundles(self) -> bool:
        """Whether it exports a bundle or its components."""
        return self.of_components is not None or self.of_bundle is not None


@dataclasses.dataclass(frozen=True, slots=True)
class ExportKind:
    """A kind of export: its name, its text in help, and how its exporter is loaded.

    Packages offer exports as entry points of the group `tffc.exports`.
    """

    name: str
    summary: str
    load: Callable[[], Exporter]
