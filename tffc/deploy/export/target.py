"""Writing models and apps to a new folder, completely or not at all, and comparing those there."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Mapping

from tffc.support.errors import ExportError
from tffc.support.files import atomic
from tffc.support.files.inputs import check_no_input
from tffc.support.files.reading import TooLargeError, read_regular

FILE = "saved_model.pb"
"""The file of a SavedModel."""

SUFFIX = ".tflite"
"""The suffix of LiteRT models."""

MODELS = re.compile(rf"{re.escape(FILE)}|[^/]*{re.escape(SUFFIX)}")
"""The files that a folder of models may hold."""


MOST_NAMED = 20
"""The most files of a folder that a refusal names because no export writes them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Destination:
    """The folder or file of an export, which may replace an earlier one, or is compared with it."""

    path: pathlib.Path
    replaces: bool = False
    compares: bool = False

    def check_folder(self, own: re.Pattern[str] = MODELS, holding: str = "models") -> None:
        """Check that files may be written, if they are to be; see `check_target`."""
        if not self.compares:
            check_target(self.path, replace=self.replaces, own=own, holding=holding)

    def check_file(self, suffix: str) -> None:
        """Check that an export may be written as a file with this suffix.

        Raises:
          ExportError: its name has another suffix, or it exists and may not be replaced.
        """
        if self.path.suffix != suffix:
            raise ExportError(
                "E861",
                f"the name of the file ends in {suffix}, not {self.path}",
                help=f"give the file a name that ends in {suffix}",
            )
        if self.path.exists() and not self.replaces and not self.compares:
            raise ExportError(
                "E956",
                f"{self.path} already exists",
                help="replace it, or name another file",
                remedy="replace",
            )


def check_target(
    path: pathlib.Path, *, replace: bool, own: re.Pattern[str] = MODELS, holding: str = "models"
) -> None:
    """Check that files whose names match `own`, by default models, may be written to a folder.

    Raises:
      ExportError: there are other files, or earlier output without `replace`.
    """
    if path.exists() and not path.is_dir():
        raise ExportError("E861", f"{path} is not a folder", help="name a new folder")
    is_there = False
    for name in _contents(path):
        is_there = True
        if own.fullmatch(name) is None:
            raise ExportError(
                "E861", f"the folder {path} is in use: it holds {name}", help="name a new folder"
            )
    if is_there and not replace:
        raise ExportError(
            "E956",
            f"the folder {path} already holds {holding}",
            help="replace it, or name another folder",
            remedy="replace",
        )


def _contents(path: pathlib.Path) -> Iterator[str]:
    """Yield the relative paths of the files, links and empty folders in a folder.

    The folder may be a large one that the user names by mistake, so the caller can stop early.
    """
    for place, folders, files in os.walk(path):
        folder = pathlib.Path(place).relative_to(path)
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        if not folders and not files and place != str(path):
            yield folder.as_posix()
        for name in sorted([*files, *links]):
            yield (folder / name).as_posix()
        folders.sort()


def write_exported(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
    """Replace the folder at `path` by one with these files.

    Raises:
      ExportError: it cannot be written, and is unchanged.
      LoadError: the command has read a file in it.
    """
    check_no_input(path)
    try:
        atomic.write_folder(path, files)
    except OSError as error:
        raise ExportError(
            "E851",
            f"cannot write the folder {path}: {error.strerror}",
            notes=("nothing was written",),
            help="give a path in a folder that exists and can be written",
        ) from error


def check_exported(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
    """Check that a folder, or one file of it, holds what an export writes, and nothing else.

    Raises:
      ExportError: it does not.
    """
    if path.is_dir():
        others = (name for name in _contents(path) if name not in files)
        names = [*files, *itertools.islice(others, MOST_NAMED)]
        compared = {name: _difference(path / name, files.get(name), path) for name in names}
    else:
        content = files.get("", files.get(path.name))
        compared = {path.name: _difference(path, content, path.parent)}
    differences = {name: reason for name, reason in compared.items() if reason}
    if differences:
        raise ExportError(
            "E866",
            f"{path} does not hold what this exports",
            notes=tuple(f"{name}: {reason}" for name, reason in differences.items()),
            help="export it again and use that, or check it with the versions of tffc and "
            "TensorFlow that wrote it",
        )


def _difference(path: pathlib.Path, content: bytes | None, folder: pathlib.Path) -> str:
    """Return how a file in a folder differs from the content that it should have; empty if it does
    not."""
    if content is None:
        return "it is not part of the export"
    try:
        is_equal = read_regular(path, len(content), within=folder) == content
    except FileNotFoundError:
        return "it is not there"
    except TooLargeError:
        is_equal = False
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return "" if is_equal else "it has other content"
