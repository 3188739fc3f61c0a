"""Exporting trained models: a saved state together with a function of the user's."""

from __future__ import annotations

import contextlib
import pathlib
import sys

import click

from tffc.cli.models import write_models
from tffc.cli.output import say, write_output
from tffc.cli.progress import start_tensorflow
from tffc.cli.sources import read_program
from tffc.cli.verify import ask_to_run
from tffc.engines.run_folder import find_state
from tffc.engines.state import read_state, read_type
from tffc.errors import ExportError
from tffc.export.saved_model import DEFAULT
from tffc.export.target import check_target
from tffc.export.trained import StatePart, bind_part, find_part


def export_function(
    source: str,
    state: pathlib.Path,
    part: str,
    kind: str,
    out: pathlib.Path,
    allow_effects: frozenset[str],
    *,
    replace: bool,
) -> None:
    """Write a TensorFlow computation as a model, with a part of a state bound to its first
    argument.

    Raises:
      TffcError: the computation, the state or the model is refused.
    """
    check_target(out, replace=replace)
    whole = _read_state(state)
    found = find_part(whole, part)
    program = read_program(source)
    ask_to_run(program, allow_effects)
    name = DEFAULT if kind == "saved_model" else "model"
    bound = {name: bind_part(program.computation, found, whole)}
    write_models(bound, kind, out, partial=True, bare_names=True)


def export_keras(
    target: str, state: pathlib.Path, part: str, out: pathlib.Path, *, replace: bool
) -> None:
    """Write the Keras model that a function makes, with the weights of a part of a state.

    Raises:
      TffcError: the function, the state or the model is refused.
    """
    from tffc.export.keras import SUFFIX, make_model, save_model, set_weights

    if out.suffix != SUFFIX:
        raise click.UsageError(f"a Keras model is a file whose name ends in {SUFFIX}, not {out}")
    if out.exists() and not replace:
        raise ExportError(
            "E876",
            f"{out} already exists",
            help="add --force to replace it, or name another file",
        )
    found = find_part(_read_state(state), part)
    start_tensorflow()
    # Output of the user's code and of Keras must not mix with data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        model = make_model(target)
        placed = set_weights(model, found)
        content = save_model(model)
    write_output(out, content)
    how = "by name" if placed.by_name else "in their order"
    say(f"wrote {out}: a Keras model with {len(placed.pairs)} weights, given {how}")
    for name, weight in placed.pairs:
        say(f"  {weight} <- {name}")


def _read_state(path: pathlib.Path) -> StatePart:
    """Return the whole state in a file or in the folder of a run.

    Raises:
      DataError: there is none.
    """
    file = find_state(path)
    type = read_type(file)
    return StatePart("", "", type, read_state(file, type, "").value)
