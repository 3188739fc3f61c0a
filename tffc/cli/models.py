"""The models that `tffc export` writes, and its report about them."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from tffc.cli.output import counted, say
from tffc.export.saved_model import FILE, saved_model
from tffc.export.tflite import SUFFIX, lite_models
from tffc.ir.nodes import Node


@dataclasses.dataclass(frozen=True, slots=True)
class Models:
    """The files of models, a summary, a line about each, and why other components have none."""

    files: Mapping[str, bytes]
    summary: str
    shown: Sequence[str]
    left_out: Mapping[str, str]

    def tell(self, out: pathlib.Path) -> None:
        """Report what was written to the folder `out`."""
        say(f"wrote {out}: {self.summary}")
        for line in self.shown:
            say(f"  {line}")
        for name, reason in self.left_out.items():
            say(f"  left out {name}: {reason}")


def make_models(components: Mapping[str, Node], kind: str, *, bare_names: bool = False) -> Models:
    """Return the components as models of a kind, `saved_model` or `tflite`.

    `tffc.export.signatures` describes `bare_names`.

    Raises:
      ExportError: no component can be exported.
      GraphError: a component is malformed.
    """
    make = _saved_model if kind == "saved_model" else _lite_models
    return make(components, bare_names)


def _saved_model(components: Mapping[str, Node], bare_names: bool) -> Models:
    content, linked = saved_model(components, bare_names=bare_names)
    shown = [
        f"{name}({', '.join(signature.inputs)}) -> {', '.join(signature.outputs)}"
        for name, signature in linked.signatures.items()
    ]
    summary = f"a SavedModel with {counted(len(shown), 'signature')}"
    return Models({FILE: content}, summary, shown, linked.left_out)


def _lite_models(components: Mapping[str, Node], bare_names: bool) -> Models:
    made = lite_models(components, bare_names=bare_names)
    files = {f"{name}{SUFFIX}": model for name, model in made.models.items()}
    summary = counted(len(files), "LiteRT model")
    shown = [f"{name}{SUFFIX}{_flex(made.flex.get(name, ()))}" for name in made.models]
    return Models(files, summary, shown, made.left_out)


def _flex(operations: Sequence[str]) -> str:
    return f" needs flex for {', '.join(operations)}" if operations else ""
