"""Writing models of components, and the report about them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from tffc.cli.consent import tell_effects
from tffc.cli.output import counted, say
from tffc.cli.progress import start_tensorflow, step
from tffc.errors import ExportError
from tffc.export.saved_model import FILE, saved_model
from tffc.export.signatures import missing
from tffc.export.target import write_exported
from tffc.export.tflite import SUFFIX, lite_models
from tffc.ir.nodes import Node


def write_models(
    components: Mapping[str, Node],
    kind: str,
    out: pathlib.Path,
    *,
    partial: bool,
    bare_names: bool = False,
) -> None:
    """Write components to a folder as models of a kind, `saved_model` or `tflite`, and report it.

    `tffc.export.signatures` describes `bare_names`.

    Raises:
      ExportError: no component can be exported or, unless `partial`, one that has results cannot.
      GraphError: a component is malformed.
    """
    start_tensorflow()
    step(f"exporting to {kind}")
    files: dict[str, bytes]
    if kind == "saved_model":
        content, linked = saved_model(components, bare_names=bare_names)
        files, left_out = {FILE: content}, linked.left_out
        shown = [
            f"{name}({', '.join(signature.inputs)}) -> {', '.join(signature.outputs)}"
            for name, signature in linked.signatures.items()
        ]
        summary = f"a SavedModel with {counted(len(shown), 'signature')}"
    else:
        made = lite_models(components, bare_names=bare_names)
        files, left_out = (
            {f"{name}{SUFFIX}": each for name, each in made.models.items()},
            made.left_out,
        )
        needs = {name: f" needs flex for {', '.join(ops)}" for name, ops in made.flex.items()}
        shown = [f"{name}{SUFFIX}{needs.get(name, '')}" for name in made.models]
        summary = counted(len(files), "LiteRT model")
    if not partial:
        _check_complete(left_out, len(shown))
    write_exported(out, files)
    say(f"wrote {out}: {summary}")
    for line in (*shown, *(f"left out {name}: {reason}" for name, reason in left_out.items())):
        say(f"  {line}")
    tell_effects(components)


def _check_complete(left_out: Mapping[str, str], written: int) -> None:
    """Check that the export leaves out no component that has results.

    Raises:
      ExportError: it does.
    """
    lost = missing(left_out)
    if lost:
        raise ExportError(
            "E870",
            f"{len(lost)} of {len(lost) + written} components cannot be exported, and nothing was "
            "written",
            notes=tuple(f"{name}: {reason}" for name, reason in lost.items()),
            help="write the other" + ("" if written == 1 else f" {written}") + " with --partial",
        )
