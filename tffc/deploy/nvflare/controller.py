"""The server's side of a job: it asks sites through NVFlare's tasks, and merges their answers."""

# NVFlare may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import functools
import math
import pathlib
import queue
import time
from collections.abc import Iterator, Mapping, Sequence

# An extra, not installed with the rest.
from nvflare.apis.controller_spec import ClientTask, Task, TaskCompletionStatus  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.fl_constant import FLContextKey, ReturnCode  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.fl_context import FLContext  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.impl.controller import Controller  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.shareable import Shareable  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.signal import Signal  # pyright: ignore[reportMissingImports]  # an extra

from tffc.backends.bundle.bundle import read_bundle
from tffc.deploy.federation.asking import Arrival
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import NAME, Record
from tffc.deploy.federation.serving import serve_rounds
from tffc.deploy.nvflare.job_folder import BUNDLE, CONTENT
from tffc.deploy.nvflare.packed import pack, unpack
from tffc.deploy.nvflare.sites import read_run_settings
from tffc.runtime.engines.process import Process
from tffc.runtime.runs.kept_states import NVFLARE
from tffc.support.errors import TffcError

RUN = "tffc"
"""The folder of a run, in that of the job, which NVFlare hands to who downloads the job."""

POLL = 0.5
"""The most seconds until it is noticed that the job is to end."""

GRACE = 30.0
"""The seconds between the end of the wait for a reply and the end of the task."""


class StoppedError(Exception):
    """The job is to end."""


class RoundsController(Controller):
    """Runs the rounds that the job's `config` says, with the bundle of the job."""

    def __init__(self, config: dict[str, object] | None = None) -> None:
        super().__init__()
        self._config = config or {}

    def start_controller(self, fl_ctx: FLContext) -> None:
        """See NVFlare's `Controller`."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """See NVFlare's `Controller`."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Run the rounds; an error ends the job."""
        tell = functools.partial(self.log_info, fl_ctx)
        try:
            workspace = fl_ctx.get_engine().get_workspace()
            folder = pathlib.Path(workspace.get_run_dir(fl_ctx.get_job_id())) / RUN
            local = pathlib.Path(workspace.get_site_config_dir())
            settings = read_run_settings(self._config, folder, local)
            bundle = read_bundle(pathlib.Path(fl_ctx.get_prop(FLContextKey.APP_ROOT)) / BUNDLE)
            process = Process(bundle, settings.allow_effects)
            federation = TaskFederation(self, fl_ctx, abort_signal, settings.timeout)
            engine = FederationEngine(process, federation, settings, tell)
            for _ in serve_rounds(engine, settings, tell, NVFLARE, federation.sleep):
                pass
        except StoppedError:
            tell("the rounds are stopped")
        except TffcError as error:
            self.system_panic(str(error), fl_ctx)

    def process_result_of_unknown_task(self, *args: object, **kwargs: object) -> None:
        """Ignore a result that comes after the wait for it."""


class TaskFederation:
    """The sites of a job, each asked by a task of its own."""

    def __init__(
        self, controller: Controller, fl_ctx: FLContext, abort_signal: Signal, timeout: float
    ) -> None:
        self._controller = controller
        self._fl_ctx = fl_ctx
        self._abort_signal = abort_signal
        self._seconds = math.ceil(timeout + GRACE)
        self._pending: dict[str, Task] = {}
        self._arrivals: queue.SimpleQueue[tuple[Task, Arrival]] = queue.SimpleQueue()

    def names(self) -> Sequence[str]:
        """See `Federation`."""
        names = {client.name for client in self._fl_ctx.get_engine().get_clients()}
        return sorted(name for name in names if NAME.fullmatch(name))

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        """See `Federation`."""
        forgotten = [name for name in self._pending if not more or name in records]
        for name in forgotten:
            self._controller.cancel_task(self._pending.pop(name), fl_ctx=self._fl_ctx)
        contents = {id(record): pack(record) for record in records.values()}
        for name, record in records.items():
            task = Task(
                # NVFlare sends no instances of classes, as that of a name in an enumeration.
                str(kind),
                Shareable({CONTENT: contents[id(record)]}),
                timeout=self._seconds,
                result_received_cb=functools.partial(self._receive_result, name),
                task_done_cb=functools.partial(self._end_task, name),
            )
            self._pending[name] = task
            self._controller.send(task, self._fl_ctx, targets=[name])

    def receive(self, timeout: float) -> Iterator[Arrival]:
        """See `Federation`; raises StoppedError if the job is to end."""
        end = time.monotonic() + timeout
        while self._pending:
            self._check_stopped()
            left = end - time.monotonic()
            try:
                task, arrival = self._arrivals.get(timeout=max(0.0, min(POLL, left)))
            except queue.Empty:
                if left <= 0:
                    return
                continue
            if self._pending.get(arrival.node) is task:
                del self._pending[arrival.node]
                yield arrival

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds; raises StoppedError if the job is to end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check_stopped()
            time.sleep(min(POLL, left))

    def _check_stopped(self) -> None:
        if self._abort_signal.triggered:
            raise StoppedError

    def _receive_result(self, name: str, client_task: ClientTask, fl_ctx: FLContext) -> None:
        result = client_task.result
        if result.get_return_code() != ReturnCode.OK:
            # Neither the code nor the text, which the site chooses.
            arrival = Arrival(name, None, "NVFlare reports that its task failed")
        else:
            try:
                arrival = Arrival(name, unpack(result.get(CONTENT)))
            except TffcError as error:
                arrival = Arrival(name, None, error.message)
        self._arrivals.put((client_task.task, arrival))

    def _end_task(self, name: str, task: Task, fl_ctx: FLContext) -> None:
        if task.completion_status != TaskCompletionStatus.OK:
            ended = f"NVFlare ends its task: {task.completion_status.value}"
            self._arrivals.put((task, Arrival(name, None, ended)))
