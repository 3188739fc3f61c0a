"""A Flower SuperLink that holds on a busy machine.

It takes the same arguments as Flower's own:

    python -m tffc.deploy.flower.superlink --database ...

Its database waits longer for a lock, where Flower's gives up after five seconds and fails what a
node or a run has asked.  `tffc.deploy.flower.superexec` starts one process for a run, however long
that takes to begin, and what it starts ends with the SuperLink.  Nothing else differs.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from typing import Any

# An extra, not installed with the rest.
from flwr.supercore import sql_mixin  # pyright: ignore[reportMissingImports]  # an extra
from flwr.superlink.cli import flower_superlink  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.flower.log import configure_log
from tffc.deploy.flower.owner import Starts, own_processes

PATIENCE = 25_000
"""The milliseconds that the database waits for a lock: less than the 30 seconds that Flower's
clients wait for an answer."""


def main() -> None:
    """Run the SuperLink."""
    own_processes()
    configure_log()
    # The package has the function of the same name.
    module: Any = importlib.import_module("flwr.superlink.cli.flower_superlink")
    module.subprocess = Starts()
    database: Any = sql_mixin
    pragmas = {**dict(database.SQLITE_PRAGMAS), "busy_timeout": str(PATIENCE)}
    database.SQLITE_PRAGMAS = tuple(pragmas.items())
    flower_superlink()


if __name__ == "__main__":
    main()
