"""The work of `tffc export`: a bundle as models or an app, or trained models."""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Mapping

import click

from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.consent import check_consent, tell_effects
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import counted, say, write_output
from tffc.cli.progress import start_tensorflow, step
from tffc.cli.proving import refuse_forged
from tffc.cli.sources import read_program
from tffc.cli.verify import ask_to_run
from tffc.deploy.export.saved_model import DEFAULT, FILE, saved_model
from tffc.deploy.export.signatures import missing
from tffc.deploy.export.target import check_target, write_exported
from tffc.deploy.export.tflite import SUFFIX, lite_models
from tffc.deploy.export.trained import StatePart, bind_part, find_part
from tffc.language.nodes import Node
from tffc.runtime.engines.state import read_state, read_type
from tffc.runtime.runs.run_folder import find_state
from tffc.support.errors import ExportError


def export(
    source: str,
    kind: str,
    out: pathlib.Path,
    state: pathlib.Path | None,
    part: str | None,
    partial: bool,
    allow_effects: frozenset[str],
    force: bool,
) -> None:
    """Write a bundle, or the result of training it, as models or as an app."""
    if kind == "flower":
        _export_app(source, state, part, out, force=force)
        return
    if state is not None:
        if pathlib.Path(source).is_dir():
            raise click.UsageError(
                "--state needs a function: give MODULE:NAME instead of the bundle"
            )
        refuse_without_effect("a trained model has one component", "partial")
        if kind == "keras":
            refuse_without_effect(
                "nothing of a program is loaded for a Keras model", "allow_effects"
            )
            _export_keras(source, state, part or "", out, replace=force)
        else:
            _export_function(source, state, part or "", kind, out, allow_effects, replace=force)
        return
    if kind == "keras":
        raise click.UsageError("a Keras model gets the weights of a state: add --state STATE")
    if part is not None:
        raise click.UsageError("--part selects part of a state: add --state STATE")
    if ":" in source and not pathlib.Path(source).exists():
        raise click.UsageError(
            f"{source} is a function, which is exported with a trained state: add --state STATE"
        )
    _export_bundle(pathlib.Path(source), kind, out, allow_effects, partial=partial, force=force)


def _export_app(
    source: str, state: pathlib.Path | None, part: str | None, out: pathlib.Path, *, force: bool
) -> None:
    if state is not None or part is not None:
        raise click.UsageError("an app starts from the first state: omit --state and --part")
    refuse_without_effect("an app holds the whole bundle", "partial")
    refuse_without_effect("consent is given when the app runs", "allow_effects")
    from tffc.deploy.flower import app_folder

    step(f"reading {source}")
    bundle = read_bundle(pathlib.Path(source))
    refuse_forged(source, bundle)
    check_target(out, replace=force, own=app_folder.FILES, holding="an app")
    write_exported(out, app_folder.app_files(bundle, app_folder.project_name(out)))
    say(f"wrote {out}: a Flower app of {bundle.form}")
    tell_effects(bundle.run_by_rounds())


def _export_bundle(
    bundle: pathlib.Path,
    kind: str,
    out: pathlib.Path,
    allow_effects: frozenset[str],
    *,
    partial: bool,
    force: bool,
) -> None:
    step(f"reading {bundle}")
    content = read_bundle(bundle)
    refuse_forged(str(bundle), content)
    check_target(out, replace=force)
    parts = content.run_by_rounds()
    check_consent(parts, allow_effects)
    _write_models(parts, kind, out, partial=partial)


def _export_function(
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
    _write_models(bound, kind, out, partial=True, bare_names=True)


def _export_keras(
    target: str, state: pathlib.Path, part: str, out: pathlib.Path, *, replace: bool
) -> None:
    """Write the Keras model that a function makes, with the weights of a part of a state.

    Raises:
      TffcError: the function, the state or the model is refused.
    """
    from tffc.deploy.export import keras

    if out.suffix != keras.SUFFIX:
        raise click.UsageError(
            f"a Keras model is a file whose name ends in {keras.SUFFIX}, not {out}"
        )
    if out.exists() and not replace:
        raise ExportError(
            "E956",
            f"{out} already exists",
            help="replace it, or name another file",
            remedy="replace",
        )
    found = find_part(_read_state(state), part)
    start_tensorflow()
    # Output of the user's code and of Keras must not mix with data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        model = keras.make_model(target)
        placed = keras.set_weights(model, found)
        content = keras.save_model(model)
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


def _write_models(
    components: Mapping[str, Node],
    kind: str,
    out: pathlib.Path,
    *,
    partial: bool,
    bare_names: bool = False,
) -> None:
    """Write components to a folder as models of a kind, `saved_model` or `tflite`, and report it.

    `tffc.deploy.export.signatures` describes `bare_names`.

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
        left_out = made.left_out
        files = {f"{name}{SUFFIX}": model for name, model in made.models.items()}
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
