"""A node's store of bundle files that its own copy only names; each is sent once and kept.

A file is named by its SHA-256, which is checked when it arrives and when it is read.  A node
accepts only files that its own copy of the bundle names.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, TypeAlias

import numpy as np

from tffc.deploy.federation.messages import Record, malformed
from tffc.deploy.federation.settings import NodeSettings
from tffc.language.values.resources import read_bytes
from tffc.runtime.data.identity import file_digest
from tffc.support.errors import DataError
from tffc.support.files import atomic
from tffc.support.guards import is_array

DIGEST = re.compile(r"[0-9a-f]{64}")

Content: TypeAlias = bytes | memoryview
"""The content of a file, which may be mapped into memory."""

Fetch: TypeAlias = Callable[[str, int], Content]
"""A function that returns the content of a file that is only named, given its SHA-256 and size."""

LACKS, KEEP = "lacks", "keep"
"""The kinds of requests that ask which files a node lacks, and that send it files."""


class Store:
    """Files by hash, in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def lacks(self, digests: Sequence[str]) -> list[str]:
        """Return the hashes of files that are missing or damaged."""
        return [digest for digest in digests if not self._is_whole(digest)]

    def _is_whole(self, digest: str) -> bool:
        try:
            return file_digest(self._folder / digest) == digest
        except OSError:
            return False

    def fetch(self, digest: str, size: int) -> Content:
        """Return the content of a file; empty if it is missing, or of another size."""
        try:
            content = read_bytes(self._folder / digest).data
        except OSError:
            return b""
        return content if len(content) == size else b""

    def put(self, content: Content) -> str:
        """Save a file; return its hash.

        Raises:
          DataError: it cannot be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / digest
            atomic.replace_file(path, lambda file: _write(file, content), is_shared=True)
        except OSError as error:
            raise DataError(
                "E851",
                f"cannot keep a file of the bundle in {self._folder}: {error.strerror}",
                help="let the folder be written, or name another one as 'cache'",
            ) from error
        return digest


def store_of(settings: NodeSettings) -> Store:
    """Return the store of a node, in the user's cache if its configuration names no folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Store(settings.cache or pathlib.Path(base) / "tffc" / "flower")


def answer_lacks(store: Store, named: Mapping[str, int]) -> Record:
    """Reply which of the files that an app names are missing."""
    return Record({"digests": ",".join(store.lacks(sorted(named)))}, ())


def answer_keep(store: Store, named: Mapping[str, int], record: Record) -> Record:
    """Save the files that the server sends; reply with their hashes.

    Raises:
      ExecutionError: the app does not name one of the files.
      DataError: a file cannot be written.
    """
    digests: list[str] = []
    for array in record.arrays:
        content = _bytes(array)
        if named.get(hashlib.sha256(content).hexdigest()) != len(content):
            raise malformed("it brings a file that the app does not name")
        digests.append(store.put(content))
    return Record({"digests": ",".join(digests)}, ())


def read_digests(record: Record) -> list[str]:
    """Return the hashes in a node's reply, ignoring anything else."""
    text = record.entries.get("digests")
    words = text.split(",") if isinstance(text, str) else ()
    return [word for word in words if DIGEST.fullmatch(word)]


def files_record(files: Sequence[Content]) -> Record:
    """Return a record of files, as arrays of bytes, which a federation may send in chunks."""
    return Record({}, [np.frombuffer(content, np.uint8) for content in files])


def _write(file: BinaryIO, content: Content) -> None:
    file.write(content)


def _bytes(array: object) -> memoryview:
    if not is_array(array) or array.dtype != np.uint8 or array.ndim != 1:
        raise malformed("it brings an array that is not a file")
    return np.ascontiguousarray(array).data
