"""What the analysis of sections finds: draws, effects, the outcomes of functions."""

from __future__ import annotations

import dataclasses

from tffc.assurance.audit.flow import NO_HANDLES, NOTHING, Flow, join, join_all, widened


@dataclasses.dataclass(frozen=True, slots=True)
class Draw:
    """An operation that draws random numbers: its function (empty for the graph), its node, and
    whether it draws new numbers in each run."""

    operation: str
    function: str
    node: str
    is_fresh: bool


@dataclasses.dataclass(frozen=True, slots=True)
class NodeEffect:
    """A node that shows or reaches something outside of the section: `kind` is one of `KINDS`,
    `function` the function that it is in, empty for the graph."""

    kind: str
    operation: str
    function: str
    node: str


SHOWN, ERRORS = "shown", "errors"
"""The kinds of effects of a node that prints or checks its inputs, and of one whose errors may have
elements of its inputs in their texts.  The others are the values of `effects.OUTSIDE`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The flows of a function's results, at least one, and the cells that it may write."""

    results: tuple[Flow, ...]
    touched: frozenset[str]


class Summary:
    """A function that is analysed once for all its calls: the join of their arguments and of what
    decides about them, the outcome for these, and the other such functions that call it."""

    def __init__(self) -> None:
        self.arguments: tuple[Flow, ...] = ()
        self.decides = 0
        self.outcome = Outcome((NOTHING,), NO_HANDLES)
        self.callers: dict[str, None] = {}

    def include(self, arguments: tuple[Flow, ...], decides: int) -> bool:
        """Add the arguments of a call; tell whether the join has grown."""
        if len(arguments) != len(self.arguments) and self.arguments:
            width = max(len(arguments), len(self.arguments))
            arguments = (join_all((*arguments, *self.arguments)),) * width
        before = self.arguments, self.decides
        known = self.arguments or (NOTHING,) * len(arguments)
        self.arguments = tuple(map(join, widened(known, len(arguments)), arguments))
        self.decides |= decides
        return before != (self.arguments, self.decides)


class Outside:
    """What the sections of a round may leave outside of them, for each other to find."""

    def __init__(self) -> None:
        self.sources = 0
        self.elsewhere = 0

    def state(self) -> tuple[int, int]:
        """Return the sources of everything that is left."""
        return self.sources, self.elsewhere
