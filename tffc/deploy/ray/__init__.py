"""The engine on Ray."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tffc.runtime.engines.kind import EngineKind

if TYPE_CHECKING:
    from tffc.runtime.engines.engine import ExplainsSpeed


def _engine() -> Callable[..., ExplainsSpeed]:
    from tffc.deploy.ray.engine import RayEngine

    return RayEngine


RAY = EngineKind(
    "ray",
    _engine,
    "actors of Ray",
    options="For Ray: --address=auto, --workers=N, --cpus-per-worker=X, --gpus-per-worker=X, "
    "--shard=N, --fanout=N, --wait=SECONDS.",
    buffers=True,
    workers_option="--workers={}",
    packages={"ray": "Ray"},
    extra="ray",
)
