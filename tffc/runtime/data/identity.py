"""The identity of data: the names of its clients and the content of its files.

Paths and times do not count: a copy is the same data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tffc.runtime.data.source import ClientSource, DataSet, Origin
from tffc.support.files.reading import open_regular

MOST_NAMES = 5
"""The most clients or files that are named where two sources differ."""


@dataclasses.dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The kind of a source, the options it was opened with, its clients and its files.

    `files` has the SHA-256 of every file, by its path relative to the folder that they share; None
    for a file that cannot be read.
    """

    kind: str
    options: Mapping[str, str]
    clients: Sequence[str]
    files: Mapping[str, str | None]

    def as_json(self) -> dict[str, Any]:
        """Return the identity as a JSON object."""
        return dataclasses.asdict(self)


@runtime_checkable
class HasOrigin(Protocol):
    """Data that says where it comes from."""

    def origin(self) -> Origin: ...


def source_identity(source: ClientSource | DataSet) -> SourceIdentity:
    """Return the identity of a source, reading all its files once.

    Of data that is in no file, or does not say where it comes from, only the clients are known.
    """
    origin = source.origin() if isinstance(source, HasOrigin) else Origin("python", {}, [])
    options = {name: value for name, value in origin.options.items() if value is not None}
    folders = [os.path.dirname(os.path.abspath(path)) for path in origin.files]
    folder = os.path.commonpath(folders) if folders else os.curdir
    files = {os.path.relpath(path, folder): _digest(path) for path in origin.files}
    return SourceIdentity(origin.kind, options, source.clients, files)


def source_differences(begun: SourceIdentity, now: SourceIdentity) -> list[str]:
    """Describe what differs between the source at the beginning and the source now."""
    differences: list[str] = []
    if begun.kind != now.kind:
        differences.append(f"its data is of the kind {begun.kind}, and here of the kind {now.kind}")
    for name in sorted({*begun.options, *now.options}):
        old, new = begun.options.get(name), now.options.get(name)
        if old != new:
            differences.append(f"its data has {_option(name, old)}, and here {_option(name, new)}")
    gone, come = _without(begun.clients, now.clients), _without(now.clients, begun.clients)
    differences += _named("clients of its data are gone", gone)
    differences += _named("clients of its data are new", come)
    # Where clients come and go their files do too, so only files that exist in both are compared.
    names = begun.files.keys() & now.files.keys() if gone or come else {*begun.files, *now.files}
    changed = (path for path in sorted(names) if begun.files.get(path) != now.files.get(path))
    return differences + _named("files of its data are not as they were", changed)


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = frozenset(others)
    return [name for name in names if name not in known]


def _option(name: str, value: str | None) -> str:
    return f"no option {name}" if value is None else f"{name}={value}"


def _named(what: str, names: Iterable[str]) -> list[str]:
    names = list(names)
    shown = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return [f"{what}: {shown}{more}"] if names else []


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a regular file.

    Raises:
      OSError: it cannot be read, or is not a regular file.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while content := file.read(2**20):
            digest.update(content)
    return digest.hexdigest()


def _digest(path: str) -> str | None:
    try:
        return file_digest(path)
    except OSError:
        return None
