"""Opening and reading untrusted files.

A path may lead to a device without an end, a FIFO that nobody writes to, or a link to elsewhere.
These functions open regular files only, and read no more than the caller allows.  All refusals are
`OSError`, like the system's own; callers turn them into their errors.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from typing import BinaryIO, NamedTuple

from tffc.support.files.inputs import check_no_input, remember_status

KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


CHUNK = 2**20
"""The number of bytes that are read at a time if the size is not known."""

BOOT = "/proc/sys/kernel/random/boot_id"
"""The file in which Linux has an identifier of the current boot."""

HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""The names of files that were opened before and passed on by the shell."""


def kind_of(mode: int) -> str:
    """Return what the mode of a file says that it is."""
    return KINDS.get(stat.S_IFMT(mode), "something else")


class NotRegularFileError(OSError):
    """The path is not a regular file, or lies outside of the allowed folder."""


class TooLargeError(OSError):
    """A file with more content than allowed."""


class Identity(NamedTuple):
    """Tells a file from another one in its place, and from the same file after a change.

    Times are in nanoseconds.  `inode` and `changed` are valid on one machine only: on this one if
    `machine` is None.
    """

    size: int
    modified: int
    inode: int
    changed: int
    machine: str | None = None

    @classmethod
    def of(cls, found: os.stat_result) -> Identity:
        """Return the identity of the file with this status."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)

    def elsewhere(self) -> Identity:
        """Return the identity for a process that may be on another machine."""
        return self._replace(machine=self.machine or this_machine())

    @property
    def is_here(self) -> bool:
        """Whether all parts of the identity are valid on this machine."""
        return self.machine in (None, this_machine())

    def is_of(self, found: os.stat_result) -> bool:
        """Return whether the file with this status is unchanged, as far as this machine can
        tell."""
        if (self.size, self.modified) != (found.st_size, found.st_mtime_ns):
            return False
        return not self.is_here or (self.inode, self.changed) == (found.st_ino, found.st_ctime_ns)


@functools.cache
def this_machine() -> str:
    """Return a name that is unique to this machine and changes with every boot."""
    # Imported late: few commands need it.
    import platform

    try:
        with open(BOOT) as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{platform.node()} {boot}"


def find_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Return the status of a regular file.

    Raises:
      OSError: there is no file, or it is not a regular one.
    """
    try:
        found = os.stat(path)
    except ValueError as error:
        # The path contains a zero character, or cannot be encoded.
        raise NotRegularFileError(errno.EINVAL, f"this is not a path: {error}") from None
    _check_kind(found)
    return found


def open_regular(
    path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None
) -> BinaryIO:
    """Open a regular file for reading, without ever blocking.

    Links are followed; with `within`, only to files in that folder, wherever in the path the link
    is.

    Raises:
      OSError: the file cannot be opened, is not a regular one, or lies outside of the folder.
    """
    find_regular(path)
    if within is not None:
        check_within(path, within)
    # The file may have become a FIFO since: O_NONBLOCK does not wait for a writer, and the kind is
    # checked again below.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        _check_kind(status)
        remember_status(status, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(
    path: str | os.PathLike[str], limit: int, within: str | os.PathLike[str] | None = None
) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; see `open_regular`.

    Raises:
      OSError: the file cannot be read, is not a regular one, or has more content.
    """
    with open_regular(path, within) as file:
        # A file that claims to be larger is not read at all: sparse files cost nothing to make.
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise _too_large(limit)
        return read_all(file, limit, size)


def read_named(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a file that a user names, a regular one of at most `limit` bytes.

    A file that a shell has opened, as for `<(command)`, is read to its end instead.

    Raises:
      OSError: the file cannot be read, is not a regular one, or has more content.
    """
    if not os.fspath(path).startswith(HANDED_OVER):
        return read_regular(path, limit)
    with open(path, "rb") as file:
        remember_status(os.fstat(file.fileno()), path)
        return read_all(file, limit)


def read_all(file: BinaryIO, limit: int, expected: int = CHUNK) -> bytes:
    """Return the rest of an open file, at most `limit` bytes; `expected` is a guess of its size.

    Raises:
      OSError: it cannot be read, or has more than `limit` bytes.
    """
    # Reading piece by piece allocates no more than there is content, whatever the limit.
    pieces = [file.read(expected + 1)]
    total = len(pieces[0])
    while pieces[-1] and total <= limit:
        pieces.append(file.read(CHUNK))
        total += len(pieces[-1])
    if total > limit:
        raise _too_large(limit)
    return pieces[0] if total == len(pieces[0]) else b"".join(pieces)


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(errno.EFBIG, f"it has more than {limit} bytes")


def write_over(path: str | os.PathLike[str], content: bytes) -> None:
    """Write content to whatever a path leads to, or to a new file.

    A FIFO, such as the shell's for `>(command)`, must have a reader already; it is not waited for.

    Raises:
      LoadError: the command has read it.
      OSError: it cannot be written.
    """
    check_no_input(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
            raise NotRegularFileError(errno.ENXIO, "it is a FIFO that nobody reads") from None
        raise
    with os.fdopen(descriptor, "wb") as file:
        os.set_blocking(descriptor, True)
        file.write(content)


def check_within(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Check that a path, with all links resolved, lies in a folder.

    Raises:
      OSError: it does not, or cannot be found.
    """
    root = os.path.realpath(folder)
    found = os.path.realpath(path, strict=True)
    if os.path.commonpath((root, found)) != root:
        raise NotRegularFileError(errno.EXDEV, f"it is a link to {found}, outside of its folder")


def _check_kind(found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind != stat.S_IFREG:
        raise NotRegularFileError(errno.EINVAL, f"it is {kind_of(kind)}, expected a regular file")
