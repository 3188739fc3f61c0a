"""What a round's pipeline needs on every worker, in files of a folder that workers can read.

    round        the bundle's messages, what the server keeps, the clients' names and their source
    broadcast    what the server sends to every client

So a pipeline's description holds the path of the folder alone, and runners' limits on its size do
not limit models, bundles or cohorts.  The bundle travels as the bytes of its messages; only the
source of clients' data is pickled, which is the user's own object.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import pickle
import threading
from typing import Any

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.form import Form, Side
from tffc.backends.forms.steps import RoundSteps
from tffc.data.source import ClientSource
from tffc.engines.encoding import decode, encode
from tffc.engines.runtime import EngineRuntime
from tffc.engines.sections import load_section
from tffc.errors import DataError
from tffc.ir import wire
from tffc.ir.nodes import Compiled
from tffc.ir.traverse import walk

ROUND = "round"
BROADCAST = "broadcast"
"""The names of the files."""


@dataclasses.dataclass(frozen=True)
class Shipment:
    """What workers know of a round."""

    bundle: Bundle
    kept: Any
    clients: tuple[str, ...]
    source: ClientSource
    skip_bad_clients: bool

    @functools.cached_property
    def _form(self) -> Form:
        return self.bundle.read_form()

    @functools.cached_property
    def steps(self) -> RoundSteps:
        """The steps of the round."""
        return self._form.steps(EngineRuntime())

    def to_bytes(self) -> bytes:
        """Return the content of the file `round`.

        Raises:
          DataError: the source cannot be pickled.
        """
        programs = {"": self.bundle.computation, **self.bundle.components}
        return encode(
            (
                self.bundle.form.encode(),
                [(name.encode(), wire.to_bytes(node)) for name, node in programs.items()],
                self.kept,
                json.dumps(self.clients).encode(),
                _pickled(self.source),
                [b"skip"] * self.skip_bad_clients,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Shipment:
        """Return the shipment of which `to_bytes` gave the bytes."""
        form, programs, kept, clients, source, skip = decode(data)
        components = {name.decode(): wire.from_bytes(content) for name, content in programs}
        computation = components.pop("")
        return cls(
            Bundle(form.decode(), computation, components, None, {}),
            kept,
            tuple(json.loads(clients)),
            pickle.loads(source),
            bool(skip),
        )

    def load_sections(self) -> None:
        """Load the graphs that workers run, so that no client waits for it."""
        at_server = self._form.names_at(Side.SERVER)
        for name, component in self.bundle.components.items():
            for node in walk(component) if name not in at_server else ():
                if isinstance(node, Compiled):
                    load_section(node)


def _pickled(source: ClientSource) -> bytes:
    try:
        return importlib.import_module("cloudpickle").dumps(source)
    except (TypeError, AttributeError, ValueError, pickle.PicklingError) as error:
        raise DataError(
            "E935",
            f"the clients' data cannot be sent to other processes: {error}",
            help="name where the data is, or give a source that can be pickled",
        ) from error


_loading = threading.Lock()


def unload(folder: str) -> Shipment:
    """Return the shipment in a folder, its graphs loaded; once in a process, whoever asks for
    it."""
    with _loading:
        return _unload(folder)


@functools.lru_cache(maxsize=1)
def _unload(folder: str) -> Shipment:
    shipment = Shipment.from_bytes(read_file(folder, ROUND))
    shipment.load_sections()
    return shipment


def read_file(folder: str, name: str) -> bytes:
    """Return the content of a file in a folder of any file system that Beam knows."""
    files = _file_systems()
    with files.open(files.join(folder, name)) as file:
        return file.read()


def write_file(folder: str, name: str, content: bytes) -> None:
    """Write a file in a folder of any file system that Beam knows."""
    files = _file_systems()
    with files.create(files.join(folder, name)) as file:
        file.write(content)


def _file_systems() -> Any:
    return importlib.import_module("apache_beam.io.filesystems").FileSystems
