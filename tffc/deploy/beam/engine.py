"""The engine on Apache Beam: clients' work and sums on any Beam runner.

The driver (this process) prepares a round, ships it, runs a pipeline for it, and finishes it from
the reports of the aggregations.  Distributed runners repeat the work of a worker that dies, and
count it once.  Runners on one machine do not, so there the whole pipeline is run again; its only
effect is its result files, which are read at the end.

Secure sums are plain sums here: their bounds are checked, but nothing is kept secret.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import logging
import os
import threading
import traceback
import uuid
import weakref
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

from tffc.deploy.beam.results import Result, ResultKind, read_results
from tffc.deploy.beam.shipment import BROADCAST, ROUND, Shipment, write_file, write_resources
from tffc.deploy.beam.workers import worker_processes
from tffc.runtime.engines.encoding import encode, error_from_bytes
from tffc.runtime.engines.engine import ONE_A_CALL, Batching, Cohort
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.remote import RemoteEngine
from tffc.runtime.engines.scratch import scratch_folder, temporary_files_in
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import SERVER, WAIT, RemoteSpeed
from tffc.runtime.frameworks.tensorflow.quiet import may_speak, quiet
from tffc.support.errors import ExecutionError, LanguageValueError

BEAM = "apache_beam"

ATTEMPTS = 3
"""How often the pipeline of a round is tried on one machine."""

IN_PROCESS = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
"""The default runner.  `DirectRunner` may download another one instead."""

ON_ONE_MACHINE = frozenset(("fnapi", "bundlebaseddirect", "direct", "prism"))
"""Runners whose workers can read this machine's files."""


Foreign: TypeAlias = Any
"""A module or an object of Beam, which may not be installed."""


def load_beam() -> Foreign:
    """Return the module `apache_beam`."""
    # Beam logs to stderr during its import, about optional packages.
    logging.basicConfig()
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        return importlib.import_module(BEAM)
    finally:
        logging.disable(disabled)


class BeamEngine(RemoteEngine):
    """Runs rounds of one process as pipelines; the options are Beam's, and `--fanout`.

    Raises:
      LanguageValueError: Beam refuses the options, or its workers would have no folder to read a
        round from.
    """

    def __init__(
        self,
        process: Process,
        options: Sequence[str] = (),
        batching: Batching = ONE_A_CALL,
    ) -> None:
        super().__init__(process, batching)
        self._beam = load_beam()
        self._transforms = importlib.import_module("tffc.deploy.beam.transforms")
        self._files = importlib.import_module("apache_beam.io.filesystems").FileSystems
        self._options = self._parse(options)
        values = self._options.get_all_options()
        self._fanout: int = values["fanout"]
        self._shared: str | None = values["temp_location"]
        self._processes: int | None = None
        if values["runner"] == IN_PROCESS and values["direct_running_mode"] == "multi_processing":
            # Use processes of our own: Beam's end with each pipeline.
            self._processes = values["direct_num_workers"] or os.cpu_count() or 1
            self._options = self._transforms.in_memory(self._options)
        mode = values["direct_running_mode"]
        self._in_memory = values["runner"] == IN_PROCESS and mode == "in_memory"
        runner: str = values["runner"].rpartition(".")[2]
        self._on_one_machine = runner.lower().removesuffix("runner") in ON_ONE_MACHINE
        if self._shared is None and not self._on_one_machine:
            raise LanguageValueError(
                "E932",
                f"workers of {runner} cannot read a folder of this machine",
                help="add --temp_location=FOLDER with one that they and this machine can read",
            )

    def _parse(self, options: Sequence[str]) -> Foreign:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                parsed = self._transforms.parse_options(options, IN_PROCESS)
                parsed.get_all_options()
                with scratch_folder() as folder, temporary_files_in(folder):
                    self._beam.Pipeline(options=parsed)
        except SystemExit:
            _refuse(options, said.getvalue().rstrip().rpartition("error: ")[2])
        except (ImportError, ValueError) as error:
            _refuse(options, str(error))
        return parsed

    def _aggregate(
        self, cohort: Cohort, carried: object, sent: object
    ) -> tuple[Sequence[object], set[str]]:
        steps, measure = self.process.steps, self.speed.driver.measure
        cohort.progress(0, len(cohort.clients))
        batches, windows = self._windows(cohort.clients)
        shipment = Shipment(
            self.process.bundle,
            steps,
            carried,
            cohort.clients,
            cohort.source,
            cohort.skip_bad_clients,
            batches,
            len(windows[0]) if windows else 1,
            self._resources,
        )
        with (
            scratch_folder() as scratch,
            _worker_folder(self._files, self._shared, scratch) as folder,
        ):
            write_file(folder, ROUND, shipment.to_bytes())
            write_file(folder, BROADCAST, encode(sent))
            with measure(WAIT):
                prefix = self._run(folder, shipment, scratch)
            reports, skipped = _sort(read_results(prefix), cohort, self.speed)
        if cohort.clients:  # without any, this would begin another round
            cohort.progress(len(cohort.clients), len(cohort.clients))
        with measure(SERVER), showing():
            for index, aggregation in enumerate(steps.aggregations):
                if index not in reports:
                    reports[index] = aggregation.report(aggregation.zero(carried), carried)
        return [reports[index] for index in range(len(steps.aggregations))], skipped

    @functools.cached_property
    def _resources(self) -> str:
        """The folder of the bundle's resources, until this engine is dropped; empty if workers have
        them in memory."""
        digests = self.process.bundle.resources()
        if not digests or self._in_memory:
            return ""
        held = contextlib.ExitStack()
        weakref.finalize(self, held.close)
        scratch = held.enter_context(scratch_folder())
        folder = held.enter_context(_worker_folder(self._files, self._shared, scratch))
        write_resources(folder, digests)
        return folder

    def _run(self, folder: str, shipment: Shipment, scratch: str) -> str:
        """Run a round's pipeline; return the prefix of its result files.

        Raises:
          ExecutionError: it fails.
        """
        attempts = ATTEMPTS if self._on_one_machine else 1
        failure: Exception | None = None
        for attempt in range(attempts):
            prefix = self._files.join(folder, f"results-{attempt}-")
            try:
                with _quiet(), quiet():
                    self._run_once(folder, shipment, prefix, scratch)
            except Exception as error:  # noqa: BLE001 - runners raise what they like
                said = str(error).partition("\n")[0]
                logging.getLogger(__name__).warning("the pipeline of a round failed: %s", said)
                failure = error
            else:
                return prefix
        raise ExecutionError(
            "E772",
            "Beam could not carry out the pipeline of a round",
            notes=(f"{type(failure).__name__}: {failure}".partition("\n")[0],),
            help="the logs of the runner and its workers tell more; with TFFC_DEBUG=1 in the "
            "environment they are shown",
        ) from failure

    def _runner(self) -> Foreign | None:
        """Return the runner of a pipeline, or None for the one that the options name."""
        if self._processes is None:
            return None
        runners = importlib.import_module("apache_beam.runners.portability.fn_api_runner")
        environments = importlib.import_module("apache_beam.transforms.environments")
        workers = environments.ExternalEnvironment(worker_processes(self._processes).address)
        return runners.FnApiRunner(default_environment=workers)

    def _run_once(self, folder: str, shipment: Shipment, prefix: str, scratch: str) -> None:
        runner = self._runner()
        with temporary_files_in(scratch):
            pipeline = self._beam.Pipeline(runner, self._options)
        round = self._transforms.RoundTransform(folder, shipment, self._fanout)
        _ = pipeline | round | self._transforms.write_results(prefix)
        running = pipeline.run()
        try:
            running.wait_until_finish()
        except KeyboardInterrupt:
            running.cancel()
            raise


