"""State: the cells in which the nodes of a section keep something between operations.

A cell stands for everything that may be the same state when the graph runs.  What a cell may hold
only grows: the analysis runs until nothing is added, so the order of reads and writes does not
matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.audit.flow import NOTHING, Flow, handles_of, join, union
from tffc.graphdef.state import NAME_ATTRIBUTES, has_named_state

ANYTHING = "any state"
"""Among handles it stands for all cells: a name that is computed may lead to any."""

OUTSIDE = "outside"
"""The cell of everything outside of TensorFlow: files, other processes, Python, memory."""

ELSEWHERE = "functions of datasets from other sections"
"""The cell of all state that functions of a dataset use which comes out of another section."""


class Memory:
    """The cells of a section, and the flows of what they may hold.

    `grew` tells whether a cell was added, or may hold more than before, since it was last reset.
    `touched` collects the cells that were written; whoever needs those of one part replaces it.
    `effects` are cells that nothing reads: each has the sources of what an effect shows, and of
    whether and how often it happens.
    """

    def __init__(self) -> None:
        self._contents: dict[str, Flow] = {}
        self._sources = 0
        self.effects: dict[str, int] = {}
        self.grew = False
        self.touched: set[str] = set()

    def __getitem__(self, cell: str) -> Flow:
        return self._contents.get(cell, NOTHING)

    def add(self, cells: frozenset[str]) -> None:
        """Add cells, unless they are there."""
        for cell in cells:
            if cell not in self._contents:
                self._contents[cell] = NOTHING
                self.grew = True

    def reached(self, handles: frozenset[str]) -> frozenset[str]:
        """Return the cells behind handles, and behind the handles that these cells hold."""
        if not handles:
            return handles
        cells = {OUTSIDE, *handles}
        stack = list(cells)
        while stack:
            cell = stack.pop()
            if cell == ANYTHING:
                return frozenset(self._contents) | cells
            more = handles_of((self[cell],)) - cells
            cells |= more
            stack.extend(more)
        cells.discard(OUTSIDE)
        return frozenset(cells | (handles & {OUTSIDE}))

    def read(self, handles: frozenset[str]) -> Flow:
        """Return what the cells behind a handle may hold, which may have come from outside."""
        held = NOTHING
        for cell in self._named(handles):
            held = join(held, self[cell])
        return held.with_value(self[OUTSIDE].total())

    def behind(self, flows: Iterable[Flow]) -> int:
        """Return all sources of what can be read through handles."""
        handles = handles_of(flows)
        if not handles:
            return 0
        cells = self.reached(handles)
        return union(self[cell].total() for cell in cells) | self[OUTSIDE].total()

    def everything(self) -> int:
        """Return all sources of all cells."""
        return self._sources

    def write(self, handles: frozenset[str], flow: Flow, decides: int) -> None:
        """Record that a value may be written to each of the cells; `decides` are the sources of
        whether, how often and where."""
        cells = self._named(handles)
        self.touched |= cells
        flow = flow.with_value(decides)
        for cell in cells:
            if cell in self.effects:
                self.effects[cell] |= flow.total()
                continue
            before = self._contents.get(cell)
            after = flow if before is None else join(before, flow)
            if after != before:
                self._contents[cell] = after
                self._sources |= after.total()
                self.grew = True

    def _named(self, handles: frozenset[str]) -> frozenset[str]:
        """Return the cells behind a handle; a handle that leads to no known one may be any."""
        if not handles or ANYTHING in handles:
            return handles.union(self._contents) - {ANYTHING}
        return handles

    def show(self, effect: str, sources: int) -> None:
        """Record an effect, with the sources of what it shows and of whether it happens."""
        self.effects[effect] = self.effects.get(effect, 0) | sources
        self.touched.add(effect)

    def join_cells(self) -> None:
        """Let all cells hold what any of them may: the end of an analysis that takes too long."""
        handles = frozenset(self._contents)
        self.write(handles, Flow(self._sources, self._sources, None, handles), self._sources)


def cell_of(node: Any, body: str) -> str:
    """Return the cell of the state that a node of a body makes or finds.

    TensorFlow finds named state by a shared name; variables also if that is empty, and other state
    then by the name of the node, which gets the names of calls before it where functions are
    inlined.  So such names count as one if they end alike.
    """
    if not has_named_state(node):
        return f"{body}/{node.name}"
    names = (node.attr[name].s for name in NAME_ATTRIBUTES if name in node.attr)
    shared = next(filter(None, names), b"")
    if node.op == "VarHandleOp":
        return f"variable {shared!r}"
    return f"named {(shared or node.name.encode()).rpartition(b'/')[2]!r}"
