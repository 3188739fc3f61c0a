"""The constants returned by a section without parameter, as text."""

from __future__ import annotations

import struct
from typing import Any

from tffc.graphs.canonical import STRUCT_CODES, tensor_elements
from tffc.graphs.node import NodeView, source
from tffc.language.nodes import Compiled
from tffc.linking.section import SectionContent, read_section


def constant_texts(section: Compiled) -> list[str]:
    """Return the results of a section that returns constant scalars; empty if it returns others.

    Raises:
      GraphError: the section is malformed.
    """
    if section.kind != "tensorflow":
        return []
    content = read_section(section)
    texts = [_text(_constant(content, edge)) for edge in content.result]
    return [] if None in texts else [text for text in texts if text is not None]


def _constant(content: SectionContent, edge: str) -> Any:
    """Return the constant node that an edge leads to through identities, or None."""
    seen: set[str] = set()
    while (name := source(edge)) in content.nodes and name not in seen:
        seen.add(name)
        node = content.nodes[name]
        if node.op == "Const":
            return node
        if node.op != "Identity" or not node.input:
            return None
        edge = node.input[0]
    return None


def _text(node: NodeView | None) -> str | None:
    if node is None:
        return None
    tensor = node.attr["value"].tensor
    if tensor.tensor_shape.dim or tensor.dtype not in STRUCT_CODES:
        return None
    code = STRUCT_CODES[tensor.dtype][1]
    values = struct.unpack(f"<{code}", tensor_elements(tensor, 1)[0])
    return str(values[0]) if len(values) == 1 and code != "H" else None
