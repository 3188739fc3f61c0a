"""Writing models and apps to a new folder, completely or not at all."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Iterator, Mapping

from tffc.support.errors import ExportError
from tffc.support.files import atomic
from tffc.support.files.inputs import check_no_input

FILE = "saved_model.pb"
"""The file of a SavedModel."""

SUFFIX = ".tflite"
"""The suffix of LiteRT models."""

MODELS = re.compile(rf"{re.escape(FILE)}|[^/]*{re.escape(SUFFIX)}")
"""The files that a folder of models may hold."""


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
