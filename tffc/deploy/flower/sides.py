"""The two sides of a Flower app, for the bundle beside them; see `tffc.deploy.flower.apps`."""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import functools
import logging
import os
import pathlib
from collections.abc import Callable, Iterator

# An extra, not installed with the rest.
from flwr.app import ConfigRecord, Context, Message  # pyright: ignore[reportMissingImports]  # an extra
from flwr.clientapp import ClientApp  # pyright: ignore[reportMissingImports]  # an extra
from flwr.serverapp import Grid, ServerApp  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.demands import demands_of_machine
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import Record, name_record
from tffc.deploy.federation.serving import serve_rounds
from tffc.deploy.federation.settings import Config, NodeSettings, RunSettings
from tffc.deploy.federation.store import Store, answer_keep, answer_lacks, store_of
from tffc.deploy.federation.tasks import MASKED_STEPS, UNFORESEEN, WORK, Done, Memory, Task, refusal
from tffc.deploy.flower.bundle_file import fetch_from, named_files, read_app_bundle
from tffc.deploy.flower.grid import GridFederation
from tffc.deploy.flower.log import LOG
from tffc.deploy.flower.records import from_flower, to_flower
from tffc.deploy.flower.warm import ask_worker
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.operations.json_log import logged_as, write_as_configured
from tffc.runtime.runs.kept_states import FLOWER
from tffc.support.errors import TffcError

BUNDLE = "bundle.json"
"""The file of the bundle, in the folder of the app's modules."""

STATE = "tffc"
"""The record of a node's memory between the messages of a run."""


def server_app(module: str | os.PathLike[str]) -> ServerApp:
    """Return the server's side of the app that the module belongs to."""
    app = ServerApp()
    path = pathlib.Path(module).parent / BUNDLE

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        with logged_as(run=str(context.run_id)):
            try:
                for _ in serve(path, grid, context):
                    pass
            except TffcError as error:
                LOG.error("%s", error)
                raise

    return app


def client_app(module: str | os.PathLike[str]) -> ClientApp:
    """Return a node's side of the app that the module belongs to."""
    app = ClientApp()
    path = pathlib.Path(module).parent / BUNDLE

    @app.query("describe")
    def describe(message: Message, context: Context) -> Message:
        return _reply(message, context, lambda: name_record(_name_in(context)))

    @app.query("lacks")
    def lacks(message: Message, context: Context) -> Message:
        return _reply(message, context, lambda: answer_lacks(_store(context), named_files(path)))

    @app.train("keep")
    def keep(message: Message, context: Context) -> Message:
        def answered() -> Record:
            return answer_keep(_store(context), named_files(path), from_flower(message.content))

        return _reply(message, context, answered)

    for kind in (WORK, *MASKED_STEPS):
        app.train(kind)(functools.partial(answer, path, kind))
    return app


def serve(path: pathlib.Path, grid: Grid, context: Context) -> Iterator[Round]:
    """Run the configured rounds; save and yield each.

    Raises:
      TffcError: the configuration or the bundle is refused, or rounds cannot be run.
    """
    write_as_configured(LOG)
    settings = RunSettings.read(context.run_config)
    fetch = fetch_from(settings.bundle)
    process = Process(read_app_bundle(path, fetch), settings.allow_effects)
    named = named_files(path)
    large = {digest: fetch(digest, size) for digest, size in named.items()} if fetch else {}
    federation = GridFederation(grid, settings.timeout, LOG.info)
    engine = FederationEngine(process, federation, settings, LOG.info, large)
    yield from serve_rounds(engine, settings, LOG.info, FLOWER)


def answer(path: pathlib.Path, kind: str, message: Message, context: Context) -> Message:
    """Return a node's reply to a request for its part of a round."""

    def answered() -> Record:
        memory, record = _memory(context), from_flower(message.content)
        task = Task(str(path), _config_of(context), context.run_config, memory, record, kind)
        done = _done(task)
        round = record.entries.get("round")
        # Of a message that was answered, there are the demands that its bundle meets.
        level = logging.ERROR if done.record.entries.get("error") else logging.INFO
        with logged_as(round=round if type(round) is int else None):
            for line in done.log:
                LOG.log(level, "%s", line)
        last_round, participant = done.memory
        context.state[STATE] = ConfigRecord({"round": last_round, "participant": participant})
        return done.record

    return _reply(message, context, answered, lambda code: refusal(code).to_record())


def _config_of(context: Context) -> Config:
    """Return a node's configuration, with the demands of its machine if it names none itself.

    They go to the worker with each task: it may be older than the node, and not know of them.
    """
    config = context.node_config
    demands = demands_of_machine()
    if demands is None or config.get("demands"):
        return config
    return {**config, "demands": str(demands.absolute())}


def _name_in(context: Context) -> str:
    """Return the name that a node has in its configuration, or an empty text."""
    config = context.node_config
    return str(config.get("name", "") or config.get("partition-id", ""))


def _memory(context: Context) -> Memory:
    record = context.state.get(STATE)
    if not isinstance(record, ConfigRecord):
        return Memory()
    last, participant = record.get("round"), record.get("participant")
    return Memory(
        last if isinstance(last, int) else 0, participant if isinstance(participant, bytes) else b""
    )


def _reply(
    message: Message,
    context: Context,
    answered: Callable[[], Record],
    failed: Callable[[str], Record] = lambda code: Record({}, ()),
) -> Message:
    """Return a reply; if it fails, what `failed` returns for the code of the error.

    No exception leaves a node's app, because Flower sends its text to the server.
    """
    with logged_as(run=str(context.run_id), node=_name_in(context) or None):
        try:
            write_as_configured(LOG)
            return Message(to_flower(answered()), reply_to=message)
        except Exception as error:  # noqa: BLE001  (its text must not reach the server)
            is_own = isinstance(error, TffcError)
            LOG.error("%s", error if is_own else f"{type(error).__name__}: {error}")
            code = error.code if is_own else UNFORESEEN
            return Message(to_flower(failed(code)), reply_to=message)


def _store(context: Context) -> Store:
    return store_of(NodeSettings.read(context.node_config, context.run_config))


@functools.cache
def _do_here() -> Callable[[Task], Done]:
    """Return the function that handles tasks in this process, which several nodes of a simulation
    may share."""
    # Imported late, because a node with a worker does not need it.
    from tffc.deploy.flower.worker import KeptNodes

    return KeptNodes().do


def _done(task: Task) -> Done:
    """Handle a task, in the node's worker if it has one."""
    folder = task.node_config.get("worker")
    done = ask_worker(pathlib.Path(folder), task) if isinstance(folder, str) and folder else None
    return _do_here()(task) if done is None else done
