"""Compiling a program again, and comparing the bytes with a bundle."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from tffc.api.compiling import compiled, flattened, pipeline_of
from tffc.api.programs import Source, program_of, round_of
from tffc.api.proofs import proof_of
from tffc.assurance.proof.prove import VERSION
from tffc.backends.bundle.bundle import MANIFEST, Bundle, file_digests, read_bundle
from tffc.passes import Pipeline
from tffc.support.errors import OversizeError, TrustError


@dataclasses.dataclass(frozen=True, slots=True)
class Rebuilding:
    """The comparison of a bundle with what its program compiles to here.

    `files` are the paths of those that differ or that only one of the two has, `versions` say which
    packages are others, and `count` is the number of files compared.
    """

    files: Sequence[str]
    versions: Sequence[str]
    count: int

    def check(self) -> None:
        """Check that all files are the same.

        Raises:
          TrustError: one is not.
        """
        if self.files:
            raise TrustError(
                "E889",
                f"the program does not compile to this bundle here: {', '.join(self.files[:10])}"
                + (" and others differ" if len(self.files) > 10 else " differ"),
                notes=tuple(self.versions),
                help="use the versions and the passes that made the bundle; tffc diff shows what "
                "is different",
            )


def rebuild(
    source: Source,
    bundle: str | os.PathLike[str],
    passes: str | Pipeline | None = None,
    *,
    initialize: Source | None = None,
    allow_impure_duplicates: bool = False,
) -> Rebuilding:
    """Compile a program again, to the form of the bundle in a folder, and compare the bytes.

    A bundle with the record of a proof is proved again, too; other passes than the default ones
    must be named, and so must the rest that `tffc.compile` was called with.  Signatures are not
    compared.

    Raises:
      TffcError: the bundle or the program cannot be read or compiled, or the proof fails.
    """
    folder = pathlib.Path(bundle)
    old = read_bundle(folder)
    program = round_of(source, old.form)
    if initialize is not None:
        program = program._replace(initialize=program_of(initialize).computation)
    steps = pipeline_of(passes)
    again = compiled(program, old.form, steps, allow_impure_duplicates=allow_impure_duplicates)
    if old.prover is not None:
        proof_of(program, again).check()
        again = dataclasses.replace(again, prover=VERSION)
    before, now = file_digests(folder), _digests(again, steps)
    files = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    versions = list(_other_versions(old, again))
    return Rebuilding(files, versions, len(before.keys() | now.keys()))


def _digests(bundle: Bundle, steps: Pipeline | None) -> dict[str, str]:
    try:
        manifest, _ = bundle.contents()
    except OversizeError:
        manifest, _ = flattened(bundle, steps).contents()
    content = hashlib.sha256(manifest.encode()).hexdigest()
    return {MANIFEST: content, **manifest.file_digests()}


def _other_versions(old: Bundle, again: Bundle) -> Iterator[str]:
    """Yield the packages that made two bundles in other versions."""
    pairs: Mapping[str, str] = {**old.versions, **again.versions}
    for package in sorted(pairs):
        before, now = old.versions.get(package), again.versions.get(package)
        if before != now:
            yield f"{package}: the bundle was made with {before or 'none'}, here is {now or 'none'}"
    if old.prover != again.prover:
        yield f"prover: the bundle was proved by {old.prover}, here is {again.prover}"
