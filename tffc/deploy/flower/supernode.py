"""A Flower SuperNode that loses little time between messages, and holds on a busy machine.

Flower's own SuperNode polls for messages every three seconds, and starts a process for each, which
imports Flower again.  This one takes the same arguments:

    python -m tffc.deploy.flower.supernode --superlink ...

It polls often after a message, and less and less often while none arrives.  If a part of a message
is missing, it polls again soon, where Flower waits a second.  `tffc.deploy.flower.superexec` forks
the process for a message from one that has already imported Flower, and starts no second one while
it lives.  All that it starts, also workers, ends with it.  Nothing else differs.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import Any

# An extra, not installed with the rest.
from flwr.supernode import start_client_internal  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supernode.cli import flower_supernode  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.federation.pauses import SHORTEST
from tffc.deploy.flower.log import configure_log
from tffc.deploy.flower.owner import Starts, own_processes
from tffc.deploy.flower.pauses import Pauses


def main() -> None:
    """Run the node."""
    own_processes()
    configure_log()
    module: Any = start_client_internal  # Flower expects modules there
    module.time, module.subprocess = Pauses(), Starts()
    module.pull_objects = functools.partial(module.pull_objects, initial_backoff=SHORTEST)
    flower_supernode()


if __name__ == "__main__":
    main()
