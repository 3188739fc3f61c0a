"""Where models and apps are written: a folder of their own, whole or not at all."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping

from tffc.errors import ExportError
from tffc.export.saved_model import FILE
from tffc.export.tflite import SUFFIX
from tffc.files import atomic

MODELS = re.compile(rf"{re.escape(FILE)}|[^/]*{re.escape(SUFFIX)}")
"""The files that a folder of models may hold."""


def check_target(
    path: pathlib.Path, *, replace: bool, own: re.Pattern[str] = MODELS, holding: str = "models"
) -> None:
    """Check that models, or what else has files `own`, may be written as the folder `path`.

    Raises:
      ExportError: something else is there, or what is written is and is not to be replaced.
    """
    if path.exists() and not path.is_dir():
        raise ExportError("E954", f"{path} is not a folder", help="name a new folder")
    ends = (p for p in path.rglob("*") if not p.is_dir() or not any(p.iterdir()))
    found = sorted(end.relative_to(path).as_posix() for end in ends)
    others = [name for name in found if own.fullmatch(name) is None]
    if others:
        raise ExportError(
            "E955",
            f"the folder {path} is in use: it holds {others[0]}",
            help="name a new folder",
        )
    if found and not replace:
        raise ExportError(
            "E956",
            f"the folder {path} already holds {holding}",
            help="replace it, or name another folder",
        )


def write_exported(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
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
