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
from collections.abc import Callable, Generator, Mapping
from typing import Any

from tffc.runtime.data.identity import SourceIdentity, file_digest
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.sampling import is_rate
from tffc.runtime.runs.metrics_file import Extent
from tffc.runtime.runs.privacy_record import PRIVACY, PrivacyRecord, is_privacy
from tffc.runtime.runs.run_identity import (
    GROUPS,
    POISSON,
    TIMING,
    RunIdentity,
    Timing,
    sampling_from_json,
)
from tffc.support.errors import DataError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import (
    NotJsonError,
    encode_json,
    is_count,
    is_object,
    is_table,
    is_text,
    read_json,
)
from tffc.support.guards import is_list
from tffc.support.printable import json_text

RUN, SOURCE, BATCHING = "run.json", "source.json", "batching.json"

FORMAT = "1.0"

ORIGIN = "origin"
"""The key of the origin of the first state, which runs without one lack."""

BEGUN_BY = "tffc"
"""The key of the version of tffc that began the run, in every format."""

LONGEST_RUN, LONGEST_SOURCE = 2**24, 2**32
"""The limits on the bytes of the files."""

DIGEST = re.compile(r"[0-9a-f]{64}")
SECRET = re.compile(r"[0-9a-f]{32}")
"""A seed that is secret."""


