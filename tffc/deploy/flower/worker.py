"""A process beside a node that keeps TensorFlow and the graphs of its apps loaded between messages.

Flower starts a process for every message, which would load TensorFlow each time.  If the node's
configuration has a folder as `worker`, that process passes the message on to a worker, which it
starts if necessary:

    python -m tffc.deploy.flower.worker FOLDER

It ends with a node that `tffc.deploy.flower.supernode` has started.
"""

from __future__ import annotations

import collections
import functools
import json
import pathlib
import sys

from tffc.deploy.federation.node import Node
from tffc.deploy.federation.settings import NodeSettings
from tffc.deploy.federation.tasks import Done, Task
from tffc.deploy.flower.bundle_file import read_app_bundle
from tffc.deploy.flower.owner import end_with_owner

KEPT = 4
"""The most nodes, each of one app and configuration, that stay loaded."""


class KeptNodes:
    """Handles tasks, reusing the nodes of recent tasks with the same app and configuration."""

    def __init__(self) -> None:
        self._nodes: collections.OrderedDict[str, tuple[Node, list[str]]]
        self._nodes = collections.OrderedDict()

    def do(self, task: Task) -> Done:
        """Return the result of a task."""
        key = json.dumps([task.bundle, dict(task.node_config), dict(task.run_config)])
        node, log = self._nodes.get(key) or _make(task)
        self._nodes[key] = node, log
        self._nodes.move_to_end(key)
        while len(self._nodes) > KEPT:
            self._nodes.popitem(last=False)
        node.memory = task.memory
        reply = node.answer(task.record, task.kind)
        lines = list(log)
        log.clear()
        return Done(reply, node.memory, lines)


def _make(task: Task) -> tuple[Node, list[str]]:
    log: list[str] = []
    settle = functools.partial(NodeSettings.read, task.node_config, task.run_config)
    read = functools.partial(read_app_bundle, pathlib.Path(task.bundle))
    return Node(read, settle, log.append), log


def main() -> None:
    """Serve the folder given as an argument."""
    from tffc.deploy.flower.warm import serve

    end_with_owner()
    serve(pathlib.Path(sys.argv[1]), KeptNodes().do)


if __name__ == "__main__":
    main()
