"""Clients' data that does things to the processes that read it, which import this module."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import time
from typing import Any

from tests.runtime.engines.sources import Values


@dataclasses.dataclass(frozen=True)
class Slow(Values):
    """Clients that are read slowly."""

    seconds: float

    def read(self, client: str) -> Any:
        time.sleep(self.seconds)
        return super().read(client)


@dataclasses.dataclass(frozen=True)
class Kills(Values):
    """Clients of which one kills the process that reads it; once, if there is a marker to leave."""

    killer: str
    marker: pathlib.Path | None = None

    def read(self, client: str) -> Any:
        if client == self.killer and (self.marker is None or not self.marker.exists()):
            if self.marker is not None:
                self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(client)


@dataclasses.dataclass(frozen=True)
class Waits(Values):
    """Clients of which one is read only when there is a file."""

    waiting: str
    file: pathlib.Path

    def read(self, client: str) -> Any:
        while client == self.waiting and not self.file.exists():
            time.sleep(0.01)
        return super().read(client)


@dataclasses.dataclass(frozen=True)
class Places(Values):
    """Clients that leave a file, with the GPUs that the process which reads them may use."""

    folder: pathlib.Path

    def read(self, client: str) -> Any:
        (self.folder / client).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "none"))
        return super().read(client)
