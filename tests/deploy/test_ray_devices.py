"""Ray's actors on machines with GPUs, which Ray only counts here."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from tests.deploy.ray_sources import Places
from tests.deploy.test_ray import TWO, cluster, needs_ray
from tests.runtime.engines.batches import descending, numbers_to, source_of
from tffc.deploy.engines import make_engine
from tffc.runtime.batching.choices import PJRT, TENSORFLOW
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine

assert cluster


@needs_ray
@pytest.mark.parametrize("compiler", [TENSORFLOW, PJRT])
def test_each_worker_has_its_own_gpu(cluster: Any, tmp_path: pathlib.Path, compiler: str) -> None:
    """Ray only counts the GPUs of this machine; batches are computed where there is a device."""
    process = descending(3)
    values = source_of(process, [numbers_to(n, n % 4) for n in range(40)]).values
    source = Places(values, tmp_path)
    cohort = Cohort(source, source.clients)
    expected = LocalEngine(process).run_round((), cohort)
    node = cluster.add_node(num_cpus=2, num_gpus=2)
    try:
        engine = make_engine(
            "ray",
            process,
            options=[*TWO, "--gpus-per-worker=1"],
            batching=Batching(4, compiler=compiler),
        )
        found = engine.run_round((), cohort)
    finally:
        cluster.remove_node(node)
    np.testing.assert_allclose(found.output[0], expected.output[0], rtol=1e-5)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"0", "1"}
