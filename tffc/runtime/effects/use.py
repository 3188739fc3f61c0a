"""An operation with a side effect, and what it accesses."""

from __future__ import annotations

from typing import NamedTuple

from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import OUTSIDE, Effect


class Use(NamedTuple):
    """One operation with an effect.

    `kind` is one of the values of `effects.OUTSIDE`.  `constants` are the strings in its attributes
    and inputs that name what it accesses, and `computed` says whether there may be others.  `path`
    leads from the graph to the operation: for each function on the way, the calling node and the
    function's name, and at the end the operation's own node.  `never_runs` says that no consent
    lets it run: it calls a function that only the process that made the program had.
    """

    kind: str
    operation: str
    constants: tuple[bytes, ...]
    path: tuple[str, ...]
    computed: bool = False

    @property
    def never_runs(self) -> bool:
        return self.kind == OUTSIDE[Effect.PYTHON] or self.operation in hlo.OF_HOST
