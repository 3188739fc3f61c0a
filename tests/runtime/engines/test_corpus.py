"""Recorded computations give the recorded results in every form on every engine."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable, Sequence

import pytest

from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.runtime.engines.recorded import differences
from tffc.backends.forms.kinds import FORMS
from tffc.deploy.engines import ENGINES, make_engine
from tffc.runtime.batching.choices import TENSORFLOW
from tffc.runtime.engines.engine import Batching, Engine, ExplainsSpeed
from tffc.runtime.engines.kind import EngineKind
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.speed import ALONE, BATCHED
from tffc.support.errors import FormError

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)


def on_engines(kinds: Iterable[EngineKind]) -> pytest.MarkDecorator:
    """Run a test on each of these engines whose packages are installed."""
    return pytest.mark.parametrize(
        "engine",
        [
            pytest.param(
                kind.name,
                marks=pytest.mark.skipif(
                    any(importlib.util.find_spec(package) is None for package in kind.packages),
                    reason=f"needs tffc[{kind.extra}]",
                ),
            )
            for kind in kinds
        ],
    )


@on_engines(ENGINES.values())
@each_case([c for c in cases() if c.has("io.json")])
def test_recorded_results(case: Case, engine: str) -> None:
    found: dict[str, list[str]] = {}
    for form in FORMS:
        try:
            found[form] = differences(case, form, functools.partial(make_engine, engine))
        except FormError:
            continue
    # What TFF runs but is not a round has no form.
    assert found or str(case).startswith("neg_")
    assert not any(found.values()), found


ONE_A_CALL = {
    "dataset_concat_aggregation": "its work takes or gives a sequence, float32[2]*",
    "fedeval_cnn": (
        "it has convolutions, which XLA computes slower than TensorFlow on this processor"
    ),
    "fedprox_unweighted_functional": "it has the operation AnonymousIteratorV3",
    "fedrecon": "it has the operation RangeDataset",
    "iblt_aggregator": "clients hold str",
    "mr_mnist": "a variable is written and read in no order that the graph tells",
    "neg_select_keys": "its work takes or gives str[?]",
    "secure_select_round": "it has the operation TensorSliceDataset",
    "strings_in_aggregate": "clients hold str",
    "tf_partial_shapes": "its work takes or gives a tensor of type float32[?], of any shape",
    "top_words": "clients hold str",
}
"""Why clients of these cannot be computed together, in any form; those of all others are."""

UNKNOWN_SHAPE = "Fill of a shape that is known only when it runs"
IN_JAX = dict.fromkeys(["hist_distinct_arity3", "hist_no_noise_secure"], UNKNOWN_SHAPE)
CLOCK = "it has the operation Timestamp"
IN_TENSORFLOW = {
    "hist_distinct_arity3": CLOCK,
    "hist_no_noise_secure": CLOCK,
    "agg_dft": "it has the operation StatelessRandomGetKeyCounter, of a seed that is not known",
    "tf_stateless_random": (
        "it has the operation StatelessRandomGetKeyCounter, of a seed that is not known"
    ),
    "agg_encoded_sum": "it has the operation RandomUniform",
}
"""The same for clients that only one compiler does not compute together, or for another reason."""

UNEVEN = {"fedavg_compression": 2, "two_sequences_per_client": 1}
"""How many clients of these hold a sequence of elements that differ in size, and are by themselves,
in all rounds."""

FEW = (
    "agg_sum",
    "kmeans",
    "mr_mnist",
    "two_sequences_per_client",
)


@pytest.mark.slow
@on_engines(ENGINES.values())
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[] if str(case) in FEW else [pytest.mark.long])
        for case in cases()
        if case.has("io.json")
    ],
)
def test_recorded_results_in_batches(case: Case, form: str, engine: str, compiler: str) -> None:
    engines: list[ExplainsSpeed] = []

    def make(process: Process) -> Engine:
        engines.append(make_engine(engine, process, batching=Batching(3, compiler=compiler)))
        return engines[0]

    try:
        found = differences(case, form, make)
    except FormError:
        pytest.skip("it has no such form")
    assert found == []
    (made,) = engines
    told = made.explain_speed()
    one_a_call = ONE_A_CALL | (IN_TENSORFLOW if compiler == TENSORFLOW else IN_JAX)
    if str(case) in one_a_call:
        assert clients_in(BATCHED, told) == 0
        reasons = [line for line in told if line.startswith("batching: ")]
        assert reasons == [f"batching: one client a call: {one_a_call[str(case)]}"]
    else:
        assert clients_in(ALONE, told) == UNEVEN.get(str(case), 0), told
        assert clients_in(BATCHED, told) > 0


def clients_in(part: str, told: Sequence[str]) -> int:
    """Return how many clients a part had, of what an engine says of its speed."""
    line = next((line for line in told if line.startswith(f"  {part}: ")), "")
    found = re.search(r", (\d+) clients$", line)
    return int(found[1]) if found else 0
