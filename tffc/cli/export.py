"""The work of `tffc export`: a bundle as models or an app, or trained models."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Mapping

import click

from tffc.api.exports import check_file, models, read_whole
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.cli.consent import check_consent, tell_effects
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say, write_output
from tffc.cli.progress import start_tensorflow, step
from tffc.cli.proving import refuse_forged
from tffc.cli.sources import read_program
from tffc.cli.verify import ask_to_run
from tffc.deploy.export.kind import Exported, Exporter, OfBundle, OfComponents, OfPart, OfState
from tffc.deploy.export.target import check_target, write_exported
from tffc.deploy.export.trained import bind_part, find_part
from tffc.deploy.exports import EXPORTS
from tffc.language.nodes import Node


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
    exporter = EXPORTS[kind].load()
    if exporter.of_part is not None:
        reason = f"{kind} writes what is in the state"
        refuse_without_effect(reason, "state", "partial", "allow_effects")
        _export_part(pathlib.Path(source), part or "", exporter, exporter.of_part, out, force=force)
        return
    if not exporter.takes_states:
        if state is not None or part is not None:
            raise click.UsageError(
                f"{exporter.holding} starts from the first state: omit --state and --part"
            )
        refuse_without_effect(f"{exporter.holding} holds the whole bundle", "partial")
        refuse_without_effect(f"{exporter.holding} asks for consent when it runs", "allow_effects")
    if state is not None:
        _export_trained(source, kind, exporter, state, part or "", out, allow_effects, force=force)
        return
    if not exporter.takes_bundles:
        raise click.UsageError(
            f"{EXPORTS[kind].summary} gets the weights of a state: add --state STATE"
        )
    if part is not None:
        raise click.UsageError("--part selects part of a state: add --state STATE")
    _export_bundle(source, kind, exporter, out, allow_effects, partial=partial, force=force)


def _export_trained(
    source: str,
    kind: str,
    exporter: Exporter,
    state: pathlib.Path,
    part: str,
    out: pathlib.Path,
    allow_effects: frozenset[str],
    *,
    force: bool,
) -> None:
    """Write a function or model of a module with a part of a trained state."""
    if os.path.isdir(source):
        raise click.UsageError("--state needs a function: give MODULE:NAME instead of the bundle")
    refuse_without_effect("a trained model has one component", "partial")
    if exporter.of_components is not None:
        check_target(out, replace=force, own=exporter.own, holding=exporter.holding)
        bound = _bound(source, state, part, exporter.component, allow_effects)
        _write_models(bound, kind, exporter.of_components, out, partial=True, bare_names=True)
    elif exporter.of_state is not None:
        reason = f"nothing of a program is loaded for {EXPORTS[kind].summary}"
        refuse_without_effect(reason, "allow_effects")
        _export_state(source, state, part, exporter, exporter.of_state, out, replace=force)


def _export_bundle(
    source: str,
    kind: str,
    exporter: Exporter,
    out: pathlib.Path,
    allow_effects: frozenset[str],
    *,
    partial: bool,
    force: bool,
) -> None:
    """Write the components of a bundle as models, or the whole of it as an app."""
    of_components = exporter.of_components
    if of_components is not None and ":" in source and not os.path.exists(source):
        raise click.UsageError(
            f"{source} is a function, which is exported with a trained state: add --state STATE"
        )
    step(f"reading {source}")
    bundle = read_bundle(pathlib.Path(source))
    refuse_forged(source, bundle)
    check_target(out, replace=force, own=exporter.own, holding=exporter.holding)
    if of_components is not None:
        components = bundle.run_by_rounds()
        check_consent(components, allow_effects)
        _write_models(components, kind, of_components, out, partial=partial)
    elif exporter.of_bundle is not None:
        _write_app(bundle, exporter.of_bundle, out)


def _write_app(bundle: Bundle, of_bundle: OfBundle, out: pathlib.Path) -> None:
    exported = of_bundle(bundle, out)
    write_exported(out, exported.files)
    _tell(exported, out)
    tell_effects(bundle.run_by_rounds())


def _bound(
    source: str,
    state: pathlib.Path,
    part: str,
    name: str,
    allow_effects: frozenset[str],
) -> dict[str, Node]:
    """Return a TensorFlow computation, by its name in the model, with a part of a state bound to
    its first argument.

    Raises:
      TffcError: the computation or the state is refused.
    """
    whole = read_whole(state)
    weights = find_part(whole, part)
    program = read_program(source)
    ask_to_run(program, allow_effects)
    return {name: bind_part(program.computation, weights, whole)}


def _export_state(
    target: str,
    state: pathlib.Path,
    part: str,
    exporter: Exporter,
    of_state: OfState,
    out: pathlib.Path,
    *,
    replace: bool,
) -> None:
    """Write the model that a function makes, with the weights of a part of a state, as a file.

    Raises:
      TffcError: the function, the state or the model is refused.
    """
    if out.suffix != exporter.suffix:
        raise click.UsageError(
            f"a Keras model is a file whose name ends in {exporter.suffix}, not {out}"
        )
    check_file(out, exporter, replace=replace)
    weights = find_part(read_whole(state), part)
    start_tensorflow()
    # Output of the user's code and of Keras must not mix with data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        exported = of_state(target, weights)
    write_output(out, exported.files[""])
    _tell(exported, out)


def _export_part(
    state: pathlib.Path,
    part: str,
    exporter: Exporter,
    of_part: OfPart,
    out: pathlib.Path,
    *,
    force: bool,
) -> None:
    """Write the arrays of a part of a state as a file.

    Raises:
      TffcError: the state or its part is refused.
    """
    check_file(out, exporter, replace=force)
    exported = of_part(find_part(read_whole(state), part))
    write_output(out, exported.files[""])
    _tell(exported, out)


def _write_models(
    components: Mapping[str, Node],
    kind: str,
    of_components: OfComponents,
    out: pathlib.Path,
    *,
    partial: bool,
    bare_names: bool = False,
) -> None:
    """Write components to a folder as models of a kind, and report it.

    `tffc.deploy.export.signatures` describes `bare_names`.

    Raises:
      ExportError: no component can be exported or, unless `partial`, one that has results cannot.
      GraphError: a component is malformed.
    """
    start_tensorflow()
    step(f"exporting to {kind}")
    exported = models(components, of_components, partial=partial, bare_names=bare_names)
    write_exported(out, exported.files)
    _tell(exported, out)
    tell_effects(components)


def _tell(exported: Exported, out: pathlib.Path) -> None:
    say(f"wrote {out}: {exported.summary}")
    omitted = (f"left out {name}: {reason}" for name, reason in exported.left_out.items())
    for line in (*exported.lines, *omitted):
        say(f"  {line}")
