"""The work of `tffc export`: a bundle as models or an app, or trained models."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Mapping

import click

from tffc.api.exports import models, read_whole
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.cli.consent import check_consent, tell_effects
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say, write_output
from tffc.cli.progress import start_tensorflow, step
from tffc.cli.proving import refuse_forged
from tffc.cli.sources import read_program
from tffc.cli.verify import ask_to_run
from tffc.deploy.export.kind import Exported, Exporter, OfBundle, OfComponents, OfPart, OfState
from tffc.deploy.export.target import Destination, check_exported, write_exported
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
    check: bool,
) -> None:
    """Write a bundle, or the result of training it, as models or as an app, or compare them."""
    exporter = EXPORTS[kind].load()
    to = Destination(out, replaces=force, compares=check)
    if check:
        refuse_without_effect("a check writes nothing", "force")
        if not exporter.repeats:
            raise click.UsageError(
                f"{EXPORTS[kind].summary} cannot be checked: it has the time in it"
            )
    if exporter.of_part is not None:
        reason = f"{kind} writes what is in the state"
        refuse_without_effect(reason, "state", "partial", "allow_effects")
        _export_part(pathlib.Path(source), part or "", exporter, exporter.of_part, to)
        return
    if not exporter.takes_states:
        if state is not None or part is not None:
            raise click.UsageError(
                f"{exporter.holding} starts from the first state: omit --state and --part"
            )
        refuse_without_effect(f"{exporter.holding} holds the whole bundle", "partial")
        refuse_without_effect(f"{exporter.holding} asks for consent when it runs", "allow_effects")
    if state is not None:
        _export_trained(source, kind, exporter, state, part or "", to, allow_effects)
        return
    if not exporter.takes_bundles:
        raise click.UsageError(
            f"{EXPORTS[kind].summary} gets the weights of a state: add --state STATE"
        )
    if part is not None:
        raise click.UsageError("--part selects part of a state: add --state STATE")
    _export_bundle(source, kind, exporter, to, allow_effects, partial=partial)


def _export_trained(
    source: str,
    kind: str,
    exporter: Exporter,
    state: pathlib.Path,
    part: str,
    to: Destination,
    allow_effects: frozenset[str],
) -> None:
    """Write a function or model of a module with a part of a trained state."""
    if os.path.isdir(source):
        raise click.UsageError("--state needs a function: give MODULE:NAME instead of the bundle")
    refuse_without_effect("a trained model has one component", "partial")
    if exporter.of_components is not None:
        to.check_folder(exporter.own, exporter.holding)
        bound = _bound(source, state, part, exporter.component, allow_effects)
        _write_models(bound, kind, exporter.of_components, to, partial=True, bare_names=True)
    elif exporter.of_state is not None:
        reason = f"nothing of a program is loaded for {EXPORTS[kind].summary}"
        refuse_without_effect(reason, "allow_effects")
        _export_state(source, state, part, exporter, exporter.of_state, to)


def _export_bundle(
    source: str,
    kind: str,
    exporter: Exporter,
    to: Destination,
    allow_effects: frozenset[str],
    *,
    partial: bool,
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
    to.check_folder(exporter.own, exporter.holding)
    if of_components is not None:
        components = bundle.run_by_rounds()
        check_consent(components, allow_effects)
        _write_models(components, kind, of_components, to, partial=partial)
    elif exporter.of_bundle is not None:
        _write_app(bundle, exporter.of_bundle, to)


def _write_app(bundle: Bundle, of_bundle: OfBundle, to: Destination) -> None:
    _deliver(of_bundle(bundle, to.path), to)
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
    to: Destination,
) -> None:
    """Write the model that a function makes, with the weights of a part of a state, as a file.

    Raises:
      TffcError: the function, the state or the model is refused.
    """
    if to.path.suffix != exporter.suffix:
        raise click.UsageError(
            f"a Keras model is a file whose name ends in {exporter.suffix}, not {to.path}"
        )
    to.check_file(exporter.suffix)
    weights = find_part(read_whole(state), part)
    start_tensorflow()
    # Output of the user's code and of Keras must not mix with data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        exported = of_state(target, weights)
    _deliver(exported, to)


def _export_part(
    state: pathlib.Path,
    part: str,
    exporter: Exporter,
    of_part: OfPart,
    to: Destination,
) -> None:
    """Write the arrays of a part of a state as a file.

    Raises:
      TffcError: the state or its part is refused.
    """
    to.check_file(exporter.suffix)
    _deliver(of_part(find_part(read_whole(state), part)), to)


def _write_models(
    components: Mapping[str, Node],
    kind: str,
    of_components: OfComponents,
    to: Destination,
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
    _deliver(exported, to)
    tell_effects(components)


def _deliver(exported: Exported, to: Destination) -> None:
    """Write an export, or compare it with what is there, and report that.

    Raises:
      TffcError: it cannot be written, or something else is there.
    """
    if to.compares:
        check_exported(to.path, exported.files)
        say(f"{to.path} holds what this exports")
        return
    if "" in exported.files:
        write_output(to.path, exported.files[""])
    else:
        write_exported(to.path, exported.files)
    say(f"wrote {to.path}: {exported.summary}")
    omitted = (f"left out {name}: {reason}" for name, reason in exported.left_out.items())
    for line in (*exported.lines, *omitted):
        say(f"  {line}")
