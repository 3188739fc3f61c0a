"""The files `run.json` (a run's identity and progress) and `source.json` (its data).

`run.json` is replaced atomically after each round, which commits the round.  It holds digests of
`source.json`, the state and the metrics, to detect other versions of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tffc.runtime.data.identity import SourceIdentity, file_digest
from tffc.runtime.engines.rounds import Sampling
from tffc.runtime.runs.metrics_file import Extent
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import (
    NotJsonError,
    encode_json,
    is_count,
    is_table,
    is_text,
    read_json,
)
from tffc.support.printable import json_text

RUN, SOURCE, BATCHING = "run.json", "source.json", "batching.json"

FORMAT = "1.0"

LONGEST_RUN, LONGEST_SOURCE = 2**24, 2**32
"""The limits on the bytes of the files."""

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True, slots=True)
class RunRecord:
    """The identity and progress of a run: its finished rounds, the SHA-256 of its state, and its
    metrics.

    The state is None before the first round of a run that began without a given state.  `source` is
    the SHA-256 of the content of `source.json`.
    """

    identity: RunIdentity
    source: str
    rounds: int
    state: str | None
    metrics: Extent

    def encode(self) -> bytes:
        """Return the content of `run.json`."""
        source = self.identity.source
        return encode_json(
            {
                "format_version": FORMAT,
                **self.identity.as_json(),
                "source": {
                    "kind": source.kind,
                    "clients": len(source.clients),
                    "sha256": self.source,
                },
                "rounds": self.rounds,
                "state": None if self.state is None else {"sha256": self.state},
                "metrics": {"bytes": self.metrics.bytes, "sha256": self.metrics.digest},
            }
        )


def encode_source(source: SourceIdentity) -> bytes:
    """Return the content of `source.json`."""
    # Names of files need not be UTF-8; ASCII escapes can represent them.
    return (json_text(source.as_json(), indent=2) + "\n").encode()


@reader("the record of a run", DataError)
def read_record(folder: pathlib.Path) -> RunRecord | None:
    """Return the record of the run in a folder, or None if there is none.

    Raises:
      DataError: it is malformed, of another format version, does not match `source.json`, or cannot
        be read.
    """
    file = folder / RUN
    content = _read(file, LONGEST_RUN)
    if content is None:
        return None
    found = _object(file, content)
    _check_format(file, found)
    _check(file, found, _RUN)
    about = _read(folder / SOURCE, LONGEST_SOURCE)
    if about is None or sha256(about) != found["source"]["sha256"]:
        raise altered(folder / SOURCE, "is gone" if about is None else "was changed")
    source = _object(folder / SOURCE, about)
    _check(folder / SOURCE, source, _SOURCE)
    for key, here in (("kind", source["kind"]), ("clients", len(source["clients"]))):
        if found["source"][key] != here:
            raise altered(file, f"was changed: the {key!r} of its source is not that of {SOURCE}")
    identity = RunIdentity(
        found["form"],
        found["programs"],
        Sampling(found["clients_per_round"], found["seed"]),
        found["skip_bad_clients"],
        SourceIdentity(**source),
    )
    metrics = Extent(found["metrics"]["bytes"], found["metrics"]["sha256"])
    state = found["state"] and found["state"]["sha256"]
    return RunRecord(identity, found["source"]["sha256"], found["rounds"], state, metrics)


def encode_batching(known: Mapping[str, bool]) -> bytes:
    """Return the content of `batching.json`: the measurements of whether each kind of batch pays
    off."""
    return encode_json({"format_version": FORMAT, "pays": dict(known)})


@reader("the record of a run", DataError)
def read_batching(folder: pathlib.Path) -> dict[str, bool]:
    """Return the measurements in `batching.json`, empty if there is none.

    Raises:
      DataError: it is malformed, of another format version, or cannot be read.
    """
    file = folder / BATCHING
    content = _read(file, LONGEST_RUN)
    if content is None:
        return {}
    found = _object(file, content)
    _check_format(file, found)
    _check(file, found, _BATCHING)
    return found["pays"]


def altered(file: pathlib.Path, found: str) -> DataError:
    """Return the error for a file of a run that was changed."""
    return DataError(
        "E938",
        f"{file} {found}",
        notes=(f"{RUN} says how the run has left its files, and nobody else writes to them",),
        help="put the file back as it was, or begin another run in a new folder",
    )


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def digest_of(file: pathlib.Path) -> str | None:
    """Return the SHA-256 of a file of a run, or None if it does not exist.

    Raises:
      DataError: it cannot be read.
    """
    with reading(file):
        try:
            return file_digest(file)
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def reading(file: pathlib.Path) -> Iterator[None]:
    """Turn an OSError of the block into an error of tffc.

    Raises:
      DataError: the file cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise DataError(
            "E850",
            f"cannot read {file}: {error.strerror or error}",
            notes=("going on with a run takes all of its files",),
        ) from error


