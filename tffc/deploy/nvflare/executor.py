"""A site's side of a job: it folds its clients, and answers with one accumulator."""

# NVFlare may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import functools
import pathlib
from collections.abc import Sequence

# An extra, not installed with the rest.
from nvflare.apis.executor import Executor  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.fl_constant import FLContextKey, ReturnCode  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.fl_context import FLContext  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.shareable import Shareable, make_reply  # pyright: ignore[reportMissingImports]  # an extra
from nvflare.apis.signal import Signal  # pyright: ignore[reportMissingImports]  # an extra

from tffc.backends.bundle.bundle import read_bundle
from tffc.deploy.federation.messages import Record
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.tasks import refusal
from tffc.deploy.nvflare.job_folder import BUNDLE, CONTENT, KINDS
from tffc.deploy.nvflare.packed import pack, unpack
from tffc.deploy.nvflare.sites import read_site_settings
from tffc.support.errors import TffcError


class RoundExecutor(Executor):
    """Answers the server's requests, with the bundle of the job and the data of the site."""

    def __init__(self) -> None:
        super().__init__()
        self._node: Node | None = None
        self._lines: list[str] = []

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Return the answer to a request; errors are codes in it, and texts in the site's log."""
        if task_name not in KINDS:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        if self._node is None:
            self._node = self._open(fl_ctx)
        reply = self._answer(self._node, task_name, shareable.get(CONTENT), fl_ctx)
        return Shareable({CONTENT: pack(reply)})

    def _answer(self, node: Node, kind: str, content: object, fl_ctx: FLContext) -> Record:
        try:
            record = unpack(content)
        except TffcError as error:
            self.log_error(fl_ctx, str(error))
            return refusal(error.code).to_record()
        reply = node.answer(record, kind)
        # Of a request that was answered, there are the demands that its bundle meets.
        log = self.log_error if reply.entries.get("error") else self.log_info
        for line in self._lines:
            log(fl_ctx, line)
        self._lines.clear()
        return reply

    def _open(self, fl_ctx: FLContext) -> Node:
        folder = pathlib.Path(fl_ctx.get_prop(FLContextKey.APP_ROOT)) / BUNDLE
        local = pathlib.Path(fl_ctx.get_engine().get_workspace().get_site_config_dir())
        settle = functools.partial(
            read_site_settings, local, fl_ctx.get_identity_name(), _simulated(fl_ctx)
        )
        return Node(lambda fetch: read_bundle(folder), settle, self._lines.append)


def _simulated(fl_ctx: FLContext) -> Sequence[str]:
    """Return the names of all sites, if NVFlare simulates them."""
    if not fl_ctx.get_prop(FLContextKey.SIMULATE_MODE):
        return ()
    return [client["name"] for client in fl_ctx.get_prop(FLContextKey.JOB_META)["job_clients"]]