@contextlib.contextmanager
def _worker_folder(files: Foreign, shared: str | None, scratch: str) -> Generator[str]:
    """Yield the folder that workers read from.

    If there is a shared location, it is a new folder there, deleted at the end; otherwise it is
    `scratch`.
    """
    if shared is None:
        yield scratch
        return
    folder = files.join(shared, f"tffc-{uuid.uuid4().hex}")
    files.mkdirs(folder)
    try:
        yield folder
    finally:
        files.delete([folder])


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Keep Beam's log, and exceptions in its threads, off stderr while the block runs."""
    if may_speak():
        yield
        return
    logger, report = logging.getLogger(BEAM), threading.excepthook
    level = logger.level

    def hook(args: threading.ExceptHookArgs) -> None:
        frames = traceback.walk_tb(args.exc_traceback)
        if not any(_is_beams(frame.f_globals.get("__name__", "")) for frame, _ in frames):
            report(args)

    logger.setLevel(logging.CRITICAL)
    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = report
        logger.setLevel(level)


def _is_beams(module: str) -> bool:
    return module.partition(".")[0] in (BEAM, "grpc")


def _refuse(options: Sequence[str], reason: str) -> NoReturn:
    raise LanguageValueError(
        "E931",
        f"Beam does not take the options {' '.join(options)}",
        notes=(reason.partition("\n")[0],),
        help="give options that Beam and its runner know, and --fanout",
    )


def _sort(
    results: Iterable[Result], cohort: Cohort, speed: RemoteSpeed
) -> tuple[dict[int, object], set[str]]:
    """Return the aggregations' reports and the skipped clients; deliver the outputs of clients.

    Raises:
      TffcError: the error of the first client that has one.
    """
    reports: dict[int, object] = {}
    skipped: set[str] = set()
    failures: list[tuple[str, bytes]] = []
    for result in results:
        match result.kind:
            case ResultKind.REPORT:
                reports[int(result.name)] = result.value
            case ResultKind.CLIENT:
                cohort.deliver(result.name, result.value)
            case ResultKind.SKIPPED:
                skipped.add(result.name)
            case ResultKind.SPENT:
                times, news = result.value
                speed.take(times, [line.decode() for line in news])
            case _:
                failures.append((result.name, result.value))
    if failures:
        raise error_from_bytes(min(failures)[1])
    return reports, skipped
