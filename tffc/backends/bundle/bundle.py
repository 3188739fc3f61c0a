"""Bundles: a compiled program as a folder of plain files.

    manifest.json           format version, form, types, versions, content hashes
    computation.pb          the traced program as a serialized Computation
    initialize.pb           the computation of the first state, if the program has one
    discount.pb             the weight of a contribution by its age, if rounds may be buffered
    components/NAME.pb      each component of the form
    resources/SHA256        each array that the programs name by its digest
    *.sexpr                 the text of each of these, for people

The same program gives the same bytes.  A bundle is written completely or not at all, checked
against its hashes when it is read, and never run as Python.  Of resources, sizes are checked then,
and content when it is used.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tffc.backends.bundle.manifest import (
    Manifest,
    ProofRecord,
    by_stem,
    decode_manifest,
    resource_path,
)
from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.language import wire
from tffc.language.nodes import Compiled, Node
from tffc.language.notation import formatted
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.values.resources import RESOURCES, STORE, byte_array, find_files, writer_of
from tffc.language.wire.resources import resources_of, sizes_of
from tffc.support.errors import BundleError, NotationError, WireError, excerpt, reader
from tffc.support.files import atomic
from tffc.support.files.reading import read_regular
from tffc.support.near import near_file
from tffc.support.printable import printable

if TYPE_CHECKING:
    from tffc.backends.forms.form import Form

MANIFEST = "manifest.json"

MAX_MANIFEST = 64 * 2**20
"""The most bytes of a manifest, whose types may be long."""

MAX_FILE = MAX_MESSAGE
"""The most bytes of any other file, since no message has more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Bundle:
    """The components of a form by name, and the program from which they were compiled.

    `initialize` is a section without parameter that computes the first state, or None.  `versions`
    are those of the packages that made the bundle.  `prover` is the version of the prover that
    proved the components, or None.  `discount` is a section `(int32 -> float32)` if rounds may be
    buffered, or None.
    """

    form: str
    computation: Node
    components: Mapping[str, Node]
    initialize: Compiled | None
    versions: Mapping[str, str]
    prover: int | None = None
    discount: Compiled | None = None

    def programs(self) -> dict[str, Node]:
        """Return all programs in the bundle by the paths of their files without suffix."""
        return by_stem(self.computation, self.initialize, self.discount, self.components)

    def read_form(self) -> Form:
        """Return the form of these components.

        Raises:
          FormError: they are not the components of the form, or do not fit each other.
        """
        from tffc.backends.forms.kinds import assemble  # which many commands do without

        return assemble(self.form, self.computation.type, self.components)

    def run_by_rounds(self) -> dict[str, Node]:
        """Return the programs that rounds run by name: the components, `initialize`, `discount`."""
        last = {"initialize": self.initialize, "discount": self.discount}
        rest = {name: section for name, section in last.items() if section is not None}
        return {**self.components, **rest}

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of the message of each program in the bundle."""
        parts = self.programs().items()
        return {stem: _digest(wire.to_bytes(program, leaves=False)) for stem, program in parts}

    def resources(self) -> dict[str, int]:
        """Return the bytes of the resources that the programs use by digest, sorted."""
        return sizes_of(resources_of(self.programs().values()))

    def manifest(self) -> Manifest:
        """Return the manifest without the hashes of the files."""
        return Manifest(
            form=self.form,
            type=str(self.computation.type),
            initialize=None if self.initialize is None else str(self.initialize.type),
            components={name: str(node.type) for name, node in self.components.items()},
            versions=self.versions,
            discount=None if self.discount is None else str(self.discount.type),
            resources=self.resources(),
        )

    def encode(self) -> dict[str, bytes]:
        """Return the files of the bundle by their paths in its folder, without resources."""
        manifest, files = self.contents()
        return {MANIFEST: manifest.encode(), **files}

    def contents(self) -> tuple[Manifest, dict[str, bytes]]:
        """Return the manifest, and the other files without resources."""
        files: dict[str, bytes] = {}
        for stem, program in self.programs().items():
            files[f"{stem}.pb"] = wire.to_bytes(program)
            files[f"{stem}.sexpr"] = text(program).encode()
        hashes = {path: _digest(content) for path, content in files.items()}
        proof = None
        if self.prover is not None:
            proved = {path: digest for path, digest in hashes.items() if path.endswith(".pb")}
            proof = ProofRecord(prover=self.prover, files=proved)
        return self.manifest()._replace(files=hashes, proof=proof), files

    def resource_files(self) -> dict[str, memoryview]:
        """Return the bytes of the resources by the paths of their files.

        Raises:
          LoadError: one is not here, or damaged.
        """
        return {resource_path(digest): STORE.content(digest).data for digest in self.resources()}

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the bundle to a folder, completely or not at all.

        Raises:
          BundleError: the folder holds other things, or a bundle without `replace`, or cannot be
            written.
          OversizeError: a program is too large for a message.
        """
        write_bundle(self, pathlib.Path(path), replace=replace)


