"""A SuperNode of Flower that loses little time between messages.

Flower's own asks for messages every three seconds, and starts a process for each, which imports
Flower anew.  This one takes the same arguments:

    python -m tffc.flower.supernode --superlink ...

It asks often after a message, and less and less often while none comes, and again soon for a part
of a message that is not there yet, for which Flower's own waits a second; and
`tffc.flower.superexec` forks the process of a message from one that has imported what it needs.
Nothing else differs.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from flwr.supernode import start_client_internal  # pyright: ignore[reportMissingImports]
from flwr.supernode.cli import flower_supernode  # pyright: ignore[reportMissingImports]

from tffc.flower.pauses import SHORTEST, Pauses


class Starts:
    """Stands where Flower's node looks for the module `subprocess`, to start its SuperExec."""

    @staticmethod
    def Popen(command: Sequence[str]) -> Any:
        """Start our own SuperExec with the arguments of Flower's."""
        return subprocess.Popen([sys.executable, "-m", "tffc.flower.superexec", *command[1:]])


def main() -> None:
    """Run the node."""
    module: Any = start_client_internal
    module.time, module.subprocess = Pauses(), Starts()
    module.pull_objects = functools.partial(module.pull_objects, initial_backoff=SHORTEST)
    flower_supernode()


if __name__ == "__main__":
    main()
