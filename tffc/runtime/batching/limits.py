"""The limits of plans of batches: from when on, and up to which size, batches pay off."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the plans of one process; the defaults were measured on usual processors."""

    patience: float = 2.0
    """How many seconds clients must take one by one before a kernel is compiled for them: about as
    long as compiling takes.  If the last compilation took longer, its time counts instead."""

    trials: int = 3
    """The number of calls of a kernel that are measured before it is used for good, not counting
    those that compile it."""

    shares: int = 32
    """The least number of batches that a round is divided into, so that many cores have work."""

    shares_alone: int = 32
    """The same for clients that are computed one by one."""

    window: int = 8
    """How many batches are planned together."""

    least_clients: int = 16
    """`shares` does not make batches smaller than this, because then the call itself would take as
    long as the clients' work."""

    most_clients: int = 4096
    """The most clients in a batch whose size is not given."""

    most_bytes: int = 2**25
    """The most bytes of data in any batch."""

    most_kernels: int = 12
    """The most kernels that are compiled for a program; clients that need another are computed one
    by one."""

    without_tensorflow: int = 32
    """The clients in a batch where each is to be computed by itself, but TensorFlow, which does
    that, is not installed."""

    most_rests: int = 32
    """The most sizes of last batches that one kernel computes: it has compiled code for each
    where it cannot mask them."""

    most_stored: int = 2**28
    """If all clients take part in a round, its batches are stored for the next, up to so many
    bytes."""

    most_numbers: int = 512
    """The most numbers in a model that is vectorised over clients of equal shapes.  The arrays of
    all clients' steps with a larger model would not stay in the processor's caches."""
