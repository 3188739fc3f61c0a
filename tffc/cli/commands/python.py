"""`tffc python`: run a script with tffc under the name of TensorFlow Federated."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from tffc.cli.options import tff_source_option
from tffc.support.errors import LoadError
from tffc.support.near import near_file


@click.command(
    "python", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the dotted name of a module.")
@click.argument("script", metavar="SCRIPT", type=click.Path())
@click.argument("arguments", metavar="[ARG...]", nargs=-1, type=click.UNPROCESSED)
@tff_source_option
def python_command(is_module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run a script as `python SCRIPT` does, where `import tensorflow_federated` gives tffc.

    Programs written for TensorFlow Federated run unchanged. If tf_keras is installed, tf.keras is
    Keras 2 in the script, as it was for TensorFlow Federated, unless the environment variable
    TF_USE_LEGACY_KERAS is set.

    \b
    Examples:
      tffc python examples/average.py
      tffc python examples/average.py 1.5 2.5
    """
    # Imported late: it may load much.
    from tffc.cli.script import command

    if not is_module and not os.path.isfile(script):
        refused = f"{script} is a folder" if os.path.isdir(script) else f"there is no file {script}"
        help = near_file(script) or "give the path of a Python script, or -m and a module"
        raise LoadError("E434", refused, help=help)
    words = command([*(["-m"] if is_module else []), script, *arguments])
    if os.name == "nt":
        sys.exit(subprocess.call(words))
    # The script has the process to itself: its signals, its streams and its exit code.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], words)
