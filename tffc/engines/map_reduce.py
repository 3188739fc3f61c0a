"""The steps of a MapReduceForm.

c    = prepare(s)
ui   = work((di, c))
a    = accumulate ... from zero(), joined by merge
r    = report(a)
s, x = update((s, (r, secure sums)))
"""

from __future__ import annotations

from typing import Any

from tffc.backends.forms import MapReduceForm, signature
from tffc.engines.secure_sums import SecureSums
from tffc.engines.steps import parameter, struct
from tffc.execution.sections import run_section


class MapReduceSteps:
    """See `tffc.engines.steps.Steps`."""

    client_output_type = None

    def __init__(self, form: MapReduceForm) -> None:
        self.form = form
        self.state_type = parameter(form.prepare)
        self.data_type = struct(parameter(form.work))[0]
        self.output_type = struct(signature(form.update).result)[1]
        self._secure = SecureSums(form)

    def prepare(self, state: Any) -> tuple[Any, Any]:
        return state, run_section(self.form.prepare, state)

    def work(self, data: Any, sent: Any) -> Any:
        return run_section(self.form.work, (data, sent))

    def zero(self, kept: Any) -> Any:
        return run_section(self.form.zero, None), self._secure.zero()

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        plain, sums = accumulator
        contribution, *secured = update
        sums = self._secure.add(sums, secured, client)
        return run_section(self.form.accumulate, (plain, contribution)), sums

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        plain = run_section(self.form.merge, (first[0], second[0]))
        return plain, self._secure.merge(first[1], second[1])

    def finish(self, kept: Any, accumulator: Any) -> tuple[Any, Any]:
        plain, sums = accumulator
        report = run_section(self.form.report, plain)
        state, output = run_section(self.form.update, (kept, (report, *sums)))
        return state, output
