"""Bundles in Python: what the commands do with a bundle, as methods of it."""

from __future__ import annotations

import datetime
import os
import pathlib
import sys
from collections.abc import Collection
from typing import Any

from tffc.api import (
    audits,
    compiling,
    differences,
    exports,
    pages,
    proofs,
    running,
    texts,
    verification,
)
from tffc.api.boundary import public
from tffc.api.opened_bundles import OpenedBundle, check_admitted_here, origin_of
from tffc.api.pages import HtmlPage
from tffc.api.programs import Source, program_of, round_of
from tffc.api.proofs import BundleProof
from tffc.api.runs import Run, WrittenTypes
from tffc.api.texts import Style
from tffc.assurance.audit.policy_reading import PolicySource, PrivacySource
from tffc.assurance.audit.report import Report
from tffc.assurance.diff.programs import ProgramDifference
from tffc.assurance.validation import Report as Verification
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.backends.bundle.cell import bundle_cell
from tffc.deploy.export.kind import Exported
from tffc.language.values.concrete import to_python
from tffc.passes import Pipeline
from tffc.runtime.data.clients import Data
from tffc.runtime.effects.consent import check_can_run


class CompiledBundle(OpenedBundle):
    """A compiled round, and what can be done with it."""

    def first_state(self) -> Any:
        """Return the state before the first round, in the structures that the program's author
        used.

        Raises:
          BundleError: the bundle does not say how the state begins.
          ConsentError: it has an effect that is not allowed.
          ExecutionError: making the state fails.
          TrustError: the demands of this machine do not admit the bundle.
        """
        check_admitted_here(self)
        types = WrittenTypes.of(self.process, origin_of(self).signature)
        return to_python(self.process.first_state().value, types.state)

    def _repr_html_(self) -> str:
        return bundle_cell(self, self.name)

    def run(self, data: Data, rounds: int = 1, **options: Any) -> Run:
        """Run rounds on clients' data; see `tffc.run`."""
        return running.run(self, data, rounds, **options)

    def verify(self, **options: Any) -> Verification:
        """Test that the components compute what the program does; see `tffc.verify`."""
        return verification.verify(self, **options)

    def prove(self, program: Source | None = None) -> BundleProof:
        """Attempt to prove that the components compute what a program does; see `tffc.prove`.

        By default that is the program that was compiled, its first state included.
        """
        return proofs.prove(self, program)

    def audit(
        self,
        *,
        policy: PolicySource | None = None,
        as_of: datetime.date | None = None,
        privacy: PrivacySource | None = None,
    ) -> Report:
        """Audit what leaves the clients; see `tffc.audit`."""
        return audits.audit(self, policy=policy, as_of=as_of, privacy=privacy)

    def diff(self, other: Source | Bundle) -> list[ProgramDifference]:
        """Return what differs in another program or bundle; see `tffc.diff`."""
        return differences.diff(self, other)

    def explore(
        self,
        *,
        since: Source | Bundle | None = None,
        policy: PolicySource | None = None,
        as_of: datetime.date | None = None,
        privacy: PrivacySource | None = None,
    ) -> HtmlPage:
        """Return the HTML page about the round; see `tffc.explore`."""
        return pages.explore(self, since=since, policy=policy, as_of=as_of, privacy=privacy)

    def text(self, style: Style = "formatted") -> str:
        """Return the text of all parts; see `tffc.text`."""
        return texts.text(self, style)

    def print(self, style: Style = "formatted") -> None:
        """Print the text of all parts on stdout; see `tffc.text`."""
        sys.stdout.write(self.text(style) + "\n")

    def export(
        self,
        to: str,
        out: str | os.PathLike[str],
        *,
        partial: bool = False,
        replace: bool = False,
        check: bool = False,
    ) -> Exported:
        """Write the components as models, or the bundle as an app; see `tffc.export`."""
        return exports.export(
            self,
            to,
            out,
            partial=partial,
            replace=replace,
            check=check,
            allow_effects=self.allow_effects,
        )

    @public
    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the bundle to a folder; see `Bundle.save`."""
        super().save(path, replace=replace)


@public
def compile(  # the name of the command, and of `tffc.compile`
    source: Source,
    form: str | None = None,
    *,
    passes: str | Pipeline | None = None,
    initialize: Source | None = None,
    allow_impure_duplicates: bool = False,
) -> CompiledBundle:
    """Compile a round to a bundle, whose methods run, save, verify, prove and audit it.

    `source` is a computation, an iterative process, a module `MODULE.py:NAME`, or a file with a
    serialized computation.  `form` is `mapreduce`, `broadcast`, `distribute-aggregate` or that of
    an installed package; by default, the output's placement decides.  `passes` are those to run
    instead of the default ones, as a pipeline or in a text as for `tffc compile --passes`.
    `initialize` computes the first state, which an iterative process has itself.  With
    `allow_impure_duplicates`, random or effectful work may run in several components where the form
    requires it.

    Raises:
      FormError: the form cannot express the round.
      TffcError: there is no such program, or it is not sound; see `tffc.support.errors`.
    """
    program = round_of(source, form)
    if initialize is not None:
        first = program_of(initialize)
        program = program._replace(
            initialize=first.computation,
            allow_effects=_allowed_by_both(program.allow_effects, first.allow_effects),
        )
    if program.allow_effects is not None:
        check_can_run(program.parts())
    bundle = compiling.compiled(
        program,
        form,
        compiling.pipeline_of(passes),
        allow_impure_duplicates=allow_impure_duplicates,
    )
    return CompiledBundle.of(bundle, program, program.allow_effects or ())


def _allowed_by_both(
    one: frozenset[str] | None, other: frozenset[str] | None
) -> frozenset[str] | None:
    """Return the effects that two programs may both have; None only if both are the user's own."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


@public
def load(bundle: str | os.PathLike[str], *, allow_effects: Collection[str] = ()) -> CompiledBundle:
    """Return the bundle in a folder; nothing in it is run as Python.

    `allow_effects` are the kinds of side effects that it may have when it is run: "files",
    "network", "python", "unknown".

    Raises:
      BundleError: there is no bundle, or it is damaged or of a newer format.
      LanguageValueError: `allow_effects` names an unknown kind.
    """
    return CompiledBundle.of(read_bundle(pathlib.Path(bundle)), allow_effects=allow_effects)
