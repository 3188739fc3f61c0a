"""The arrays of resources, by the SHA-256 of their bytes: one store for the process.

Arrays come from programs that are traced here, from other processes, and from files, of which
nothing is read before the array is used.  Then it is mapped into memory, and its digest is checked.
All arrays are read-only and begin at an address by which TensorFlow and JAX use them as they are,
without a copy.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO

from tffc.graphs.resources import ResourceNode
from tffc.language.dtypes import BY_NUMBER, DType
from tffc.support.errors import LoadError
from tffc.support.files.atomic import replace_file
from tffc.support.files.inputs import check_no_input
from tffc.support.files.reading import open_regular, read_all
from tffc.support.guards import Array

RESOURCES = "resources"
"""The name of folders with the files of resources, each named by its digest."""

CHUNK = 2**22
"""The bytes that are hashed, written and read at a time."""

ALIGNMENT = 64
"""The alignment of arrays that TensorFlow and JAX use where they are."""

LEAST_MAPPED = 2**20
"""The least bytes of a file that is mapped into memory."""

FETCH_HELP = "copy the file from where the program was written, or write the program again"


class ResourceStore:
    """The resources that this process knows: their bytes, or how to read them.

    What was once used stays as long as the process lives.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._sources: dict[str, tuple[str, Callable[[], Array]]] = {}
        self._typed: dict[ResourceNode, Array] = {}
        self._reading = threading.Lock()

    def add(self, array: Array) -> str:
        """Copy an array of numbers into the store, and return its digest."""

        order = array.dtype.newbyteorder("<")
        content = aligned(array.size * array.dtype.itemsize)
        content.view(order).reshape(array.shape)[...] = array
        content.flags.writeable = False
        digest = digest_of(content)
        self._arrays.setdefault(digest, content)
        return digest

    def add_file(self, digest: str, path: pathlib.Path) -> None:
        """Note the file that has a resource."""
        self.add_source(digest, str(path), functools.partial(read_bytes, path))

    def add_source(self, digest: str, name: str, read: Callable[[], Array]) -> None:
        """Note a function that reads a resource from what is called `name` in errors, when it is
        first used; bytes that it returns never change."""
        with self._reading:
            self._sources[digest] = name, read

    def array(self, resource: ResourceNode) -> Array:
        """Return a resource as an array, always the same one.

        Raises:
          LoadError: it is not known, or its file is missing, damaged or of another size.
        """
        known = self._typed.get(resource)
        if known is not None:
            return known
        flat = self.content(resource.digest)
        if len(flat) != resource.size:
            raise refusal(
                resource.digest, f"has {len(flat)} bytes, not the {resource.size} of its type"
            )
        kind = BY_NUMBER[resource.dtype]
        if kind is DType.BOOL and len(flat) and int(flat.max()) > 1:
            raise refusal(resource.digest, "has bytes that are no truth values")
        array = flat.view(kind.dtype).reshape(resource.shape)
        return self._typed.setdefault(resource, array)

    def content(self, digest: str) -> Array:
        """Return the bytes of a resource as an array of them.

        Raises:
          LoadError: as `array` does.
        """
        # Threads that need the same bytes wait for the one that reads them.
        with self._reading:
            known = self._arrays.get(digest)
            if known is None:
                known = self._arrays[digest] = self._read(digest)
                del self._sources[digest]
        return known

    def _read(self, digest: str) -> Array:
        """Return the bytes of a resource from its source, after checking their digest."""
        if digest not in self._sources:
            raise refusal(digest, "is not here")
        name, read = self._sources[digest]
        try:
            content = well_placed(read())
        except OSError as error:
            raise refusal(digest, f"cannot be read from {name}: {error.strerror}") from None
        actual = digest_of(content)
        if actual != digest:
            raise refusal(digest, f"is damaged: the SHA-256 of {name} is {actual}")
        return content


def aligned(size: int) -> Array:
    """Return that many zero bytes at the beginning of a page."""
    import numpy as np

    # An empty mapping is refused.
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)[:size]


def byte_array(content: bytes | memoryview) -> Array:
    """Return bytes as an array of them."""
    import numpy as np

    return np.frombuffer(content, np.uint8)


def well_placed(content: Array) -> Array:
    """Return bytes at an address by which TensorFlow and JAX use them without a copy."""
    if content.ctypes.data % ALIGNMENT == 0:
        return content
    copied = aligned(len(content))
    copied[:] = content
    copied.flags.writeable = False
    return copied


def digest_of(content: Array) -> str:
    """Return the SHA-256 of bytes."""
    hashed = hashlib.sha256()
    for start in range(0, len(content), CHUNK):
        hashed.update(content[start : start + CHUNK].data)
    return hashed.hexdigest()


def read_bytes(path: pathlib.Path) -> Array:
    """Return the bytes of a file: of a large one, as they are on the disk.

    A mapped file stays open, so small ones, of which models have many, are not mapped.

    Raises:
      OSError: it cannot be read.
    """
    import numpy as np

    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size >= LEAST_MAPPED:
            return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8)
        content = aligned(size)
        content[:] = np.frombuffer(read_all(file, size, size), np.uint8)
        content.flags.writeable = False
        return content


def refusal(digest: str, reason: str) -> LoadError:
    """Return the refusal of a resource whose bytes are not right."""
    refused = LoadError("E341", f"the resource {digest} {reason}", help=FETCH_HELP)
    refused.holds_values = False  # which are those of clients
    return refused


STORE = ResourceStore()
"""The one store of this process."""


def array_of(resource: ResourceNode) -> Array:
    """Return a resource as an array; see `ResourceStore.array`."""
    return STORE.array(resource)


def writer_of(digest: str) -> Callable[[BinaryIO], None]:
    """Return a function that writes the bytes of a resource into a file.

    Raises:
      LoadError: as `ResourceStore.content` does.
    """
    content = STORE.content(digest)

    def write(file: BinaryIO) -> None:
        for start in range(0, len(content), CHUNK):
            file.write(content[start : start + CHUNK].data)

    return write


def write_files(digests: Iterable[str], folder: pathlib.Path) -> None:
    """Write resources to files named by their digests in a folder, which is made if there are any.

    Raises:
      LoadError: as `ResourceStore.content` does.
      OSError: a file cannot be written.
    """
    for digest in digests:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / digest
        if not _holds(path, digest):
            check_no_input(path)
            replace_file(path, writer_of(digest), is_shared=True)


def _holds(path: pathlib.Path, digest: str) -> bool:
    """Tell whether a file, not a link, has a resource."""
    try:
        return not path.is_symlink() and digest_of(read_bytes(path)) == digest
    except OSError:
        return False


def find_files(sizes: Mapping[str, int], folder: pathlib.Path) -> None:
    """Note the files of resources in a folder, each named by its digest.

    Raises:
      LoadError: one is missing, or of another size.
    """
    for digest, size in sizes.items():
        path = folder / digest
        try:
            with open_regular(path, within=folder) as file:
                length = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise refusal(digest, f"cannot be read from {path}: {error.strerror}") from None
        if length != size:
            raise refusal(digest, f"has {size} bytes, and {path} has {length}")
        STORE.add_file(digest, path)
