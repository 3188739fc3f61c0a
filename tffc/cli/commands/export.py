"""`tffc export`: a bundle, or what was trained with it, as models for other runtimes."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import PATH, consent_option
from tffc.cli.usage import Choice


@click.command("export")
@click.argument("source", metavar="BUNDLE|MODULE:NAME|FILE.pb")
@click.option(
    "--to",
    "kind",
    required=True,
    type=Choice(("saved_model", "tflite", "keras", "flower")),
    help="A SavedModel with a signature a component, a LiteRT model a component, a Keras model, or "
    "a Flower app.",
)
@click.option(
    "--out",
    "-o",
    required=True,
    metavar="PATH",
    type=PATH,
    help="The folder of the models or the app, or the .keras file.",
)
@click.option(
    "--state",
    metavar="STATE",
    type=PATH,
    help="The trained state: its file, or the folder of the run.",
)
@click.option(
    "--part",
    metavar="PATH",
    help="The part of the state that holds the model, such as model or 0/weights; all of it if "
    "not given.",
)
@click.option(
    "--partial", is_flag=True, help="Write what can be exported where some components cannot."
)
@consent_option("As for tffc run: TensorFlow evaluates constant parts of what it loads.")
@click.option("--force", is_flag=True, help="Replace models, or an app, that are there.")
def export_command(**options: Any) -> None:
    """Write the components of a bundle, and what makes the first state, as models.

    As flower, write an app that runs the bundle's rounds on a Flower federation; see
    docs/flower.md.

    A call runs one component and leaves nothing to the next.  Where a component that gives
    something cannot be exported, nothing is written, unless --partial is given.

    With --state, writes a trained model.  For saved_model and tflite, NAME is a TensorFlow
    computation, and the model computes it with the state in the place of its first argument.  For
    keras, NAME is a function that makes a Keras model, which gets the state's weights.

    \b
    Examples:
      tffc export build/training --to saved_model -o models/training/1
      tffc export build/training --to tflite --partial -o lite
      tffc export build/training --to flower -o app
      # The trained model: one that predicts, and one in Keras.
      tffc export examples/keras_averaging/keras_averaging.py:predict \\
          --state build/keras.npz --to saved_model -o models/digits/1
      tffc export examples/keras_averaging/keras_averaging.py:make_model \\
          --state build/keras.npz --to keras -o digits.keras
    """
    from tffc.cli import export

    export.export(**options)
