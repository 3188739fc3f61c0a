"""`tffc export`: a bundle as models for TensorFlow's own runtimes."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from tffc.cli.consent import check_consent, consent_option, tell_effects
from tffc.cli.near import Choice
from tffc.cli.output import say

if TYPE_CHECKING:
    from tffc.ir.nodes import Node

_path = click.Path(path_type=pathlib.Path)


@click.command("export", short_help="Export a bundle to TensorFlow Serving or LiteRT.")
@click.argument("bundle", metavar="BUNDLE", type=_path)
@click.option(
    "--to",
    "kind",
    required=True,
    type=Choice(("saved_model", "tflite")),
    help="One SavedModel with a signature a component, or a LiteRT model a component.",
)
@click.option(
    "--out", "-o", required=True, metavar="DIR", type=_path, help="The folder of the models."
)
@consent_option("As for tffc run: TensorFlow evaluates constant parts of what it loads.")
@click.option("--force", is_flag=True, help="Replace models that are there.")
def export_command(
    bundle: pathlib.Path, kind: str, out: pathlib.Path, allow_effects: frozenset[str], force: bool
) -> None:
    """Writes the components of a bundle, and what makes the first state, as models.

    A call runs one component and leaves nothing to the next.  Components that give nothing or are
    no TensorFlow graph are left out, which stderr tells.

    \b
    Examples:
      tffc export build/training --to saved_model -o models/training/1
      tffc export build/training --to tflite -o lite
    """
    from tffc.backends.bundle import read_bundle
    from tffc.execution.chatter import quiet_start
    from tffc.export.target import check_target, write_models

    content = read_bundle(bundle)
    check_target(out, replace=force)
    parts = content.run_by_rounds()
    check_consent(parts, allow_effects)
    quiet_start()
    files, lines = (_saved_model if kind == "saved_model" else _lite_models)(parts)
    write_models(out, files)
    say(f"wrote {out}: {lines[0]}")
    for line in lines[1:]:
        say(f"  {line}")
    tell_effects(parts)


def _saved_model(components: Mapping[str, Node]) -> tuple[Mapping[str, bytes], list[str]]:
    """The files to write, and what to say about them."""
    from tffc.export.saved_model import FILE, saved_model

    content, linked = saved_model(components)
    shown = [
        f"{name}({', '.join(signature.inputs)}) -> {', '.join(signature.outputs)}"
        for name, signature in linked.signatures.items()
    ]
    count = f"{len(shown)} signature" + ("" if len(shown) == 1 else "s")
    return {FILE: content}, [f"a SavedModel with {count}", *shown, *_left_out(linked.left_out)]


def _lite_models(components: Mapping[str, Node]) -> tuple[Mapping[str, bytes], list[str]]:
    """The files to write, and what to say about them."""
    from tffc.export.tflite import SUFFIX, lite_models

    made = lite_models(components)
    files = {f"{name}{SUFFIX}": model for name, model in made.models.items()}
    count = f"{len(files)} LiteRT model" + ("" if len(files) == 1 else "s")
    shown = [f"{name}{SUFFIX}{_flex(made.flex.get(name, ()))}" for name in made.models]
    return files, [count, *shown, *_left_out(made.left_out)]


def _flex(operations: Sequence[str]) -> str:
    return f" needs flex for {', '.join(operations)}" if operations else ""


def _left_out(reasons: Mapping[str, str]) -> list[str]:
    return [f"left out {name}: {reason}" for name, reason in reasons.items()]
