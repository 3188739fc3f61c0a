"""How the parts of a round are shared between workers."""

from __future__ import annotations

from tffc.runtime.batching.kernels import Kernel, Mode


def shared_equally(clients: int, most: int) -> int:
    """Return the least power of two of batches with at most `most` clients each.

    It is a power of two so that workers get equal shares.
    """
    return 1 << (-(-clients // most) - 1).bit_length()


def calls_of(kernel: Kernel, clients: int) -> int:
    """Return how many calls of a kernel compute so many clients."""
    if kernel.mode is Mode.LOOP:
        return shared_equally(clients, kernel.size)
    # A vectorised kernel always computes `size` clients: smaller batches save nothing.
    return -(-clients // kernel.size)


def slowdown(parts: int, workers: int) -> float:
    """Return how much longer workers take for equal parts than if each had work all the time."""
    return -(-parts // workers) * workers / parts
