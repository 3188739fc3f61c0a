"""Exporting bundles and trained models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tffc.api.boundary import public
from tffc.api.opened_bundles import opened
from tffc.api.programs import Source, program_of
from tffc.api.runs import FinishedRound, Run
from tffc.assurance.audit.bundles import refuse_forged
from tffc.backends.bundle.bundle import Bundle
from tffc.deploy.export.kind import Exported, Exporter, OfComponents
from tffc.deploy.export.signatures import missing
from tffc.deploy.export.target import Destination, check_exported, write_exported
from tffc.deploy.export.trained import StatePart, bind_part, find_part
from tffc.deploy.exports import EXPORTS
from tffc.frontend.conversion import infer_type
from tffc.language.nodes import Node
from tffc.language.values.concrete import to_value
from tffc.runtime.effects.consent import check_consent, read_kinds
from tffc.runtime.engines.state import read_state, read_type
from tffc.runtime.runs.run_folder import find_state
from tffc.support.errors import ExportError, LanguageTypeError, LanguageValueError
from tffc.support.files import atomic
from tffc.support.guards import is_path


@public
def export(
    source: Bundle | Source | Callable[[], Any] | Run | FinishedRound | Mapping[str, Any],
    to: str,
    out: str | os.PathLike[str],
    *,
    state: Any = None,
    part: str = "",
    partial: bool = False,
    replace: bool = False,
    check: bool = False,
    allow_effects: Collection[str] = (),
) -> Exported:
    """Write the components of a bundle as models, a bundle as an app, or a trained model.

    `to` is "saved_model", "tflite", "keras", "safetensors", "flower", "nvflare" or an export of an
    installed package, and `out` the new folder, or the `.keras` or `.safetensors` file.  Without
    `state`, `source` is a bundle or its folder.  With one, it is a TensorFlow computation whose
    first argument is the state or its `part`, such as "model" or "0/weights"; for "keras", it is a
    function that makes the model, which gets the weights.  `state` is a run, one of its rounds, a
    state, or the path of one.  For "safetensors", the state itself is the `source`.

    Nothing is written if a component that has a result cannot be exported, unless `partial` is set.
    With `check`, nothing is written at all: `out`, or a file of such a folder, is compared with
    what would be.

    Raises:
      ExportError: there is no such export, it refuses the source, the state or the folder, or what
        is checked is something else.
      TffcError: the source or the state cannot be read.
    """
    exporter = EXPORTS.find(to, "E706").load()
    if check and not exporter.repeats:
        raise LanguageValueError(
            "E706", f"{to} cannot be checked: it has the time in it", help="load and compare it"
        )
    destination = Destination(pathlib.Path(out), replaces=replace, compares=check)
    if exporter.of_part is not None:
        if state is not None:
            raise LanguageValueError(
                "E706",
                f"{to} takes a state alone, without a program",
                help="give the state as the source, and leave state=... out",
            )
        destination.check_file(exporter.suffix)
        return _delivered(exporter.of_part(find_part(_whole(source), part)), destination)
    if state is not None:
        return _export_trained(source, exporter, _whole(state), part, destination, allow_effects)
    bundle = opened(source) if is_path(source) else source
    if not isinstance(bundle, Bundle):
        raise LanguageTypeError(
            "E714",
            f"an object of class {type(source).__name__!r} is exported with a trained state",
            help="give state=..., or compile the program and export its bundle",
        )
    destination.check_folder(exporter.own, exporter.holding)
    refuse_forged(bundle)
    if exporter.of_components is not None:
        components = bundle.run_by_rounds()
        check_consent(components, read_kinds(allow_effects))
        exported = models(components, exporter.of_components, partial=partial)
    elif exporter.of_bundle is not None:
        exported = exporter.of_bundle(bundle, destination.path)
    else:
        raise LanguageValueError(
            "E706", f"{to} takes the weights of a state", help="give the trained state: state=..."
        )
    return _delivered(exported, destination)


def _export_trained(
    source: Any,
    exporter: Exporter,
    whole: StatePart,
    part: str,
    out: Destination,
    allow_effects: Collection[str],
) -> Exported:
    weights = find_part(whole, part)
    if exporter.of_components is not None:
        out.check_folder(exporter.own, exporter.holding)
        program = program_of(source)
        if program.allow_effects is not None:
            allowed = program.allow_effects | read_kinds(allow_effects)
            check_consent(program.parts(), allowed)
        bound = {exporter.component: bind_part(program.computation, weights, whole)}
        exported = models(bound, exporter.of_components, partial=True, bare_names=True)
        return _delivered(exported, out)
    if exporter.of_state is None:
        raise LanguageValueError(
            "E706", f"{exporter.holding} starts from the first state", help="leave the state out"
        )
    out.check_file(exporter.suffix)
    return _delivered(exporter.of_state(source, weights), out)


def _delivered(exported: Exported, to: Destination) -> Exported:
    """Write an export, or compare it with what is there, and return it.

    Raises:
      ExportError: it cannot be written, or something else is there.
    """
    if to.compares:
        check_exported(to.path, exported.files)
    elif "" in exported.files:
        _write_file(to.path, exported)
    else:
        write_exported(to.path, exported.files)
    return exported


def _write_file(out: pathlib.Path, exported: Exported) -> None:
    """Write an export that is one file.

    Raises:
      ExportError: it cannot be written.
    """
    try:
        atomic.write_file(out, exported.files[""])
    except OSError as error:
        raise ExportError(
            "E851",
            f"cannot write {out}: {error.strerror}",
            help="give the path of a file in a folder that exists and can be written",
        ) from error


def models(
    components: Mapping[str, Node],
    of_components: OfComponents,
    *,
    partial: bool,
    bare_names: bool = False,
) -> Exported:
    """Return components as models; `tffc.deploy.export.signatures` describes `bare_names`.

    Raises:
      ExportError: no component can be exported or, unless `partial`, one that has results cannot.
      GraphError: a component is malformed.
    """
    exported = of_components(components, bare_names)
    lost = {} if partial else missing(exported.left_out)
    if lost:
        written = len(exported.lines)
        raise ExportError(
            "E870",
            f"{len(lost)} of {len(lost) + written} components cannot be exported, and nothing was "
            "written",
            notes=tuple(f"{name}: {reason}" for name, reason in lost.items()),
            help="write only the other" + ("" if written == 1 else f" {written}"),
            remedy="partial",
        )
    return exported


def read_whole(path: pathlib.Path) -> StatePart:
    """Return the whole state in a file or in the folder of a run.

    Raises:
      DataError: there is none.
    """
    file = find_state(path)
    type = read_type(file)
    return StatePart("", "", type, read_state(file, type, "").value)


def _whole(state: Any) -> StatePart:
    """Return a state as the whole of its parts."""
    if is_path(state):
        return read_whole(pathlib.Path(state))
    value = state.state if isinstance(state, (Run, FinishedRound)) else state
    type = infer_type(value)
    return StatePart("", "", type, to_value(value, type, "the state"))
