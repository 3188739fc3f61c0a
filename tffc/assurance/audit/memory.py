"""State: the cells in which the nodes of a section keep something between operations.

A cell stands for everything that may be the same state when the graph runs.  What a cell may hold
only grows: the analysis runs until nothing is added, so the order of reads and writes does not
matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tffc.assurance.audit.flow import (
    ANYTHING,
    MANY,
    NOTHING,
    Flow,
    handles_of,
    join,
    limited,
    union,
)
from tffc.graphs.state import state_name

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


OUTSIDE = "outside"
"""The cell of everything outside of TensorFlow: files, other processes, Python, memory."""

JOINED = "joined state"
"""The one cell that is left when the cells are joined."""

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
        self._is_joined = False
        self._references: set[str] = set()
        self.effects: dict[str, int] = {}
        self.grew = False
        self.touched: set[str] = set()

    def __getitem__(self, cell: str) -> Flow:
        return self._contents.get(JOINED if self._is_joined else cell, NOTHING)

    def add(self, cells: frozenset[str]) -> None:
        """Add cells, unless they are there."""
        for cell in cells:
            if cell not in self._contents and not self._is_joined:
                self._contents[cell] = NOTHING
                self.grew = True

    def refer(self, cells: frozenset[str]) -> None:
        """Record that cells have references to them, which operations read like tensors."""
        self._references |= cells

    def dereferenced(self, flow: Flow) -> Flow:
        """Return the flow of what an operation reads that gets a tensor, or a reference to one."""
        if self._references.isdisjoint(flow.handles):
            return flow
        return flow.with_value(self.behind((flow,)))

    def reached(self, handles: frozenset[str]) -> frozenset[str]:
        """Return the cells behind handles, and behind the handles that these cells hold."""
        if not handles or ANYTHING in handles or self._is_joined:
            return handles and self._named(handles)
        cells = {OUTSIDE, *handles}
        stack = list(cells)
        while stack:
            more = handles_of((self[stack.pop()],)) - cells
            cells |= more
            stack.extend(more)
        return limited(frozenset(cells - {OUTSIDE} | (handles & {OUTSIDE})))

    def read(self, handles: frozenset[str]) -> Flow:
        """Return what the cells behind a handle may hold, which may have come from outside."""
        if self._is_anywhere(handles):
            sources = self._sources
            return Flow(sources, sources, None, frozenset((ANYTHING,)))
        held = self[OUTSIDE]
        for cell in handles:
            held = join(held, self[cell])
        return held

    def behind(self, flows: Iterable[Flow]) -> int:
        """Return all sources of what can be read through handles."""
        handles = self.reached(handles_of(flows))
        if not handles:
            return 0
        if self._is_anywhere(handles):
            return self._sources
        return union(self[cell].total() for cell in handles) | self[OUTSIDE].total()

    def everything(self) -> int:
        """Return all sources of all cells."""
        return self._sources

    def write(self, handles: frozenset[str], flow: Flow, decides: int) -> None:
        """Record that a value may be written to each of the cells; `decides` are the sources of
        whether, how often and where."""
        cells = self._named(handles) - {ANYTHING, MANY}
        if MANY in handles:
            cells |= self.effects.keys()
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
        """Return the cells to write behind a handle; whoever reads a cell finds what is outside
        too, so that stands for any."""
        if self._is_joined:
            return (handles & self.effects.keys()) | {JOINED}
        return handles | {ANYTHING, OUTSIDE} if self._is_anywhere(handles) else handles

    def _is_anywhere(self, handles: frozenset[str]) -> bool:
        """Tell whether handles may lead to any cell; those that lead to no known one may."""
        return not handles or ANYTHING in handles

    def show(self, effect: str, sources: int) -> None:
        """Record an effect, with the sources of what it shows and of whether it happens."""
        self.effects[effect] = self.effects.get(effect, 0) | sources
        self.touched.add(effect)

    def join_cells(self) -> None:
        """Let all cells be one from now on: the end of an analysis that takes too long."""
        if not self._is_joined:
            held = handles_of(self._contents.values())
            handles = frozenset((JOINED,)) if held else held
            self._contents = {JOINED: Flow(self._sources, self._sources, None, handles)}
            self._is_joined = self.grew = True


def cell_of(node: NodeView, body: str) -> str:
    """Return the cell of the state that a node of a body makes or finds.

    TensorFlow finds named state by a shared name; variables also if that is empty, and other state
    then by the name of the node, which gets the names of calls before it where functions are
    inlined.  So such names count as one if they end alike.
    """
    name = state_name(node)
    if name is None:
        return f"{body}/{node.name}"
    if node.op == "VarHandleOp":
        return f"variable {name!r}"
    return f"named {name.rpartition(b'/')[2]!r}"
