"""The data that a round's pipeline needs on every worker, in files of a shared folder.

    round        the bundle's messages, what the server keeps, the clients' names and their source
    broadcast    what the server sends to every client

Resources are in a folder of the engine, and stay there for all rounds.  The pipeline itself holds
only the path of the folder, so that runners' limits on its size do not limit models, bundles or
cohorts.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import pathlib
import threading
from collections.abc import Iterable
from typing import Any

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.steps import RoundSteps
from tffc.deploy.demands import check_admitted
from tffc.language.values.resources import STORE, byte_array, read_bytes, writer_of
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.shards import Batches
from tffc.runtime.engines.shipment import (
    bundle_to_bytes,
    load_bundle,
    source_from_bytes,
    source_to_bytes,
)
from tffc.support.guards import Array

KEPT = 2
"""The number of bundles and sources that stay loaded: those of a run and of its evaluation."""

ROUND = "round"
BROADCAST = "broadcast"
"""The names of the files."""


@dataclasses.dataclass(frozen=True)
class Shipment:
    """The data of a round that workers need."""

    bundle: Bundle
    steps: RoundSteps
    carried: object
    clients: tuple[str, ...]
    source: ClientSource
    skip_bad_clients: bool
    batches: Batches | None = None
    window: int = 1
    """The number of clients that are planned together; they form one element of the pipeline."""
    resources: str = ""
    """The folder of the bundle's resources; empty if workers need none."""

    def to_bytes(self) -> bytes:
        """Return the content of the file `round`.

        Raises:
          DataError: the source cannot be pickled.
        """
        return encode(
            (
                bundle_to_bytes(self.bundle),
                self.carried,
                json.dumps(self.clients).encode(),
                source_to_bytes(self.source, "cloudpickle"),
                json.dumps([self.skip_bad_clients, self.batches, self.window]).encode(),
                json.dumps([self.resources, *self.bundle.resources()]).encode(),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Shipment:
        """Restore a shipment from the result of `to_bytes`."""
        bundle, carried, clients, source, settings, resources = decode(data)
        skip, batches, window = json.loads(settings)
        folder, *digests = json.loads(resources)
        for digest in digests if folder else ():
            name = _file_systems().join(folder, digest)
            STORE.add_source(digest, name, functools.partial(_read_resource, folder, digest))
        return cls(
            *_load_bundle(bundle),
            carried,
            tuple(json.loads(clients)),
            _load_source(source),
            skip,
            batches and Batches(*batches),
            window,
            folder,
        )


@functools.lru_cache(maxsize=KEPT)
def _load_bundle(data: bytes) -> tuple[Bundle, RoundSteps]:
    bundle, steps = load_bundle(data)
    check_admitted(bundle, "the bundle of the pipeline", are_masked=False)
    return bundle, steps


_load_source = functools.lru_cache(maxsize=KEPT)(source_from_bytes)

_loading = threading.Lock()


def unload(folder: str) -> Shipment:
    """Return the shipment in a folder; each process loads it and its graphs only once."""
    with _loading:
        return _unload(folder)


@functools.lru_cache(maxsize=1)
def _unload(folder: str) -> Shipment:
    return Shipment.from_bytes(read_file(folder, ROUND))


def read_file(folder: str, name: str) -> bytes:
    """Return the content of a file in a folder, in any file system that Beam knows."""
    files = _file_systems()
    with files.open(files.join(folder, name)) as file:
        return file.read()


def write_resources(folder: str, digests: Iterable[str]) -> None:
    """Write resources to a folder, in any file system that Beam knows."""
    files = _file_systems()
    for digest in digests:
        with files.create(files.join(folder, digest)) as file:
            writer_of(digest)(file)


def _read_resource(folder: str, digest: str) -> Array:
    path = os.path.join(folder, digest)
    if os.path.isfile(path):
        return read_bytes(pathlib.Path(path))  # which workers of one machine share
    return byte_array(read_file(folder, digest))


def write_file(folder: str, name: str, content: bytes) -> None:
    """Write a file in a folder, in any file system that Beam knows."""
    files = _file_systems()
    with files.create(files.join(folder, name)) as file:
        file.write(content)


def _file_systems() -> Any:
    return importlib.import_module("apache_beam.io.filesystems").FileSystems
