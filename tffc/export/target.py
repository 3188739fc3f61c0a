"""Where models are written: a folder of their own, whole or not at all."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from tffc.errors import ExportError
from tffc.export.saved_model import FILE
from tffc.export.tflite import SUFFIX
from tffc.files import atomic


def check_target(path: pathlib.Path, *, replace: bool) -> None:
    """Check that models may be written as the folder `path`.

    Raises:
      ExportError: something else is there, or models that are not to be replaced.
    """
    if path.exists() and not path.is_dir():
        raise ExportError("E954", f"{path} is not a folder", help="name a new folder")
    found = sorted(file.name for file in path.iterdir()) if path.exists() else []
    others = [name for name in found if name != FILE and not name.endswith(SUFFIX)]
    if others:
        raise ExportError(
            "E955",
            f"the folder {path} is in use: it holds {others[0]}",
            help="name a new folder",
        )
    if found and not replace:
        raise ExportError(
            "E956",
            f"the folder {path} already holds models",
            help="replace them, or name another folder",
        )


def write_models(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
    """Replace the folder at `path` by one with these files.

    Raises:
      ExportError: it cannot be written; what was there is as it was.
    """
    try:
        atomic.write_folder(path, files)
    except OSError as error:
        raise ExportError(
            "E957",
            f"cannot write the folder {path}: {error.strerror}",
            notes=("nothing was written",),
            help="give a path in a folder that exists and can be written",
        ) from error
