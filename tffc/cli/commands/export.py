"""`tffc export`: export a bundle or a trained model to other runtimes."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.completion import complete_program
from tffc.cli.options import (
    consent_option,
    path_option,
    tff_source_option,
)
from tffc.cli.usage import Member
from tffc.deploy.exports import EXPORTS


def _listed() -> str:
    """Return what can be exported to, as a sentence."""
    *summaries, last = [kind.summary for kind in EXPORTS.own.values()]
    text = f"{', '.join(summaries)}, or {last}."
    return text[0].upper() + text[1:]


@click.command("export")
@click.argument(
    "source", metavar="BUNDLE|MODULE:NAME|FILE.pb|STATE", shell_complete=complete_program
)
@click.option(
    "--to",
    "kind",
    required=True,
    type=Member(EXPORTS),
    help=_listed(),
)
@path_option(
    "--out",
    "-o",
    required=True,
    metavar="PATH",
    help="The folder for the models, app or job, or the .keras or .safetensors file.",
)
@path_option("--state", metavar="STATE", help="The trained state: its file or its run folder.")
@click.option(
    "--part",
    metavar="PATH",
    help="The part of the state that holds the model, such as model or 0/weights; the whole state "
    "by default.",
)
@click.option("--partial", is_flag=True, help="Write components even if others cannot be exported.")
@consent_option("As for tffc run: loading a graph makes TensorFlow evaluate its constants.")
@click.option("--force", is_flag=True, help="Replace existing models, app or job.")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing: refuse PATH, or a file of such a folder, if it holds anything else.",
)
@tff_source_option
def export_command(**options: Any) -> None:
    """Write the components of a bundle, and the computation of the first state, as models.

    A bundle whose components are proved to compute something else than its program is refused.

    With --to flower, writes an app that runs the bundle's rounds on a Flower federation, and with
    --to nvflare a job for one of NVIDIA FLARE; see docs/flower.md and docs/nvflare.md.

    Each call of a model runs one component, independently of other calls. If a component with a
    result cannot be exported, nothing is written unless --partial is given.

    With --state, writes a trained model. For saved_model and tflite, NAME is a TensorFlow
    computation, and the model computes it with the state as its first argument. For keras, NAME is
    a function that creates a Keras model, which gets the weights of the state.

    With --check and the options of an export, compares what it wrote with what it would write: an
    exported part that was changed is refused.

    With --to safetensors, writes the arrays of STATE, the file of a state or a run folder.

    \b
    Examples:
      tffc export build/training --to saved_model -o models/training/1
      tffc export build/training --to tflite --partial -o lite
      tffc export build/training --to flower -o app
      # Is what came to a device what this bundle exports?
      tffc export build/training --to tflite --partial -o lite/work.tflite --check
      # Trained models: a predict function, and a Keras model.
      tffc export examples/keras_averaging/keras_averaging.py:predict \\
          --state build/keras.npz --to saved_model -o models/digits/1
      tffc export examples/keras_averaging/keras_averaging.py:make_model \\
          --state build/keras.npz --to keras -o digits.keras
      # The weights, for PyTorch and others.
      tffc export build/keras.npz --to safetensors -o digits.safetensors
    """
    from tffc.cli import export

    export.export(**options)
