"""Comparing and updating the folder of golden files."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from tffc.assurance.diff.programs import called_at
from tffc.assurance.diff.unified import unified
from tffc.assurance.golden.examples import LIST
from tffc.assurance.golden.printing import PROGRAM, SECTIONS, Files
from tffc.support.errors import GoldenError, Span
from tffc.support.files import atomic
from tffc.support.files.inputs import check_no_input, was_read
from tffc.support.printable import printable

Printed = Mapping[str, Mapping[str, str]]
"""For each example, its files by their paths in the example's folder."""


@dataclasses.dataclass(frozen=True, slots=True)
class FileDifference:
    """A golden file that differs from the current output; `golden` or `printed` is None if that
    side lacks the file.

    `folder` is that of the example.  `called` are lines about where the changed sections are called
    in the user's source.
    """

    path: pathlib.Path
    folder: pathlib.Path
    golden: str | None
    printed: str | None
    called: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a unified diff from the golden file to the current output, then `called`."""
        path = printable(self.path.as_posix())
        lines = unified(
            _lines(self.golden),
            _lines(self.printed),
            "/dev/null" if self.golden is None else path,
            "/dev/null" if self.printed is None else f"{path} (printed now)",
        )
        return "\n".join([*lines, *self.called])

    @property
    def removes(self) -> bool:
        """True if accepting the change removes the file."""
        return self.printed is None

    @property
    def line(self) -> int:
        """The first line of the golden file that differs, counted from 1."""
        pairs = zip(_lines(self.golden), _lines(self.printed), strict=False)
        return 1 + len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))

    def accept(self) -> None:
        """Write the current output to the file; if there is none, remove the file.

        Raises:
          GoldenError: the file, or a folder of the example, is a link.
          LoadError: the command has read the file.
        """
        inside = self.path.relative_to(self.folder)
        for parent in inside.parents:
            check_no_link(self.folder / parent)
        check_no_link(self.path)
        check_no_input(self.path)
        if self.printed is None:
            self.path.unlink()
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_file(self.path, self.printed.encode())


@dataclasses.dataclass(frozen=True, slots=True)
class Orphan:
    """A file or folder that belongs to no example."""

    path: pathlib.Path
    line: ClassVar[int] = 1
    removes: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{printable(self.path.as_posix())} belongs to no example"

    def accept(self) -> None:
        """Remove it."""
        atomic.remove(self.path)


Change = FileDifference | Orphan


def differences(
    folder: pathlib.Path, printed: Printed, *, complete: bool = False
) -> Iterator[FileDifference]:
    """Yield every file of these examples that differs from the current output; of each example,
    files that it no longer prints come last.

    Golden files may lack the listing of sections, which older versions did not write, unless
    `complete` is set.
    """
    for name, files in printed.items():
        golden = _files_in(folder / name)
        lacks_sections = bool(golden) and SECTIONS not in golden and not complete
        for path in (*files, *sorted(golden.keys() - files.keys())):
            before, after = golden.get(path), files.get(path)
            if before != after and not (path == SECTIONS and lacks_sections):
                called = _called(before, files) if path == SECTIONS else ()
                yield FileDifference(folder / name / path, folder / name, before, after, called)


def _called(before: str | None, files: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line about the call of each section that the golden file lacks."""
    known = set(_section_names(before or ""))
    places: Mapping[str, Span] = files.places if isinstance(files, Files) else {}
    return tuple(
        f"{name} is called at {called_at(places[name])}"
        for name in _section_names(files.get(SECTIONS, ""))
        if before is not None and name not in known and name in places
    )


def _section_names(text: str) -> Iterator[str]:
    return (line.partition(":")[0] for line in text.split("\n") if line.startswith("comp#"))


def orphans(folder: pathlib.Path, names: Iterable[str]) -> list[Orphan]:
    """Return the entries of the folder that belong to no example with these names.

    Hidden files and a README are allowed, and what the command has read: it belongs to an example.
    """
    known = {LIST, *names}
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        Orphan(path)
        for path in entries
        if path.name not in known and not _is_kept(path) and not was_read(path)
    ]


def is_golden(folder: pathlib.Path) -> bool:
    """Return whether a folder holds golden files of programs, and nothing else.

    Other tools have files and folders of such names too.
    """
    if folder.is_symlink() or not folder.is_dir():
        return False
    entries = list(folder.iterdir())
    others = [path for path in entries if not (path / PROGRAM).is_file()]
    return all(map(_is_kept, others)) and (not entries or len(others) < len(entries))


def _is_kept(path: pathlib.Path) -> bool:
    # A temporary file was left by an update that was killed, so it is not kept.
    hidden = path.name.startswith(".") and not atomic.is_leftover(path.name)
    return hidden or path.name.startswith("README")


def write(folder: pathlib.Path, printed: Printed) -> None:
    """Replace the folders of these examples by the current output: all of them or none.

    Raises:
      GoldenError: they cannot be written, and are unchanged.
      LoadError: the command has read one of their files; all are unchanged.
    """
    encoded = {
        folder / name: {path: content.encode() for path, content in files.items()}
        for name, files in printed.items()
    }
    for name in printed:
        check_no_link(folder / name)
        check_no_input(folder / name)
    try:
        atomic.write_folders(encoded)
    except OSError as error:
        raise GoldenError(
            "E851",
            f"cannot write to {folder}: {error.strerror}",
            notes=("no golden file was changed",),
            help="make space on the disk, or let the folder be written",
        ) from error


def check_no_link(path: pathlib.Path) -> None:
    """Check that no golden file or folder is a link, behind which something else would change.

    Raises:
      GoldenError: it is one.
    """
    if path.is_symlink():
        raise GoldenError(
            "E864",
            f"{path} is a link, and what it leads to is not golden",
            notes=("no golden file was changed",),
            help="put a folder or file in its place",
        )


def refuse_in_ci() -> None:
    """Refuse to update golden files in CI, where nobody reviews the changes.

    Raises:
      GoldenError: the environment variable CI is set.
    """
    if os.environ.get("CI"):
        raise GoldenError(
            "E805",
            "golden files are not updated where CI is set",
            help="update them on your machine, review the change and commit it",
        )


def _files_in(folder: pathlib.Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def _lines(text: str | None) -> list[str]:
    """Return the lines of a text, with the note that `diff` prints if the last one has no line
    end."""
    if not text:
        return []
    *lines, last = text.split("\n")
    return [*lines, last, "\\ No newline at end of file"] if last else lines
