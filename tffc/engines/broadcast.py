"""The steps of a BroadcastForm: what a client computes stays with it, and so does the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tffc.backends.forms.form import BroadcastForm, signature
from tffc.engines.sections import run_section
from tffc.engines.steps import parameter, struct
from tffc.ir.types import StructType


class BroadcastSteps:
    """See `tffc.engines.steps.Steps`."""

    aggregations = ()

    def __init__(self, form: BroadcastForm) -> None:
        self.form = form
        self.state_type = parameter(form.compute_server_context)
        self.data_type = struct(parameter(form.client_processing))[1]
        self.output_type = StructType([])
        self.client_output_type = signature(form.client_processing).result

    def prepare(self, state: Any) -> tuple[Any, Any]:
        return state, run_section(self.form.compute_server_context, state)

    def work(self, data: Any, sent: Any) -> Any:
        return run_section(self.form.client_processing, (sent, data))

    def absorb(self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str) -> list[Any]:
        return totals

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        return kept, ()
