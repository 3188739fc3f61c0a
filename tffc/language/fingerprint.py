"""Names for compiled sections that depend only on what they compute.

Two traces of one function give different bytes: node names, counters in the names of functions,
random names of tables, the version of TensorFlow.  A fingerprint is a hash of a canonical form
without these, so that printed programs can be kept, and compared across processes, machines and
releases.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from tffc.graphs.canonical import canonical_graph
from tffc.graphs.node import hash_of
from tffc.graphs.proto.encoding import Place, without_fields
from tffc.graphs.reading import read_graph
from tffc.language.notation.pieces import expanded
from tffc.language.types import Type
from tffc.language.wire.sections import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    read_tensorflow,
    read_xla,
)
from tffc.support.errors import GraphError, WireError

INSTRUCTION: dict[int, Any] = {7: None}  # metadata: the place in the source
HLO_COMPUTATION: dict[int, Any] = {2: INSTRUCTION}
HLO_MODULE: dict[int, Any] = {3: HLO_COMPUTATION, 5: None, 25: None}  # its number, stack frames
"""The fields that are removed from an HLO module, by number: whole (None), or fields in them."""


class Section(Protocol):
    """A compiled section: the attributes of `nodes.Compiled`, which cannot be imported here."""

    @property
    def kind(self) -> str: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def type(self) -> Type: ...

    @property
    def name(self) -> str | None: ...


@functools.lru_cache(maxsize=256)
def fingerprint(section: Section) -> str:
    """Return 64 hexadecimal digits that identify the section's type and content.

    They do not depend on the names and the order of nodes, functions and resources, on nodes that
    are not used, on the encoding of constants, nor on the version that wrote the graph.  A section
    that cannot be read is identified by its bytes.
    """
    return hash_of((section.kind, section.type, _canonical(section))).hex()


def _canonical(section: Section) -> bytes:
    try:
        if section.kind == "tensorflow":
            return _canonical_tensorflow(read_tensorflow(section.payload))
        if section.kind == "xla":
            return _canonical_xla(read_xla(section.payload))
        return section.payload
    except (WireError, GraphError):
        return section.payload


def _canonical_tensorflow(section: TensorFlowSection) -> bytes:
    graph = read_graph(section.graph_def)
    first: dict[str, int] = {}
    results: list[str] = []
    parameter = _structure(section.parameter, lambda name: str(first.setdefault(name, len(first))))
    result = _structure(section.result, lambda name: results.append(name) or "")
    body = canonical_graph(graph, list(first), results, section.initialize_op)
    return f"{parameter}->{result}|".encode() + body


def _canonical_xla(section: XlaSection) -> bytes:
    parameter, result = (_structure(b, str) for b in (section.parameter, section.result))
    module = without_fields(section.hlo_module, Place(0, len(section.hlo_module)), HLO_MODULE)
    added = b"%d:%b" % (len(section.stablehlo), section.stablehlo) if section.stablehlo else b""
    return f"{parameter}->{result}|".encode() + added + module


def leaf_names(binding: SectionBinding | None) -> list[str]:
    """Return the names of the bound tensors, in order."""
    names: list[str] = []
    _structure(binding, lambda name: names.append(name) or "")
    return names


def _structure(binding: SectionBinding | None, leaf: Callable[[str], str]) -> str:
    """Return the nesting of a binding, its tensors as `leaf` writes them."""

    def pieces(part: SectionBinding) -> list[Any]:
        match part:
            case StructBinding(elements):
                return ["<", *elements, ">"]
            case SequenceBinding(variant):
                return [f"{leaf(variant)}*,"]
            case TensorBinding(tensor):
                return [f"{leaf(str(tensor))},"]

    return "".join(map(str, expanded([] if binding is None else [binding], pieces)))
