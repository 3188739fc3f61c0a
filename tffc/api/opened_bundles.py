"""What functions of the library take: a bundle, the folder of one, or the source of a program."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Collection, Generator
from typing import TYPE_CHECKING, Self

from tffc.api.programs import TEXTS, Program, Source, program_of
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.deploy.demands import check_admitted, demands_of_machine
from tffc.language.nodes import Node
from tffc.support.errors import LanguageValueError, LoadError
from tffc.support.guards import is_path

if TYPE_CHECKING:
    from tffc.assurance.audit.bundles import Reading
    from tffc.runtime.engines.process import Process


@contextlib.contextmanager
def or_missing_bundle(source: object) -> Generator[None]:
    """Report a missing module as a missing bundle if its name can only be that of a folder.

    Raises:
      BundleError: in place of a LoadError, if so.
    """
    try:
        yield
    except LoadError:
        name = os.fspath(source) if is_path(source) else ":"
        if ":" not in name and not name.endswith((".py", ".pb", "-", *TEXTS)):
            read_bundle(pathlib.Path(name))
        raise


def is_bundle_source(source: object) -> bool:
    """Return whether a source is a bundle, or the path of a folder, which can only hold one."""
    is_folder = is_path(source) and os.path.isdir(source)
    return is_folder or isinstance(source, Bundle)


def opened(source: Source | Bundle, form: str | None = None) -> Source | Bundle:
    """Return the bundle in the folder that a source names, and any other source as it is.  `form`
    is what the caller asks to compile the source to.

    Raises:
      BundleError: the bundle is damaged, or there is none in the folder.
      LanguageValueError: a form is asked for, and a bundle has its own.
    """
    if is_path(source) and os.path.isdir(source):
        source = read_bundle(pathlib.Path(source))
    if isinstance(source, Bundle) and form is not None:
        raise LanguageValueError(
            "E706", f"a bundle has its own form, {source.form!r}", help="leave the form out"
        )
    return source


def parts_of(source: Source | Bundle) -> dict[str, Node]:
    """Return the programs in a program or bundle by name.

    Raises:
      TffcError: there is no such source, or it cannot be read.
    """
    source = opened(source)
    if not isinstance(source, Bundle):
        return program_of(source).parts()
    first = {"computation": source.computation}
    if source.initialize is not None:
        first["initialize"] = source.initialize
    if source.discount is not None:
        first["discount"] = source.discount
    return {**first, **source.components}


def name_of(source: object, program: Program | None = None) -> str:
    """Return what reports call a source: the text that names it, or the name of the program."""
    if is_path(source):
        return os.fspath(source)
    if isinstance(source, OpenedBundle) and source.name:
        return f"the bundle of {source.name}"
    if isinstance(source, Bundle):
        return "the bundle"
    return (program and program.name) or "the program"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OpenedBundle(Bundle):
    """A bundle in this process, and where it comes from.

    `origin` is the program that it was compiled from in this process; it is None for a bundle that
    `tffc.load` has read.  `allow_effects` are the side effects that it may have when it is run,
    unless the origin is the user's own code.
    """

    origin: Program | None = None
    allow_effects: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        bundle: Bundle,
        origin: Program | None = None,
        allow_effects: Collection[str] = (),
    ) -> Self:
        """Return a bundle with its origin.

        Raises:
          LanguageValueError: `allow_effects` names an unknown kind.
        """
        from tffc.runtime.effects.consent import read_kinds

        parts = {field.name: getattr(bundle, field.name) for field in dataclasses.fields(bundle)}
        parts |= {"origin": origin, "allow_effects": read_kinds(allow_effects)}
        return cls(**parts)

    @property
    def name(self) -> str:
        """The name of the program in its module; empty if it is not known."""
        return "" if self.origin is None else self.origin.name

    def __repr__(self) -> str:
        of = f" of {self.name}" if self.name else ""
        return f"<bundle{of}: {self.form}, {len(self.components)} components>"

    @property
    def is_own(self) -> bool:
        """Whether it was compiled in this process from the user's own code."""
        return self.origin is not None and self.origin.allow_effects is None

    @functools.cached_property
    def reading(self) -> Reading:
        """The program that stands for the bundle in audits, with the answer of the prover.

        Raises:
          FormError: the components are not those of the form.
        """
        # Imported late, like the process: most of what reads programs proves nothing.
        from tffc.assurance.audit.bundles import read_for_audit

        return read_for_audit(self)

    @functools.cached_property
    def process(self) -> Process:
        """The bundle ready to run.

        Raises:
          ConsentError: it has an effect that is not allowed.
        """
        # Imported late: most of what reads programs runs nothing.
        from tffc.runtime.engines.process import Process

        return Process(self, self.allow_effects, is_own=self.is_own)


def origin_of(bundle: Bundle) -> Program:
    """Return the program that a bundle was compiled from, with its first state only if it is known
    from elsewhere than the bundle."""
    if isinstance(bundle, OpenedBundle):
        if bundle.origin is not None:
            return bundle.origin
        return Program(bundle.computation, allow_effects=bundle.allow_effects)
    return Program(bundle.computation)


def check_admitted_here(bundle: Bundle) -> None:
    """Check that the demands of this machine, if it has any, admit a bundle that was not compiled
    in this process from the user's own code.

    Raises:
      TrustError: they do not.
    """
    if not (isinstance(bundle, OpenedBundle) and bundle.is_own):
        check_admitted(bundle, name_of(bundle))


def check_may_run(bundle: Bundle) -> None:
    """Check that the rounds of a bundle may run here: that the demands of this machine admit it,
    or if it has none, that a bundle from elsewhere is not forged.

    Raises:
      TrustError: the demands do not admit it.
      ValidationError: its components compute something else than its program.
    """
    if demands_of_machine() is not None:
        check_admitted_here(bundle)
    elif not isinstance(bundle, OpenedBundle):
        from tffc.assurance.audit.bundles import read_for_audit

        read_for_audit(bundle).check_may_run()
    elif bundle.origin is None:
        bundle.reading.check_may_run()
