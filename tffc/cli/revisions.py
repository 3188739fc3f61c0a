"""Sources at a revision of their git repository: `git:REF:SOURCE`.

Where another source is named too, `git:REF` is that one at the revision.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from tffc.api import programs
from tffc.api.programs import TEXTS, Program
from tffc.language.values.resources import array_of
from tffc.language.wire.resources import resources_of
from tffc.support.errors import LoadError

if TYPE_CHECKING:
    import tarfile

GIT = "git:"
"""The prefix of a revision in the history of a repository."""


class Revision(NamedTuple):
    """A revision, and the source to read there."""

    name: str
    source: str


def is_revision(source: str) -> bool:
    """Return whether a source is one at a revision."""
    return source.startswith(GIT)


def at_revision(older: str, source: str) -> str:
    """Return an older source with what it lacks: `git:REF` is the other source at that revision."""
    if is_revision(older) and ":" not in older.removeprefix(GIT):
        return f"{older}:{source}"
    return older


def revision_of(source: str) -> Revision:
    """Return the revision and the source that `git:REF:SOURCE` names.

    Raises:
      LoadError: no source is named.
    """
    name, _, inner = source.removeprefix(GIT).partition(":")
    if not inner:
        raise LoadError(
            "E858",
            f"{source} does not say which program is meant",
            help=f"give {source}:MODULE.py:NAME, with the path of the file of today",
        )
    return Revision(name, inner)


def read_at_revision(revision: Revision, form: str | None, *, is_round: bool) -> Program:
    """Return a program at a revision of the repository of its file.

    A module is traced in a separate process, because its modules have the same names as the current
    ones.  If a module has several computations and `is_round` is set, the only one that can be a
    round of the form is taken.

    Raises:
      LoadError: git does not have it, or it cannot be traced.
    """
    with checked_out(revision) as old:
        return read_checked_out(old, form, is_round=is_round)


class CheckedOut(NamedTuple):
    """A file or folder at a revision, a name in it, and the folder with the whole tree."""

    file: pathlib.Path
    name: str
    tree: pathlib.Path


@contextlib.contextmanager
def checked_out(revision: Revision) -> Generator[CheckedOut]:
    """Unpack a revision of a source's repository in a folder that exists during the context.

    Raises:
      LoadError: git does not have it.
    """
    import tarfile  # which most commands do without
    import tempfile

    path, _, name = revision.source.partition(":")
    file = pathlib.Path(path).resolve()
    top = _git("the repository", file.parent, "rev-parse", "--show-toplevel")
    root = pathlib.Path(top.decode().strip())
    commit = _commit(file.parent, revision.name)
    with tempfile.TemporaryDirectory() as scratch:
        archive = pathlib.Path(scratch, "archive.tar")
        archive.write_bytes(_git(revision.name, root, "archive", "--format=tar", commit))
        tree = pathlib.Path(scratch, "tree")
        with tarfile.open(archive) as tar:
            entries = [each for entry in tar if (each := _inside(entry, str(tree)))]
            tar.extraction_filter = lambda entry, _: entry  # they are filtered already
            tar.extractall(tree, entries)
        yield CheckedOut(tree / file.relative_to(root), name, tree)


def read_checked_out(old: CheckedOut, form: str | None, *, is_round: bool) -> Program:
    """Return a program of an unpacked revision; see `read_at_revision`."""
    if old.file.name.endswith((".pb", *TEXTS)):
        return programs.read_program(str(old.file))
    module = str(old.file.relative_to(old.tree))
    target = f"{module}:{old.name}" if old.name else module
    fits = f"round {form or ''}".strip() if is_round else "any"
    return _traced(target, fits, old.tree)


def lines_at(revision: str, path: str) -> list[str]:
    """Return the lines of a file at a revision of its repository; those of today if it was not
    there."""
    file = pathlib.Path(path).resolve()
    try:
        commit = _commit(file.parent, revision)
        shown = _git(path, file.parent, "show", f"{commit}:./{file.name}")
        return shown.decode().splitlines()
    except (LoadError, UnicodeDecodeError):
        return file.read_text(errors="replace").splitlines() if file.is_file() else []


def _traced(target: str, fits: str, tree: pathlib.Path) -> Program:
    """Trace a module of a tree in a separate process."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        # With -P, Python does not take a package `tffc` of the tree for this one.
        command = (sys.executable, "-P", "-m", "tffc.cli.traced_parts", target, fits, scratch)
        ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise LoadError(
                "E858",
                f"the old version of {target} cannot be traced",
                notes=tuple(ran.stderr.strip().splitlines()[:5]),
                help="compile it with the tffc version of that revision, and give the bundle",
            )
        first = pathlib.Path(scratch, "initialize.pb")
        program = Program(
            programs.read_computation(pathlib.Path(scratch, "computation.pb")),
            programs.read_computation(first) if first.is_file() else None,
        )
        for resource in resources_of(program.parts().values()):
            array_of(resource)  # its file is removed with the folder
        return program


def _commit(folder: pathlib.Path, revision: str) -> str:
    """Return the digest of a revision, which no other command of git takes for an option."""
    named = f"{revision}^{{commit}}"
    command = ("rev-parse", "--verify", "--end-of-options", named)
    return _git(revision, folder, *command).decode().strip()


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Return an entry of an archive as it is unpacked; None for one that leads out of the folder,
    such as an absolute link, or is a device.

    Python before 3.11.4 cannot tell where links lead: there, none is unpacked.
    """
    import tarfile

    if not hasattr(tarfile, "data_filter"):
        path = pathlib.PurePath(member.name)
        is_inside = not path.is_absolute() and ".." not in path.parts
        return member if is_inside and (member.isfile() or member.isdir()) else None
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _git(what: str, folder: pathlib.Path, *args: str) -> bytes:
    """Return what git prints; errors say that `what` cannot be read."""
    import subprocess

    try:
        return subprocess.run(
            ("git", "-C", str(folder), *args), capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise LoadError(
            "E858",
            f"cannot read {what} from git: {said.decode(errors='replace').strip()}",
            help="give git:REF with a revision of the program's repository",
        ) from None
