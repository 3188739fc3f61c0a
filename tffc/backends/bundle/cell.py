"""Bundles in the cells of notebooks: their components, where they run, and their sizes."""

from __future__ import annotations

import dataclasses
import pathlib

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import load_form
from tffc.language import wire
from tffc.language.nodes import Compiled, Node
from tffc.support.cell import cell
from tffc.support.errors import OversizeError

TEMPLATE = pathlib.Path(__file__).with_suffix(".html")

SHORT, LONG = 60, 2000
"""The most characters of a type that are shown folded and unfolded."""

KINDS = {"tensorflow": "TensorFlow graph", "xla": "XLA module"}


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramRow:
    """A program of a bundle: where it runs, what it is, and how large its message is."""

    name: str
    side: str
    kind: str
    size: str
    short: str
    type: str


def bundle_cell(bundle: Bundle, name: str = "") -> str:
    """Return a bundle as HTML."""
    sides = {
        component: field["side"].value
        for component, field in load_form(bundle.form).component_fields().items()
    }
    sizes: list[int] = []
    parts: list[ProgramRow] = []
    for stem, program in bundle.programs().items():
        component = stem.rpartition("/")[2]
        size = _size(program)
        sizes.append(size or 0)
        type = str(program.type)
        parts.append(
            ProgramRow(
                component,
                sides.get(component, "before the first round" if component == "initialize" else ""),
                _kind(program),
                "too large" if size is None else f"{size:,}",
                type if len(type) <= SHORT else f"{type[: SHORT - 1]}…",
                type if len(type) <= LONG else f"{type[: LONG - 1]}…",
            )
        )
    return cell(TEMPLATE, name=name, bundle=bundle, parts=parts, total=f"{sum(sizes):,}")


def _size(program: Node) -> int | None:
    try:
        return len(wire.to_bytes(program, leaves=False))
    except OversizeError:
        return None


def _kind(program: Node) -> str:
    if isinstance(program, Compiled):
        return KINDS.get(program.kind, program.kind)
    return "program of the language"
