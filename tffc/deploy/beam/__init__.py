"""The engine on Apache Beam."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tffc.runtime.engines.kind import EngineKind

if TYPE_CHECKING:
    from tffc.runtime.engines.engine import ExplainsSpeed


def _engine() -> Callable[..., ExplainsSpeed]:
    from tffc.deploy.beam.engine import BeamEngine

    return BeamEngine


BEAM = EngineKind(
    "beam",
    _engine,
    "a runner of Apache Beam",
    options="For Beam: its own options and those of its runner, in quotes, and --fanout=N.",
    workers_option="--direct_num_workers={} --direct_running_mode=multi_processing",
    packages={"apache_beam": "Apache Beam", "cloudpickle": "cloudpickle"},
    extra="beam",
)
