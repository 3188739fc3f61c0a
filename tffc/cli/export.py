"""The work of `tffc export`."""

from __future__ import annotations

import pathlib

import click

from tffc.backends.bundle.bundle import read_bundle
from tffc.cli import trained
from tffc.cli.consent import check_consent, tell_effects
from tffc.cli.models import write_models
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say
from tffc.cli.progress import step
from tffc.export.target import check_target, write_exported


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
            trained.export_keras(source, state, part or "", out, replace=force)
        else:
            trained.export_function(
                source, state, part or "", kind, out, allow_effects, replace=force
            )
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
    refuse_without_effect("whoever runs the app consents", "allow_effects")
    from tffc.flower import app_folder

    step(f"reading {source}")
    bundle = read_bundle(pathlib.Path(source))
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
    check_target(out, replace=force)
    parts = content.run_by_rounds()
    check_consent(parts, allow_effects)
    write_models(parts, kind, out, partial=partial)
