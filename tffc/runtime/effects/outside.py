"""The side effects of a compiled section: files, the network, Python.

Everything in the graph counts, needed or not, and so do all functions of its library: TensorFlow
evaluates constant parts of a graph while it loads it, and reads files that they name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import OUTSIDE, Effect, has_outside
from tffc.graphs.reading import read_graph
from tffc.language.nodes import Compiled
from tffc.language.wire import read_tensorflow, read_xla
from tffc.runtime.effects.use import Use
from tffc.support.errors import GraphError


@functools.lru_cache(maxsize=256)
def outside_uses(section: Compiled) -> tuple[Use, ...]:
    """Find the effects of a section, in the order of its nodes.

    Raises:
      GraphError: the section is malformed.
      WireError: its message is malformed.
    """
    if section.kind == "xla":
        return tuple(_xla(section))
    if not _may_reach_outside(section):
        return ()
    from tffc.runtime.effects.accesses import graph_uses  # which few programs need

    return graph_uses(section)


def _xla(section: Compiled) -> Iterator[Use]:
    content = read_xla(section.payload)
    reported: set[str] = set()
    for opcode, target in hlo.instructions(content.hlo_module):
        effect = hlo.effect_of(opcode, target)
        if effect in OUTSIDE:
            reported.add(target)
            yield Use(OUTSIDE[effect], opcode, (target.encode(),) if target else (), ())
    for target in hlo.foreign_calls(content.hlo_module, content.stablehlo):
        if target not in reported:
            effect = hlo.effect_of(hlo.CUSTOM_CALL, target) or Effect.OTHER
            yield Use(OUTSIDE[effect], hlo.CUSTOM_CALL, (target.encode(),), ())


def _may_reach_outside(section: Compiled) -> bool:
    """Return whether a section has anything that must be analysed to know its effects."""
    if section.kind != "tensorflow":
        return True
    try:
        return has_outside(read_graph(read_tensorflow(section.payload).graph_def))
    except GraphError:
        return True
