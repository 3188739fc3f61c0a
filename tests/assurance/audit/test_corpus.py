"""The audited channels of recorded computations match the clients' contributions, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assurance.audit.test_flows import PLACES
from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.corpus.table import at_each, unplaced
from tffc.assurance.audit.audit import audit
from tffc.backends import compile_form
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.language.values.concrete import to_value
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import TffcError

CASES = cases()

pytestmark = pytest.mark.skipif(not CASES, reason=MISSING)


@each_case(CASES)
def test_sizes_of_channels(case: Case) -> None:
    try:
        made = compile_form(case.program(), "mapreduce")
    except TffcError as error:
        pytest.skip(f"it has no such form: {error.code}")
    assert isinstance(made, MapReduceForm)
    if not case.has("io.json"):
        pytest.skip("no round of it was recorded")
    recorded = case.rounds()
    one = next(each for each in recorded.rounds if each.n_clients)
    assert made.type_signature.parameter is not None
    state, data = to_value(one.arg, made.type_signature.parameter)
    context = run_section(made.prepare, unplaced(state))
    update = run_section(made.work, (at_each(data, one.n_clients)[0], context))
    parts = {place: iter(update[place]) for place in range(4)}
    for channel in audit(case.program(), "mapreduce").channels:
        given = next(parts[PLACES.get(channel.operator, 0)])
        if channel.size is not None:
            assert channel.size == size(given), channel.name


def size(value: Any) -> int:
    """Return the number of bytes of an update's element."""
    return sum(map(size, value)) if isinstance(value, tuple | list) else value.nbytes