@dataclasses.dataclass(frozen=True, slots=True)
class StateOrigin:
    """Where the first state of a run comes from: the program that saved it, if known, after which
    round, and the SHA-256 of the file."""

    program: str | None
    rounds: int
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True)
class RunRecord:
    """The identity and progress of a run: its finished rounds, the SHA-256 of its state, and its
    metrics.

    The state is None before the first round of a run that began without a given state, whose
    `origin` is None too.  `source` is the SHA-256 of the content of `source.json`.  `begun_by` is
    the version of tffc that began the run, None if its folder does not say.
    """

    identity: RunIdentity
    source: str
    rounds: int
    state: str | None
    metrics: Extent
    origin: StateOrigin | None = None
    begun_by: str | None = None

    def encode(self) -> bytes:
        """Return the content of `run.json`."""
        source = self.identity.source
        return encode_json(
            {
                "format_version": FORMAT,
                **({} if self.begun_by is None else {BEGUN_BY: self.begun_by}),
                **self.identity.as_json(),
                "source": {
                    "kind": source.kind,
                    "clients": len(source.clients),
                    "sha256": self.source,
                },
                "rounds": self.rounds,
                "state": None if self.state is None else {"sha256": self.state},
                "metrics": {"bytes": self.metrics.bytes, "sha256": self.metrics.digest},
                **({} if self.origin is None else {ORIGIN: dataclasses.asdict(self.origin)}),
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
    record = _object(file, content)
    _check_format(file, record)
    _check(file, record, {**_RUN, **{key: _MAY_BE[key] for key in _MAY_BE if key in record}})
    _check_sampling(file, record)
    about = _read(folder / SOURCE, LONGEST_SOURCE)
    if about is None or sha256(about) != record["source"]["sha256"]:
        raise altered(folder / SOURCE, "is gone" if about is None else "was changed")
    source = _object(folder / SOURCE, about)
    _check(folder / SOURCE, source, _SOURCE)
    for key, here in (("kind", source["kind"]), ("clients", len(source["clients"]))):
        if record["source"][key] != here:
            raise altered(file, f"was changed: the {key!r} of its source is not that of {SOURCE}")
    identity = RunIdentity(
        record["form"],
        record["programs"],
        sampling_from_json(record),
        record["skip_bad_clients"],
        SourceIdentity(**source),
        ClientGroups(**record[GROUPS]) if GROUPS in record else None,
        timing=Timing.from_json(record[TIMING]) if TIMING in record else None,
        privacy=PrivacyRecord.from_json(record[PRIVACY]) if PRIVACY in record else None,
    )
    metrics = Extent(record["metrics"]["bytes"], record["metrics"]["sha256"])
    state = record["state"] and record["state"]["sha256"]
    origin = StateOrigin(**record[ORIGIN]) if ORIGIN in record else None
    digest = record["source"]["sha256"]
    begun_by = record.get(BEGUN_BY)
    return RunRecord(identity, digest, record["rounds"], state, metrics, origin, begun_by)


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
    measurements = _object(file, content)
    _check_format(file, measurements)
    _check(file, measurements, _BATCHING)
    return measurements["pays"]


def altered(file: pathlib.Path, reason: str) -> DataError:
    """Return the error for a file of a run that was changed."""
    return DataError(
        "E938",
        f"{file} {reason}",
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
def reading(file: pathlib.Path) -> Generator[None]:
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
        fields = read_json(content)
    except NotJsonError as error:
        raise _malformed(file, str(error)) from None
    if not is_object(fields):
        raise _malformed(file, "it is not an object")
    return fields


def _check_format(file: pathlib.Path, fields: Mapping[str, Any]) -> None:
    version = fields.get("format_version")
    if version != FORMAT:
        of = f"of format {version}" if isinstance(version, str) else "of a format without a version"
        begun_by = fields.get(BEGUN_BY)
        began = f"tffc {begun_by}, which" if is_text(begun_by) else "the version of tffc that"
        raise DataError(
            "E942",
            f"{file} is {of}, and this tffc goes on with runs of format {FORMAT}",
            help=f"use {began} began the run, or begin another in a new folder",
        )


def _check(file: pathlib.Path, fields: Mapping[str, Any], shapes: _Shapes) -> None:
    for key, is_right in shapes.items():
        if key not in fields:
            raise _malformed(file, f"it has no {key!r}")
        if not is_right(fields[key]):
            raise _malformed(file, f"its {key!r} is not right")
    for key in fields:
        if key not in shapes:
            raise _malformed(file, f"it has a {key!r}")


def _check_sampling(file: pathlib.Path, record: Mapping[str, Any]) -> None:
    """Check that a round has a number of clients or a rate, and one seed."""
    poisson = record.get(POISSON)
    if poisson is not None and record["clients_per_round"] is not None:
        raise _malformed(file, f"it has both a 'clients_per_round' and a {POISSON!r}")
    is_secret = poisson is not None and poisson["secret_seed"] is not None
    if is_secret != (record["seed"] is None):
        raise _malformed(file, "its 'seed' is not right")


def _malformed(file: pathlib.Path, reason: str) -> DataError:
    return DataError(
        "E938",
        f"{file} is not what a run writes: {reason}",
        help="put the file back as it was, or begin another run in a new folder",
    )


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _is_seed(text: str) -> bool:
    return SECRET.fullmatch(text) is not None


def _is_object(value: object, shapes: _Shapes) -> bool:
    return (
        is_object(value)
        and value.keys() == shapes.keys()
        and all(is_right(value[key]) for key, is_right in shapes.items())
    )


def _is_origin(value: object) -> bool:
    return _is_object(
        value,
        {
            "program": lambda program: program is None or is_text(program),
            "rounds": is_count,
            "sha256": _is_digest,
        },
    )


_Shapes = Mapping[str, Callable[[Any], bool]]

_RUN: _Shapes = {
    "format_version": is_text,
    "form": is_text,
    "programs": lambda value: is_table(value, _is_digest) and "computation" in value,
    "clients_per_round": lambda value: value is None or (is_count(value) and value > 0),
    "seed": lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool)),
    "skip_bad_clients": lambda value: isinstance(value, bool),
    "source": lambda value: _is_object(
        value, {"kind": is_text, "clients": is_count, "sha256": _is_digest}
    ),
    "rounds": is_count,
    "state": lambda value: value is None or _is_object(value, {"sha256": _is_digest}),
    "metrics": lambda value: _is_object(value, {"bytes": is_count, "sha256": _is_digest}),
}

_BUFFERING: _Shapes = {
    "size": lambda value: is_count(value) and value > 0,
    "in_flight": lambda value: is_count(value) and value > 0,
    "max_age": lambda value: value is None or is_count(value),
}

_MAY_BE: _Shapes = {
    BEGUN_BY: is_text,
    ORIGIN: _is_origin,
    GROUPS: lambda value: _is_object(
        value,
        {
            "count": lambda count: is_count(count) and count > 0,
            "skip_bad": lambda skips: isinstance(skips, bool),
        },
    ),
    POISSON: lambda value: _is_object(
        value,
        {
            "rate": is_rate,
            "secret_seed": lambda seed: seed is None or (is_text(seed) and _is_seed(seed)),
        },
    ),
    TIMING: lambda value: _is_object(
        value,
        {
            "buffering": lambda value: value is None or _is_object(value, _BUFFERING),
            "delays": lambda value: value is None or is_text(value),
        },
    ),
    PRIVACY: is_privacy,
}
"""What not every run has."""

_BATCHING: _Shapes = {
    "format_version": is_text,
    "pays": lambda value: is_table(value, lambda pays: isinstance(pays, bool)),
}

_SOURCE: _Shapes = {
    "kind": is_text,
    "options": lambda value: is_table(value, is_text),
    "clients": lambda value: is_list(value) and all(map(is_text, value)),
    "files": lambda value: is_table(value, lambda digest: digest is None or _is_digest(digest)),
}
