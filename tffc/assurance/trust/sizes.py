"""How large a bundle is for whoever runs it, and limits for that.

Everything is counted in the programs as they are stored: nothing runs, and what a loop repeats
counts once.  So the memory is a lower bound: a program that is small here may still need more.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tffc.assurance.trust.subjects import ClientsPart
from tffc.backends.bundle.bundle import Bundle
from tffc.graphs import proto
from tffc.language import wire
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.language.wire.resources import resources_of, sizes_of
from tffc.linking.inspect import inspect
from tffc.linking.section import read_section

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


SHAPES = {
    "Fill": 0,
    "BroadcastTo": 1,
    "Empty": 0,
    "RandomUniform": 0,
    "RandomUniformInt": 0,
    "RandomStandardNormal": 0,
    "TruncatedNormal": 0,
    "StatelessRandomUniform": 0,
    "StatelessRandomNormal": 0,
    "StatelessTruncatedNormal": 0,
    "StatelessRandomUniformV2": 0,
    "StatelessRandomNormalV2": 0,
    "StatelessTruncatedNormalV2": 0,
    "StatelessRandomUniformIntV2": 0,
}
"""The operations that make a tensor of a shape that they are given, and the input with it."""

WIDTHS = {
    proto.DataType.Value(name): width
    for width, names in {
        1: ("DT_BOOL", "DT_INT8", "DT_UINT8"),
        2: ("DT_HALF", "DT_BFLOAT16", "DT_INT16", "DT_UINT16"),
        4: ("DT_FLOAT", "DT_INT32", "DT_UINT32"),
        8: ("DT_DOUBLE", "DT_INT64", "DT_UINT64", "DT_COMPLEX64"),
        16: ("DT_COMPLEX128",),
    }.items()
    for name in names
}
"""The bytes of an element by its type in TensorFlow's encoding; any other counts one."""

MOST_DIMENSIONS = 254
"""The most dimensions of a tensor in TensorFlow; a constant with more elements is no shape."""

SHAPE_ATTRIBUTES = "shape", "_output_shapes"
"""The attributes that hold shapes of results."""

TYPE_ATTRIBUTES = "dtype", "T"
"""The attributes that hold element types of results."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramSizes:
    """The bytes of a bundle's messages and resources, and of its clients' part the operations, and
    the bytes of memory that it needs at least: its constants, its resources and its largest tensor
    of known shape."""

    bytes: int
    operations: int
    memory: int

    @classmethod
    def of(cls, bundle: Bundle, part: ClientsPart) -> ProgramSizes:
        """Measure a bundle.

        Raises:
          GraphError: a section is malformed.
        """
        messages = sum(
            len(wire.to_bytes(node, leaves=False)) for node in bundle.programs().values()
        )
        sections = list(_sections(part.components))
        resources = sum(sizes_of(resources_of(part.components.values())).values())
        constants = sum(len(section.payload) for section in sections)
        return cls(
            messages + sum(bundle.resources().values()),
            sum(sum(inspect(section).operations.values()) for section in sections),
            constants + resources + max(map(_largest_tensor, sections), default=0),
        )


def _sections(components: Mapping[str, Node]) -> Iterator[Compiled]:
    """Yield the sections of some components, each once."""
    seen: set[Compiled] = set()
    for component in components.values():
        for node in walk(component):
            if isinstance(node, Compiled) and node not in seen:
                seen.add(node)
                yield node


def _largest_tensor(section: Compiled) -> int:
    """Return the bytes of the largest tensor whose shape an operation of a section states."""
    if section.kind != "tensorflow":
        return 0
    graph = read_section(section).graph
    bodies = [graph.node, *(function.node_def for function in graph.library.function)]
    return max((size for nodes in bodies for size in _tensors(nodes)), default=0)


def _tensors(nodes: Iterable[NodeView]) -> Iterator[int]:
    by_name = {node.name: node for node in nodes}
    for node in by_name.values():
        width = _element_bytes(node)
        shapes = [shape for name in SHAPE_ATTRIBUTES for shape in _stated(node, name)]
        position = SHAPES.get(node.op)
        if position is not None and position < len(node.input):
            shapes.append(_constant(by_name.get(node.input[position].split(":")[0])))
        for shape in shapes:
            if shape is not None and all(size >= 0 for size in shape):
                yield width * math.prod(shape)


def _element_bytes(node: NodeView) -> int:
    for name in TYPE_ATTRIBUTES:
        if name in node.attr and node.attr[name].type in WIDTHS:
            return WIDTHS[node.attr[name].type]
    return 1


def _stated(node: NodeView, name: str) -> Iterator[list[int] | None]:
    """Yield the shapes in an attribute, None for one that is not known."""
    if name in node.attr:
        value = node.attr[name]
        for shape in [value.shape, *value.list.shape]:
            sizes = [dimension.size for dimension in shape.dim]
            yield None if shape.unknown_rank or any(size < 0 for size in sizes) else sizes


def _constant(node: NodeView | None) -> list[int] | None:
    """Return the integers that a constant holds, if it is one."""
    if node is None or node.op != "Const":
        return None
    tensor = node.attr["value"].tensor
    kind = {proto.DataType.Value("DT_INT32"): "<i4", proto.DataType.Value("DT_INT64"): "<i8"}.get(
        tensor.dtype
    )
    if kind is None:
        return None
    # A constant may give fewer elements than it has; the last one stands for the rest.
    count = math.prod(dimension.size for dimension in tensor.tensor_shape.dim)
    if not 0 <= count <= MOST_DIMENSIONS or len(tensor.tensor_content) > 8 * MOST_DIMENSIONS:
        return None
    if tensor.tensor_content:
        return [int(each) for each in np.frombuffer(tensor.tensor_content, kind)]
    few = list(tensor.int_val or tensor.int64_val)
    return few + few[-1:] * (count - len(few))
