"""Files that commands write."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tffc.errors import LoadError

if TYPE_CHECKING:
    from tffc.ir.nodes import Node


def write_output(path: pathlib.Path, content: bytes) -> None:
    """Writes a file whole or not at all.

    Raises:
      LoadError: it can not be written.
    """
    from tffc.backends.atomic import write_file

    try:
        write_file(path, content)
    except OSError as error:
        raise LoadError("E851", f"can not write {path}: {error.strerror}") from None


def write_section_folder(programs: Iterable[Node], folder: pathlib.Path) -> None:
    """Writes the compiled sections of programs to a folder, where typed texts find them.

    Raises:
      LoadError: they can not be written.
    """
    from tffc.ir.notation import write_sections

    try:
        for program in programs:
            write_sections(program, folder)
    except OSError as error:
        raise LoadError("E854", f"can not write sections to {folder}: {error.strerror}") from None
