"""Dividing the cores of this machine between the clients of a round."""

from __future__ import annotations

from tffc.runtime.engines.engine import ONE_A_CALL, Batching, processor_count
from tffc.runtime.frameworks.tensorflow.load import (
    use_accelerators,
    use_processors,
    use_threads,
)


def share_cores(
    clients: int | None, workers: int | None = None, batching: Batching = ONE_A_CALL
) -> None:
    """Make TensorFlow divide the cores between the given number of clients of a round.

    Only the first call with a number counts, and it must precede any computation.  With as many
    clients as cores, each operation runs in one thread: the clients keep the cores busy, and small
    operations are not worth dividing between threads.  If clients are computed in batches, each
    worker, by default one for each core, gets a virtual CPU device of TensorFlow.  If they are not,
    but an accelerator is named, single clients may be computed there.
    """
    cores = processor_count()
    if clients is not None:
        use_threads(max(1, cores // max(1, clients)))
    if batching.size == 1 and batching.device and not batching.device.startswith("CPU"):
        use_accelerators()
    if batching.size != ONE_A_CALL.size:
        use_processors(workers or cores)
