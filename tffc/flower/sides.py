"""The two sides of a Flower app, over the bundle that is beside them; see `tffc.flower.apps`."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from flwr.app import ConfigRecord, Context, Message  # pyright: ignore[reportMissingImports]
from flwr.clientapp import ClientApp  # pyright: ignore[reportMissingImports]
from flwr.serverapp import Grid, ServerApp  # pyright: ignore[reportMissingImports]

from tffc.backends.bundle.bundle import Bundle, decode_bundle
from tffc.data.identity import SourceIdentity
from tffc.engines.metrics import row_of
from tffc.engines.process import Process
from tffc.engines.rounds import Round, Sampling
from tffc.engines.run_folder import RunFolder
from tffc.engines.run_identity import RunIdentity
from tffc.engines.state import State
from tffc.errors import TffcError
from tffc.files.reading import read_regular
from tffc.flower.bundle_file import LIMIT, Fetch, decode_bundle_file
from tffc.flower.engine import FlowerEngine
from tffc.flower.grid import GridFederation
from tffc.flower.messages import name_record
from tffc.flower.node import Node
from tffc.flower.records import from_flower, to_flower
from tffc.flower.rounds import run_federation
from tffc.flower.settings import NodeSettings, RunSettings

BUNDLE = "bundle.json"
"""The file of the bundle, in the folder of the app's modules."""

STATE = "tffc"
"""What a node keeps between the messages of a run is in this record."""

LOG = logging.getLogger("flwr")
"""Where Flower writes what operators read."""


def server_app(module: str | os.PathLike[str]) -> ServerApp:
    """Return the server's side of the app in whose folder a module is."""
    app = ServerApp()
    path = pathlib.Path(module).parent / BUNDLE

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            for _ in serve(path, grid, context):
                pass
        except TffcError as error:
            LOG.error("%s", error)
            raise

    return app


def client_app(module: str | os.PathLike[str]) -> ClientApp:
    """Return a node's side of the app in whose folder a module is."""
    app = ClientApp()
    path = pathlib.Path(module).parent / BUNDLE

    @app.query("describe")
    def describe(message: Message, context: Context) -> Message:
        config = context.node_config
        name = str(config.get("name", "") or config.get("partition-id", ""))
        return Message(to_flower(name_record(name)), reply_to=message)

    @app.train("work")
    def work(message: Message, context: Context) -> Message:
        return answer(path, message, context)

    return app


def serve(path: pathlib.Path, grid: Grid, context: Context) -> Iterator[Round]:
    """Run the rounds that are configured, keep each and give it.

    Raises:
      TffcError: the configuration or the bundle is refused, or rounds cannot be run.
    """
    settings = RunSettings.read(context.run_config)
    process = Process(_read_bundle(path, _fetch_from(settings.bundle)), settings.allow_effects)
    federation = GridFederation(grid, settings.timeout, LOG.info)
    engine = FlowerEngine(process, federation, settings, LOG.info)
    with _Outputs(process, settings) as outputs:
        for each in run_federation(engine, outputs.state, settings, LOG.info):
            outputs.save(each)
            LOG.info("%s", row_of(each, process.output_type).to_json().rstrip())
            yield each


def answer(path: pathlib.Path, message: Message, context: Context) -> Message:
    """Return a node's reply to the request for its part of a round."""
    settle = functools.partial(NodeSettings.read, context.node_config, context.run_config)
    node = Node(functools.partial(_read_bundle, path), settle, LOG.error)
    kept = context.state.get(STATE)
    last = kept.get("round") if isinstance(kept, ConfigRecord) else 0
    node.last_round = last if isinstance(last, int) else 0
    reply = node.answer(lambda: from_flower(message.content))
    context.state[STATE] = ConfigRecord({"round": node.last_round})
    return Message(to_flower(reply), reply_to=message)


class _Outputs:
    """What a run keeps in its folder, if it has one; `state` is the one to go on from."""

    def __init__(self, process: Process, settings: RunSettings) -> None:
        self._folder = None if settings.out is None else RunFolder(settings.out, process)
        given = None
        if self._folder is not None:
            options = {"fraction": f"{settings.fraction:g}"}
            source = SourceIdentity("flower", options, (), {})
            sampling = Sampling(None, settings.seed)
            identity = RunIdentity.of(process, sampling, source, skip_bad_clients=False)
            given = self._folder.begin(identity, None, resume=settings.resume)
        self.state: State = given or process.first_state()

    def __enter__(self) -> _Outputs:
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._folder is not None:
            if isinstance(raised[1], TffcError):
                self._folder.abandon()
            self._folder.close()

    def save(self, finished: Round) -> None:
        if self._folder is not None:
            self._folder.save(finished)


@functools.lru_cache(maxsize=4)
def _read_bundle(path: pathlib.Path, fetch: Fetch | None = None) -> Bundle:
    """Return the bundle of an app, which never changes: Flower installs each under its hash."""
    content = read_regular(path, LIMIT)
    return decode_bundle(decode_bundle_file(content, str(path), fetch), path)


def _fetch_from(folder: pathlib.Path | None) -> Callable[[str, int], bytes] | None:
    """Return what finds files by their hashes in the folder of a bundle, if there is one."""
    if folder is None:
        return None

    def fetch(digest: str, size: int) -> bytes:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size == size:
                content = read_regular(path, size)
                if hashlib.sha256(content).hexdigest() == digest:
                    return content
        return b""  # which does not have the hash either

    return fetch
