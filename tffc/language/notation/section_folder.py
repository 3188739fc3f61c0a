"""The compiled sections of a typed text, which are kept beside it in files named by their
hashes."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterator, Mapping

from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.language.values.resources import RESOURCES, write_files
from tffc.language.wire.python_functions import check_may_leave
from tffc.language.wire.resources import resources_of, sizes_of
from tffc.support.errors import NotationError
from tffc.support.files.atomic import replace_file
from tffc.support.files.inputs import check_no_input
from tffc.support.files.reading import read_regular


def digest(payload: bytes) -> str:
    """Return the SHA-256 of a section's payload, in hexadecimal."""
    return hashlib.sha256(payload).hexdigest()


def sections(node: Node) -> dict[str, bytes]:
    """Return the payloads of all sections in a program, by their digests, in the order of first
    use."""
    compiled = (inner for inner in walk(node) if isinstance(inner, Compiled))
    return {digest(section.payload): section.payload for section in compiled}


def write_sections(node: Node, folder: pathlib.Path) -> None:
    """Write each section of a program to a file named `DIGEST.pb` in the folder, which is made if
    there are any, and its resources to a folder in that.

    A link in the place of a section is replaced, not followed.

    Raises:
      LoadError: the command has read what it would replace.
      OSError: a section cannot be written.
      LanguageValueError: the program calls functions of Python, which cannot leave this process.
    """
    check_may_leave(node)
    for key, payload in sections(node).items():
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{key}.pb"
        if not _holds(file, payload):
            check_no_input(file)
            replace_file(file, payload, is_shared=True)
    write_files(sizes_of(resources_of([node])), folder / RESOURCES)


def _holds(file: pathlib.Path, payload: bytes) -> bool:
    try:
        return not file.is_symlink() and read_regular(file, len(payload)) == payload
    except OSError:
        return False


class SectionFolder(Mapping[str, bytes]):
    """The sections in a folder that `write_sections` wrote, by their digests."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def __getitem__(self, key: str) -> bytes:
        try:
            return read_regular(self._folder / f"{key}.pb", MAX_MESSAGE)
        except FileNotFoundError:
            raise KeyError(key) from None
        except OSError as error:
            raise NotationError(
                "E626",
                f"cannot read the section {key} in {self._folder}: {error.strerror}",
                help="write the sections again, with the text that they belong to",
            ) from None

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in sorted(self._folder.glob("*.pb")))

    def __len__(self) -> int:
        return sum(1 for _ in self)
