"""The steps of a MapReduceForm.

c    = prepare(s)
ui   = work((di, c))
a    = accumulate ... from zero(), joined by merge
r    = report(a)
s, x = update((s, (r, secure sums)))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tffc.backends.forms.absorb import link_absorb
from tffc.backends.forms.form import MapReduceForm, signature
from tffc.engines.sections import run_section
from tffc.engines.secure_sums import SecureSums
from tffc.engines.steps import parameter, struct
from tffc.ir.nodes import Compiled


class MapReduceSteps:
    """See `tffc.engines.steps.Steps`."""

    client_output_type = None

    def __init__(self, form: MapReduceForm) -> None:
        self.form = form
        self.state_type = parameter(form.prepare)
        self.data_type = struct(parameter(form.work))[0]
        self.output_type = struct(signature(form.update).result)[1]
        self.aggregations = (_Aggregation(form),)

    def prepare(self, state: Any) -> tuple[Any, Any]:
        return state, run_section(self.form.prepare, state)

    def work(self, data: Any, sent: Any) -> Any:
        return run_section(self.form.work, (data, sent))

    def absorb(self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str) -> list[Any]:
        return [self.aggregations[0].absorb(totals[0], data, sent, client)]

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        state, output = run_section(self.form.update, (kept, reports[0]))
        return state, output


class _Aggregation:
    """See `tffc.engines.steps.Aggregation`; the secure sums go along with what is in the open."""

    def __init__(self, form: MapReduceForm) -> None:
        self._form = form
        self._secure = SecureSums(form)

    def zero(self, kept: Any) -> Any:
        return run_section(self._form.zero, None), self._secure.zero()

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        plain, sums = accumulator
        contribution, *secured = update
        sums = self._secure.add(sums, secured, client)
        return run_section(self._form.accumulate, (plain, contribution)), sums

    def absorb(self, accumulator: Any, data: Any, sent: Any, client: str) -> Any:
        """Does a client's work and accumulates it, in one call into TensorFlow."""
        plain, sums = accumulator
        plain, *secured = run_section(self._absorb, (plain, (data, sent)))
        return plain, self._secure.add(sums, secured, client)

    @functools.cached_property
    def _absorb(self) -> Compiled:
        return link_absorb(self._form)

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        plain = run_section(self._form.merge, (first[0], second[0]))
        return plain, self._secure.merge(first[1], second[1])

    def report(self, accumulator: Any, kept: Any) -> Any:
        plain, sums = accumulator
        return run_section(self._form.report, plain), *sums
