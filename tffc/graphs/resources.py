"""Resources in graphs: arrays that stand in a graph by their digest, not by their content.

A resource is a node of the operation `Placeholder` with the attribute `_resource`, the SHA-256 of
the array's bytes in row-major order, little-endian.  TensorFlow allows attributes that begin with
an underscore on any node, and refuses to run such a node unless it is fed.  Only a graph itself has
resources: nothing can be fed to a node of a function.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tffc.graphs.node import NodeView
from tffc.graphs.proto import AttrValue, DataType, NodeDef, TensorShapeProto
from tffc.support.errors import GraphError
from tffc.support.printable import printable

ATTRIBUTE = "_resource"
OPERATION = "Placeholder"
DIGEST = re.compile(r"[0-9a-f]{64}")

MOST_BYTES = 2**47
"""The most bytes of a resource: as many as a process can map."""

SIZES = {
    DataType.DT_BOOL: 1,
    DataType.DT_INT8: 1,
    DataType.DT_UINT8: 1,
    DataType.DT_INT16: 2,
    DataType.DT_UINT16: 2,
    DataType.DT_HALF: 2,
    DataType.DT_BFLOAT16: 2,
    DataType.DT_INT32: 4,
    DataType.DT_UINT32: 4,
    DataType.DT_FLOAT: 4,
    DataType.DT_INT64: 8,
    DataType.DT_UINT64: 8,
    DataType.DT_DOUBLE: 8,
    DataType.DT_COMPLEX64: 8,
    DataType.DT_COMPLEX128: 16,
}
"""The bytes of an element of each type that resources have."""


class ResourceNode(NamedTuple):
    """What a node says of its resource; `dtype` is TensorFlow's number of the element type."""

    digest: str
    dtype: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The bytes of the array."""
        return math.prod(self.shape) * SIZES[self.dtype]


def is_resource(node: NodeView) -> bool:
    """Tell whether a node stands for a resource."""
    return node.op == OPERATION and ATTRIBUTE in node.attr


def resource_of(node: NodeView) -> ResourceNode:
    """Return what a node of a graph that was checked says of its resource."""
    dims = node.attr["shape"].shape.dim
    shape = tuple(dim.size for dim in dims)
    return ResourceNode(node.attr[ATTRIBUTE].s.decode(), node.attr["dtype"].type, shape)


def resources_among(nodes: Iterable[NodeDef]) -> Iterator[tuple[str, ResourceNode]]:
    """Yield the resources among the nodes of a checked graph, each with the name of its node."""
    return ((node.name, resource_of(node)) for node in nodes if is_resource(node))


def resource_attributes(resource: ResourceNode) -> dict[str, AttrValue]:
    """Return the attributes of the node of a resource."""
    dims = [TensorShapeProto.Dim(size=size) for size in resource.shape]
    return {
        ATTRIBUTE: AttrValue(s=resource.digest.encode()),
        "dtype": AttrValue(type=resource.dtype),
        "shape": AttrValue(shape=TensorShapeProto(dim=dims)),
    }


def check_resource(node: NodeDef, notes: tuple[str, ...]) -> None:
    """Check that a node that stands for a resource says which, and how large it is.

    Raises:
      GraphError: it does not.
    """
    digest = node.attr[ATTRIBUTE].s
    shape = node.attr["shape"].shape
    sizes = [dim.size for dim in shape.dim]
    if not DIGEST.fullmatch(digest.decode("latin-1")):
        shown = printable(digest[:80].decode("latin-1"))
        raise _refusal(node, f"names '{shown}', which is not the SHA-256 of an array", notes)
    if not node.attr["shape"].HasField("shape") or shape.unknown_rank or min(sizes, default=0) < 0:
        raise _refusal(node, "does not tell its shape", notes)
    if node.attr["dtype"].type not in SIZES:
        raise _refusal(node, "does not have numbers as elements", notes)
    if math.prod(max(size, 1) for size in sizes) * SIZES[node.attr["dtype"].type] > MOST_BYTES:
        raise _refusal(node, f"has more than {MOST_BYTES} bytes", notes)
    if node.input:
        raise _refusal(node, "waits for other nodes", notes)


def refuse_in_function(node: NodeDef, notes: tuple[str, ...]) -> GraphError:
    """Return the refusal of a resource in a function."""
    return _refusal(node, "is in a function, where nothing can be fed", notes)


def _refusal(node: NodeDef, reason: str, notes: tuple[str, ...]) -> GraphError:
    return GraphError(
        "E340",
        f"the resource {printable(node.name)!r} {reason}",
        notes=notes,
        help="make resources with tffc.resource, and trace the computation again",
    )
