"""Flower's grid with its nodes in this process: what a server app sends, client apps answer."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flwr  # pyright: ignore[reportMissingImports]  # an extra
from flwr.app import Context, Error, Message, RecordDict  # pyright: ignore[reportMissingImports]  # an extra
from flwr.clientapp import ClientApp  # pyright: ignore[reportMissingImports]  # an extra
from flwr.proto.node_pb2 import NodeInfo  # pyright: ignore[reportMissingImports]  # an extra
from flwr.serverapp import Grid  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.task_identity import TaskIdentity  # pyright: ignore[reportMissingImports]  # an extra

assert flwr

RUN = 1
# What Flower tells the process of a task.
TaskIdentity.task_id = TaskIdentity.run_id = RUN
TaskIdentity.node_id = 0


def context(node: int, node_config: Mapping[str, Any], run_config: Mapping[str, Any]) -> Context:
    return Context(RUN, node, dict(node_config), RecordDict(), dict(run_config))


class GridHere(Grid):
    """Nodes by their numbers, each with its name and its configuration, which run a client app.

    `names` are what nodes are registered under, and `change` does something to each reply.
    """

    def __init__(
        self,
        app: ClientApp,
        nodes: Mapping[int, Mapping[str, Any]],
        run_config: Mapping[str, Any],
        names: Mapping[int, str] | None = None,
        change: Callable[[int, Message], Iterable[Message]] = lambda node, reply: [reply],
    ) -> None:
        self._app = app
        self._contexts = {n: context(n, config, run_config) for n, config in nodes.items()}
        self._names = names or {}
        self._change = change
        self._replies: list[Message] = []
        self.sent: list[Message] = []
        self.received: list[Message] = []
        self.offline: set[int] = set()

    def set_run(self, run: Any) -> None:
        raise AssertionError("nobody sets the run")

    @property
    def run(self) -> Any:
        raise AssertionError("nobody asks for the run")

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise AssertionError("it is deprecated")

    def get_node_ids(self) -> Iterable[int]:
        return list(self._contexts)

    def get_nodes(self) -> Iterable[NodeInfo]:
        def status(node: int) -> str:
            return "offline" if node in self.offline else "online"

        return [
            NodeInfo(node_id=n, name=self._names.get(n, ""), status=status(n))
            for n in self._contexts
        ]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids: list[str] = []
        for message in messages:
            self.sent.append(message)
            name = f"m{len(self.sent)}"
            message.metadata.__dict__["_message_id"] = name
            ids.append(name)
            node = message.metadata.dst_node_id
            if node in self.offline:
                continue
            try:
                reply = self._app(message, self._contexts[node])
            except Exception as error:  # noqa: BLE001  # Flower sends any error
                reply = Message(Error(2, repr(error)), reply_to=message)
            for each in self._change(node, reply):
                self.received.append(each)
                self._replies.append(each)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        wanted = set(message_ids)
        found = [m for m in self._replies if m.metadata.reply_to_message_id in wanted]
        self._replies = [m for m in self._replies if m not in found]
        return found

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
        raise AssertionError("it waits too long between two times")


def app_at(folder: pathlib.Path) -> tuple[Any, pathlib.Path]:
    """The client app in the folder of an app, and the module beside which its bundle is."""
    from tffc.deploy.flower.apps import client_app

    module = folder / "tffc_app" / "client_app.py"
    return client_app(module), module