def _read(file: pathlib.Path, limit: int) -> bytes | None:
    with reading(file):
        try:
            return read_regular(file, limit)
        except FileNotFoundError:
            return None


def _object(file: pathlib.Path, content: bytes) -> dict[str, Any]:
    try:
        found = read_json(content)
    except NotJsonError as error:
        raise _malformed(file, str(error)) from None
    if not isinstance(found, dict):
        raise _malformed(file, "it is not an object")
    return found


def _check_format(file: pathlib.Path, found: Mapping[str, Any]) -> None:
    version = found.get("format_version")
    if version != FORMAT:
        of = f"of format {version}" if isinstance(version, str) else "of a format without a version"
        raise DataError(
            "E942",
            f"{file} is {of}, and this tffc goes on with runs of format {FORMAT}",
            help="use the version of tffc that began the run, or begin another in a new folder",
        )


def _check(file: pathlib.Path, found: Mapping[str, Any], shapes: _Shapes) -> None:
    for key, is_right in shapes.items():
        if key not in found:
            raise _malformed(file, f"it has no {key!r}")
        if not is_right(found[key]):
            raise _malformed(file, f"its {key!r} is not right")
    for key in found:
        if key not in shapes:
            raise _malformed(file, f"it has a {key!r}")


def _malformed(file: pathlib.Path, reason: str) -> DataError:
    return DataError(
        "E938",
        f"{file} is not what a run writes: {reason}",
        help="put the file back as it was, or begin another run in a new folder",
    )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _is_object(value: Any, shapes: _Shapes) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == shapes.keys()
        and all(is_right(value[key]) for key, is_right in shapes.items())
    )


_Shapes = Mapping[str, Callable[[Any], bool]]

_RUN: _Shapes = {
    "format_version": is_text,
    "form": is_text,
    "programs": lambda value: is_table(value, _is_digest) and "computation" in value,
    "clients_per_round": lambda value: value is None or (is_count(value) and value > 0),
    "seed": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "skip_bad_clients": lambda value: isinstance(value, bool),
    "source": lambda value: _is_object(
        value, {"kind": is_text, "clients": is_count, "sha256": _is_digest}
    ),
    "rounds": is_count,
    "state": lambda value: value is None or _is_object(value, {"sha256": _is_digest}),
    "metrics": lambda value: _is_object(value, {"bytes": is_count, "sha256": _is_digest}),
}

_BATCHING: _Shapes = {
    "format_version": is_text,
    "pays": lambda value: is_table(value, lambda pays: isinstance(pays, bool)),
}

_SOURCE: _Shapes = {
    "kind": is_text,
    "options": lambda value: is_table(value, is_text),
    "clients": lambda value: isinstance(value, list) and all(map(is_text, value)),
    "files": lambda value: is_table(value, lambda digest: digest is None or _is_digest(digest)),
}
