"""A round on two processes of Beam's, of which one is killed: run by a test, in its own process.

    python -m tests.runtime.engines.killed_worker BUNDLE MARKER

Prints the round's output.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import sys
from typing import Any

import numpy as np

from tests.runtime.engines.sources import Values
from tffc.api.bundles import load
from tffc.deploy.engines import make_engine
from tffc.runtime.engines.engine import Cohort

CLIENTS = 40
OPTIONS = "--direct_running_mode=multi_processing", "--direct_num_workers=2"


@dataclasses.dataclass(frozen=True)
class KillsOnce(Values):
    """Clients of which one kills the process that reads it, for the first time.

    They are read in other processes than the driver's, where nothing may be traced.
    """

    driver: int
    marker: pathlib.Path

    def read(self, client: str) -> Any:
        assert os.getpid() != self.driver
        assert "tffc.frontend.tensorflow_capture" not in sys.modules
        if client == self.clients[CLIENTS // 2] and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(client)


def main(bundle: str, marker: str) -> None:
    values = [np.int32(number) for number in range(CLIENTS)]
    source = KillsOnce(values, os.getpid(), pathlib.Path(marker))
    engine = make_engine("beam", load(bundle).process, options=OPTIONS)
    # What the script is for.
    print(engine.run_round((), Cohort(source, source.clients)).output)


if __name__ == "__main__":
    main(*sys.argv[1:])
