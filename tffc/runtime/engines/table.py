"""The table of engines: their names, requirements and options."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tffc.runtime.engines.engine import ONE_A_CALL, Batching, processor_count
from tffc.runtime.frameworks.tensorflow.load import use_processors, use_threads
from tffc.support.errors import LanguageValueError, MissingExtraError

if TYPE_CHECKING:
    from tffc.runtime.engines.engine import ExplainsSpeed
    from tffc.runtime.engines.process import Process


class EngineKind(NamedTuple):
    """An engine: its name, the module and name of its class, and its description in help texts.

    `shows_clients` tells whether it can show what clients' code prints, and its errors.
    `packages` maps the import names of the packages that it needs to their titles; `extra` installs
    them.  The class is imported only when the engine is used, and is called with a process,
    `batching`, and those of `workers`, `masks_sums`, `shows_clients` and `options` that it takes.
    The field `options` describes its options.
    """

    name: str
    module: str
    engine: str
    summary: str
    takes_workers: bool = False
    measures_batches: bool = False
    """Whether it can choose the size of batches by measuring, and takes a device for them."""
    masks_sums: bool = False
    """Whether it can mask secure sums between the clients of a round."""
    shows_clients: bool = False
    options: str | None = None
    workers_option: str | None = None
    """The engine's own options for the number of workers, with {} for the number."""
    packages: Mapping[str, str] = MappingProxyType({})
    extra: str | None = None


ENGINES: dict[str, EngineKind] = {
    kind.name: kind
    for kind in (
        EngineKind(
            "local",
            "tffc.runtime.engines.local",
            "LocalEngine",
            "this process",
            takes_workers=True,
            measures_batches=True,
            masks_sums=True,
            shows_clients=True,
        ),
        EngineKind(
            "beam",
            "tffc.deploy.beam.engine",
            "BeamEngine",
            "a runner of Apache Beam",
            options="For Beam: its own options and those of its runner, in quotes, and --fanout=N.",
            workers_option="--direct_num_workers={} --direct_running_mode=multi_processing",
            packages={"apache_beam": "Apache Beam", "cloudpickle": "cloudpickle"},
            extra="beam",
        ),
        EngineKind(
            "ray",
            "tffc.deploy.ray.engine",
            "RayEngine",
            "actors of Ray",
            options="For Ray: --address=auto, --workers=N, --cpus-per-worker=X, "
            "--gpus-per-worker=X, --shard=N, --fanout=N, --wait=SECONDS.",
            workers_option="--workers={}",
            packages={"ray": "Ray"},
            extra="ray",
        ),
    )
}
"""The engines by name."""


def share_cores(
    clients: int | None, workers: int | None = None, batching: Batching = ONE_A_CALL
) -> None:
    """Make TensorFlow divide the cores between the given number of clients of a round.

    Only the first call with a number counts, and it must precede any computation.  With as many
    clients as cores, each operation runs in one thread: the clients keep the cores busy, and small
    operations are not worth dividing between threads.  If clients are computed in batches, each
    worker, by default one for each core, gets a virtual CPU device of TensorFlow.
    """
    cores = processor_count()
    if clients is not None:
        use_threads(max(1, cores // max(1, clients)))
    if batching != ONE_A_CALL:
        use_processors(workers or cores)


def make_engine(
    name: str,
    process: Process,
    workers: int | None = None,
    options: Sequence[str] = (),
    batching: Batching = ONE_A_CALL,
    *,
    masks_sums: bool = False,
    shows_clients: bool = False,
) -> ExplainsSpeed:
    """Return the engine of this name for a process.

    Raises:
      LanguageValueError: there is no such engine, or it does not take the workers, options or
        batching, or it cannot mask sums or show clients.
      MissingExtraError: a package that it needs is not installed.
    """
    if name not in ENGINES:
        raise LanguageValueError(
            "E706", f"there is no engine {name!r}", help=f"the engines are {', '.join(ENGINES)}"
        )
    kind = ENGINES[name]
    if workers is not None and not kind.takes_workers:
        own = kind.workers_option
        raise LanguageValueError(
            "E747",
            f"the engine {name!r} takes no number of workers",
            help=f"give an option of its own, such as '{own.format(workers)}'" if own else None,
        )
    _check_batching(kind, batching)
    if options and kind.options is None:
        takers = [other.name for other in ENGINES.values() if other.options is not None]
        raise LanguageValueError(
            "E747",
            f"the engine {name!r} takes no options, found {' '.join(options)}",
            help=f"choose the engine {' or '.join(takers)}, or give no options",
        )
    if masks_sums and not kind.masks_sums:
        able = [other.name for other in ENGINES.values() if other.masks_sums]
        raise LanguageValueError(
            "E747",
            f"the engine {name!r} cannot mask secure sums",
            help=f"choose the engine {' or '.join(able)}, or leave secure sums unmasked",
        )
    if shows_clients and not kind.shows_clients:
        able = [other.name for other in ENGINES.values() if other.shows_clients]
        raise LanguageValueError(
            "E747",
            f"the engine {name!r} cannot show what clients' code shows",
            help=f"choose the engine {' or '.join(able)}, which runs on your own machine",
        )
    _check_installed(kind)
    given: dict[str, Any] = {}
    if kind.takes_workers:
        given["workers"] = workers
    if kind.masks_sums:
        given["masks_sums"] = masks_sums
    if kind.shows_clients:
        given["shows_clients"] = shows_clients
    if kind.options is not None:
        given["options"] = options
    engine = getattr(importlib.import_module(kind.module), kind.engine)
    return engine(process, batching=batching, **given)


def _check_batching(kind: EngineKind, batching: Batching) -> None:
    if kind.measures_batches or (batching.size is not None and not batching.device):
        return
    able = [other.name for other in ENGINES.values() if other.measures_batches]
    raise LanguageValueError(
        "E747",
        f"the engine {kind.name!r} neither measures whether batches pay nor chooses a device for "
        "them",
        help=f"choose the engine {' or '.join(able)}, or give how many clients are in a batch",
    )


def _check_installed(kind: EngineKind) -> None:
    for package, title in kind.packages.items():
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(
                "E701",
                f"{title} is not installed, and the engine {kind.name!r} needs it",
                help=f"pip install 'tffc[{kind.extra}]'",
            )