def text(program: Node) -> str:
    """Return the formatted text of a program, or a line that says why it has none."""
    try:
        return formatted(program) + "\n"
    except NotationError as error:
        return f"; {error.message}\n"


def is_bundle(path: pathlib.Path) -> bool:
    """Return whether `path` is a folder with a manifest.

    First restore a bundle that a killed process has moved away without replacing it.
    """
    atomic.recover(path)
    return (path / MANIFEST).is_file()


def _why_no_bundle(path: pathlib.Path) -> str:
    if path.is_dir():
        return f"{path} holds no {MANIFEST}"
    return f"{path} is a file, not a folder" if path.is_file() else f"there is no folder {path}"


def write_bundle(bundle: Bundle, path: pathlib.Path, *, replace: bool = False) -> None:
    """Write `bundle` as the folder `path`; replace a bundle there only if `replace` is set.

    Raises:
      BundleError: the folder holds something else, or cannot be written.
    """
    atomic.recover(path)
    check_target(path, replace=replace)
    manifest, files = bundle.contents()
    resources = {resource_path(digest): writer_of(digest) for digest in manifest.resources}
    try:
        atomic.write_folder(path, {MANIFEST: manifest.encode(), **files, **resources})
    except OSError as error:
        raise BundleError(
            "E600",
            f"cannot write the bundle {path}: {error.strerror}",
            notes=("nothing was written",),
            help="give a path in a folder that exists and can be written, on a disk with space "
            "left",
        ) from error


LONGEST_TYPE = 1000
"""The most characters shown of a type in a manifest, which may be any text."""


