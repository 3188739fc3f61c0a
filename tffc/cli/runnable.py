"""The argument of `tffc run`: a bundle, or a program, which is compiled into a cache.

The cache is a folder of bundles, `tffc/bundles` in `$XDG_CACHE_HOME` or else in `~/.cache`.  Each
is named by a digest of the program, so it is never out of date.  The most recently used bundles are
kept; without a writable folder, none is.

Cached bundles run with the consent given to the user's own modules.  So the folder is created for
its owner alone, and not used if anybody else can write to it or to the bundle, or if the bundle is
a link to elsewhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Mapping

from tffc.api.compiling import compiled
from tffc.api.opened_bundles import or_missing_bundle
from tffc.api.programs import Program
from tffc.backends.bundle.bundle import (
    Bundle,
    file_digests,
    is_bundle,
    read_bundle,
    write_bundle,
)
from tffc.backends.compiler import has_discount
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import form_for, load_form
from tffc.cli.consent import check_consent, naming_the_option
from tffc.cli.flags import help_of
from tffc.cli.output import say
from tffc.cli.progress import step
from tffc.cli.sources import read_round, refuse_form_of_bundle
from tffc.deploy.demands import demands_of_machine
from tffc.language import wire
from tffc.language.types import Type
from tffc.language.wire.python_functions import has_python_functions
from tffc.runtime.effects.consent import check_can_run
from tffc.runtime.engines.process import Process, check_beginning, data_type_of_bundle
from tffc.support.errors import BundleError, ConsentError, TffcError, TrustError
from tffc.support.files import atomic
from tffc.support.files.private import cache_base, is_private, is_private_inside, remove_oldest
from tffc.support.version import VERSION

KEPT = 50
"""The most bundles that the cache keeps."""

NAME = re.compile(r"[0-9a-f]{64}")
"""Matches the name of a cached bundle; nothing else is ever removed from the cache."""


@dataclasses.dataclass(frozen=True, slots=True)
class Runnable:
    """A bundle that may be run after consent to its side effects.

    `is_own` is true if the user's own module defines it, which needs no consent.  `name` is that of
    the bundle's folder, or of the program with its file.
    """

    bundle: Bundle
    is_own: bool
    name: str

    def process(self, allow_effects: frozenset[str]) -> Process:
        """Return the process of the bundle.

        Raises:
          FormError: the bundle does not hold the components of its form.
          ConsentError: it has effects that need consent.
        """
        with naming_the_option():
            return Process(self.bundle, allow_effects, is_own=self.is_own)


def read_runnable(
    source: str,
    form: str | None,
    check: Callable[[type[Form], Type], object] | None = None,
    demands: pathlib.Path | None = None,
) -> Runnable:
    """Return the bundle in a folder, or that of a program compiled to a form.

    If `form` is None, it is chosen by the type of the program's result.  Before a program is
    compiled, `check` is called with the form and the type of each client's data.  With the file of
    `demands`, or those of the machine, only a bundle that they admit is returned.

    Raises:
      ValidationError: the components of the bundle compute something else than its program.
      TrustError: the demands do not admit it, or it is a program.
      click.UsageError: a form is given, and `source` is a bundle.
      TffcError: there is neither bundle nor program, or it cannot be compiled.
    """
    refuse_form_of_bundle(source, form)
    demands = demands or demands_of_machine()
    if os.path.isdir(source):
        step(f"reading {source}")
        bundle = read_bundle(pathlib.Path(source))
        if demands is None:
            _refuse_forged(source, bundle)
        else:
            _check_admitted(source, bundle, demands)
        return Runnable(bundle, is_own=False, name=source)
    if demands is not None:
        raise TrustError(
            "E890",
            f"the demands of this machine are about bundles, and {source} is a program",
            help="compile it with tffc compile, and let somebody sign the bundle",
        )
    with or_missing_bundle(source):
        program = read_round(source, form)
    if program.allow_effects is not None:
        check_can_run(program.parts())
    form = form or form_for(program.computation)
    if check is not None:
        check(load_form(form), program.data_type(form))
    bundle = _compiled(program, form)
    name = f"{source}:{program.name}" if program.passed_over else source
    return Runnable(bundle, is_own=program.allow_effects is None, name=name)


def _refuse_forged(source: str, bundle: Bundle) -> None:
    # Imported late: programs do without the prover and the audit.
    from tffc.assurance.audit.bundles import read_for_audit

    step(f"proving {source}")
    read_for_audit(bundle).check_may_run()


def _check_admitted(source: str, bundle: Bundle, demands: pathlib.Path) -> None:
    # Imported late: most machines have no demands, and this imports the prover and the audit.
    from tffc.assurance.trust.admission import admission_of
    from tffc.assurance.trust.settings import read_settings

    step(f"admitting {source}")
    files = file_digests(pathlib.Path(source))
    admission = admission_of(bundle, read_settings(demands), source, files=files)
    say(admission.line())
    admission.check()


def data_type(source: str) -> Type:
    """Return the type of each client's data in a round of a bundle or program, without compiling
    it.

    Raises:
      TffcError: there is neither bundle nor program, or it is not a round.
    """
    if os.path.isdir(source):
        return data_type_of_bundle(read_bundle(pathlib.Path(source)))
    with or_missing_bundle(source):
        return read_round(source, None).data_type(None)


def check_needs(
    runnables: Mapping[str, Runnable], allowed: frozenset[str], *, begins: Bundle | None
) -> None:
    """Check that bundles have the consent that they need, and that `begins` has a first state.

    Keys of `runnables` prefix the names of components in errors.  One error reports everything that
    is missing.

    Raises:
      ConsentError: consent is missing.
      BundleError: only the first state is missing.
    """
    programs = {
        prefix + name: program
        for prefix, runnable in runnables.items()
        if not runnable.is_own
        for name, program in runnable.bundle.run_by_rounds().items()
    }
    try:
        check_consent(programs, allowed)
    except ConsentError as error:
        if begins is not None:
            _add(error, check_beginning, begins)
        raise
    if begins is not None:
        check_beginning(begins)


def _add(error: ConsentError, check: Callable[[Bundle], None], bundle: Bundle) -> None:
    """Make an error also report what else is missing."""
    try:
        check(bundle)
    except BundleError as other:
        error.notes += (f"besides, {other.message}",)
        error.help = f"{error.help}; and {help_of(other)}"


def _compiled(program: Program, form: str) -> Bundle:
    """Return the bundle of a program from the cache, or compile and cache it.

    A program that calls functions of Python stays in this process, so it is not cached.
    """
    if any(map(has_python_functions, program.parts().values())):
        step(f"compiling to {form}")
        return compiled(program, form)
    path = cache_folder() / _digest(program, form)
    try:
        is_kept = is_bundle(path) and is_private(path.parent) and is_private_inside(path)
        if is_kept and _is_of(bundle := read_bundle(path), program, form):
            with contextlib.suppress(OSError):
                os.utime(path)
            return bundle
    except (TffcError, OSError):
        # The bundle is damaged, and is replaced below.
        pass
    step(f"compiling to {form}")
    bundle = compiled(program, form)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_private(path.parent):
            # What is still there is damaged, or of another program.
            if os.path.lexists(path):
                atomic.remove(path)
            write_bundle(bundle, path, replace=True)
            remove_oldest(path.parent, NAME, KEPT)
    except (BundleError, OSError):
        # The cache only saves time; the round can do without it.
        pass
    return bundle


def cache_folder() -> pathlib.Path:
    """Return the folder of cached bundles; without a home folder, a path that cannot exist."""
    return cache_base() / "bundles"


def _is_of(bundle: Bundle, program: Program, form: str) -> bool:
    """Return whether a bundle states that it was compiled from a program."""
    same_round = wire.to_bytes(bundle.computation) == wire.to_bytes(program.computation)
    has_state = (bundle.initialize is None) == (program.initialize is None)
    is_buffered = has_discount(form, program.discount)
    return (
        bundle.form == form
        and same_round
        and has_state
        and (bundle.discount is not None) == is_buffered
    )


def _digest(program: Program, form: str) -> str:
    found = hashlib.sha256(f"{VERSION} {form}".encode())
    for part in program.parts().values():
        found.update(hashlib.sha256(wire.to_bytes(part)).digest())
    return found.hexdigest()
