"""Readers of what a section holds: graphs of TensorFlow, options of datasets and modules of HLO."""

from __future__ import annotations

from tests.fuzz.reader import Reader, damage_bytes
from tests.fuzz.targets import seed_graphs, seed_sections
from tests.hostile.graphs import hlo
from tffc.graphs.operations.effects import is_deterministic
from tffc.graphs.operations.hlo import foreign_calls, instructions
from tffc.graphs.reading import check_graph, read_graph
from tffc.language.wire import read_xla
from tffc.linking.hlo_modules import read_hlo
from tffc.support.errors import TffcError


def read_a_graph(data: bytes) -> bool:
    """Read a graph, which passes the same checks again."""
    check_graph(read_graph(data))
    return True


def read_module(data: bytes) -> bool:
    """Read the instructions of a module, and what it calls."""
    list(instructions(data))
    foreign_calls(data, data)
    read_hlo(data)
    return True


def read_options(data: bytes) -> bool:
    """Read the options of a dataset."""
    is_deterministic(data)
    return True


def _seed_modules() -> list[bytes]:
    modules = [read_xla(hlo({1: "x", 2: "parameter"}, {1: "y", 2: "custom-call", 28: "f"}).payload)]
    for payload in seed_sections().values():
        try:
            modules.append(read_xla(payload))
        except TffcError:
            continue
    return sorted({content for each in modules for content in (each.hlo_module, each.stablehlo)})


def _seed_options() -> list[bytes]:
    return [b"", b"\x08\x00", b"\x08\x01\x12\x02\x08\x01", b"\x08"]


READERS = {
    "graph": Reader(read_a_graph, seed_graphs, damage_bytes, ("a graph of TensorFlow",)),
    "hlo": Reader(read_module, _seed_modules, damage_bytes, ("a module of HLO",)),
    "options": Reader(read_options, _seed_options, damage_bytes, ("the options of a dataset",)),
}