def check_target(path: pathlib.Path, *, replace: bool) -> None:
    """Check that a bundle may be written as the folder `path`.

    Raises:
      BundleError: a file is there, a folder with other things, or a bundle not to be replaced.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise BundleError("E602", f"{path} is not a folder", help="name a new folder")
    is_bundle_there = (path / MANIFEST).is_file()
    own = {MANIFEST, *_read_manifest(path).paths} if is_bundle_there else set[str]()
    other = next((file for file in _files_in(path) if file not in own), None)
    if other is not None:
        raise BundleError(
            "E602",
            f"the folder {path} is in use: it holds {other}",
            notes=("a bundle takes a new folder, an empty one, or the place of another bundle",),
            help="name another folder",
        )
    if is_bundle_there and not replace:
        raise BundleError(
            "E603",
            f"the folder {path} already holds a bundle",
            help="replace it, or name another folder",
            remedy="replace",
        )


def _files_in(path: pathlib.Path) -> Iterator[str]:
    """Yield the paths of the files and links in a folder, sorted by name.

    It may be a user's large folder, so nothing is read ahead.
    """

    def give_up(error: OSError) -> None:
        raise BundleError(
            "E602",
            f"cannot tell what the folder {path} holds: {error.filename}: {error.strerror}",
            notes=("a bundle takes a new folder, an empty one, or the place of another bundle",),
            help="name another folder",
        ) from error

    for folder, inner, files in os.walk(path, onerror=give_up):
        inner.sort()
        links = (name for name in inner if os.path.islink(os.path.join(folder, name)))
        for name in sorted((*files, *links)):
            yield (pathlib.Path(folder) / name).relative_to(path).as_posix()


@reader("a bundle", BundleError)
def read_bundle(path: pathlib.Path) -> Bundle:
    """Return the bundle in the folder `path`, after checking the hash of each file.

    Raises:
      BundleError: there is no bundle, its format has a newer major version, or a file is missing,
        damaged or different from the manifest.
    """
    if not is_bundle(path):
        help = near_file(path, os.path.isdir) or "write one with tffc compile"
        raise BundleError("E604", f"no bundle: {_why_no_bundle(path)}", help=help)
    manifest = _read_manifest(path)
    contents = {name: _content(path, name, MAX_FILE) for name in manifest.files}
    bundle = _assembled(path, manifest, contents)
    find_files(manifest.resources, path / RESOURCES)
    return bundle


@reader("a bundle", BundleError)
def decode_bundle(files: Mapping[str, bytes | memoryview], name: pathlib.Path) -> Bundle:
    """Return the bundle of these files by path, as `Bundle.encode` returns them.

    `name` names the bundle in messages.  Files of resources are with the others.

    Raises:
      BundleError: as `read_bundle` does.
    """
    manifest = decode_manifest(bytes(_given(files, MANIFEST, name)), str(name / MANIFEST))
    contents = {wanted: bytes(_given(files, wanted, name)) for wanted in manifest.files}
    bundle = _assembled(name, manifest, contents)
    for digest in manifest.resources:
        content = _given(files, resource_path(digest), name)
        STORE.add_source(digest, str(name), functools.partial(byte_array, content))
    return bundle


def _given(
    files: Mapping[str, bytes | memoryview], wanted: str, name: pathlib.Path
) -> bytes | memoryview:
    if wanted not in files:
        raise BundleError(
            "E760", f"the bundle {name} has no {wanted}", help="export the bundle again"
        )
    return files[wanted]


def _assembled(path: pathlib.Path, manifest: Manifest, contents: Mapping[str, bytes]) -> Bundle:
    for name, digest in manifest.files.items():
        _check_digest(path, name, contents[name], digest)
    programs = {
        stem: _decode(path, stem, contents[f"{stem}.pb"], type)
        for stem, type in manifest.programs().items()
    }
    initialize = programs.get("initialize")
    if initialize is not None:
        _check_makes_state(path, initialize.type, programs["computation"].type)
    initialize = _section(path, "initialize", initialize)
    discount = _section(path, "discount", programs.get("discount"))
    if discount is not None:
        from tffc.backends.forms.discount import check_discount

        check_discount(discount)
    bundle = Bundle(
        form=manifest.form,
        computation=programs["computation"],
        components={name: programs[f"components/{name}"] for name in manifest.components},
        initialize=initialize,
        versions=manifest.versions,
        prover=_prover(manifest),
        discount=discount,
    )
    _check_resources(path, manifest.resources, bundle.resources())
    return bundle


def _check_resources(
    path: pathlib.Path, listed: Mapping[str, int], used: Mapping[str, int]
) -> None:
    """Check that a manifest lists the resources that the programs use, and no others."""
    for digest in sorted(listed.keys() | used.keys()):
        if listed.get(digest) != used.get(digest):
            sizes = (
                f"{size} bytes" if size is not None else "none"
                for size in (listed.get(digest), used.get(digest))
            )
            listing, using = sizes
            raise BundleError(
                "E606",
                f"the bundle {path} lists other resources than its programs use",
                notes=(f"of {digest}, the manifest has {listing}, and the programs {using}",),
                help="compile the program again",
            )


def _section(path: pathlib.Path, stem: str, program: Node | None) -> Compiled | None:
    if not isinstance(program, Compiled | None):
        raise BundleError(
            "E606",
            f"{stem}.pb of the bundle {path} is not a compiled section",
            help="compile the program again",
        )
    return program


def _prover(manifest: Manifest) -> int | None:
    """Return the version of the prover if it proved exactly these files, or None."""
    proof, files = manifest.proof, manifest.files
    names = [f"{stem}.pb" for stem in manifest.programs()]
    if proof is None or any(proof["files"].get(name) != files[name] for name in names):
        return None
    return proof["prover"]


def _check_makes_state(path: pathlib.Path, type: Type, round: Type) -> None:
    """Check that a program of a type computes a state that the round takes."""
    expected = "a function without parameter"
    first = type.result if isinstance(type, FunctionType) and type.parameter is None else None
    is_right = first is not None
    if (
        first is not None
        and isinstance(round, FunctionType)
        and isinstance(round.parameter, StructType)
    ):
        for state in round.parameter.types[:1]:
            expected = f"`{FunctionType(None, local_type(state))}`"
            is_right = local_type(state).is_assignable_from(local_type(first))
    if not is_right:
        raise BundleError(
            "E606",
            f"initialize.pb of the bundle {path} is of type `{type}`, expected {expected}",
            help="compile the program again",
        )


def _read_manifest(path: pathlib.Path) -> Manifest:
    return decode_manifest(_content(path, MANIFEST, MAX_MANIFEST), str(path / MANIFEST))


def _content(path: pathlib.Path, name: str, limit: int) -> bytes:
    """Return the content of a regular file in the folder of the bundle."""
    try:
        return read_regular(path / name, limit, within=path)
    except OSError as error:
        raise BundleError(
            "E606",
            f"cannot read {name} of the bundle {path}: {error.strerror}",
            help="compile the program again",
        ) from error


def _check_digest(path: pathlib.Path, name: str, content: bytes, digest: str) -> None:
    if _digest(content) != digest:
        raise BundleError(
            "E606",
            f"{name} of the bundle {path} is damaged",
            notes=(f"its hash is {_digest(content)}", f"the manifest says {digest}"),
            help="compile the program again",
        )


def _decode(path: pathlib.Path, stem: str, content: bytes, type: str) -> Node:
    try:
        program = wire.from_bytes(content)
    except WireError as error:
        error.message = f"{stem}.pb of the bundle {path} is not a serialized computation: " + (
            error.message
        )
        raise
    # Older bundles have invisible characters of names without escapes.
    if str(program.type) != printable(type):
        raise BundleError(
            "E606",
            f"{stem}.pb of the bundle {path} is of type `{program.type}`",
            notes=(f"the manifest says `{excerpt(type, 0, 0, LONGEST_TYPE)[0]}`",),
            help="compile the program again",
        )
    return program


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
