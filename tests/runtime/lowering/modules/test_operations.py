"""Modules that are translated compute what they do when they are called as they are."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.runtime.lowering.modules.comparison import (
    assert_close,
    computed,
    computed_in_kernel,
    module_of,
    module_of_text,
)
from tests.runtime.lowering.modules.samples import SAMPLES, Sample
from tests.runtime.lowering.modules.texts import TEXTS
from tffc.runtime.lowering.modules.evaluation import OPERATIONS
from tffc.runtime.lowering.modules.stablehlo import Region, functions_of

EACH = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow, *([pytest.mark.long] if place % 3 else [])])
        for place, name in enumerate(SAMPLES)
    ],
)
"""Every third sample by day, the others at night."""


@EACH
def test_computes_the_same_bits(name: str) -> None:
    sample = SAMPLES[name]
    module = module_of(sample)
    ours = computed(module.translated(), sample.arguments)
    theirs = computed(module.called(), sample.arguments)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


@EACH
def test_computes_the_same_for_several_clients_at_once(name: str) -> None:
    sample = SAMPLES[name]
    module, clients = module_of(sample), of_clients(sample)
    stacked = [np.stack(each) for each in zip(*clients, strict=True)]
    together = computed_in_kernel(jax.vmap(module.translated(selects=True)), stacked)
    alone = [computed(module.called(), client) for client in clients]
    for number, each in enumerate(together):
        for client, results in enumerate(alone):
            assert_close(each[client], results[number])


def of_clients(sample: Sample) -> list[tuple[Any, ...]]:
    """Return the arguments of three clients, the first of which has the sample's."""

    def other(value: Any, client: int) -> Any:
        value = np.asarray(value)
        if value.ndim:
            return np.roll(value, client)
        return (
            value ^ (client == 1) if value.dtype == np.bool_ else value + value.dtype.type(client)
        )

    return [tuple(other(value, client) for value in sample.arguments) for client in range(3)]


@pytest.mark.parametrize("name", TEXTS)
def test_written_modules_give_what_is_expected(name: str) -> None:
    text = TEXTS[name]
    module = module_of_text(text)
    results = computed(module.translated(), text.arguments)
    stacked = [np.stack([each] * 2) for each in text.arguments]
    together = computed(jax.vmap(module.translated(selects=True)), stacked)
    for result, both, expected in zip(results, together, text.results, strict=True):
        assert_close(result, np.asarray(expected))
        assert_close(both[1], np.asarray(expected))
    if name != "a sharding":  # JAX does not call these.
        theirs = computed(module.called(), text.arguments)
        assert [each.tobytes() for each in results] == [each.tobytes() for each in theirs]


def operations_of(region: Region) -> set[str]:
    """Return the names of all operations in a region."""
    names = {each.attributes.get("name", each.name) for each in region.operations}
    return names.union(*(operations_of(r) for each in region.operations for r in each.regions))


@pytest.mark.slow
def test_every_operation_is_compared() -> None:
    modules = [*map(module_of, SAMPLES.values()), *map(module_of_text, TEXTS.values())]
    regions = [each for module in modules for each in functions_of(module.artifact).values()]
    assert {*OPERATIONS} <= set().union(*map(operations_of, regions))
