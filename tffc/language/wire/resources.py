"""The resources that programs use, found in the graphs of their sections."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from tffc.graphs.reading import read_graph
from tffc.graphs.resources import ATTRIBUTE, ResourceNode, resources_among
from tffc.language.dtypes import BY_NUMBER
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.language.types import TensorType
from tffc.language.wire.sections import read_tensorflow
from tffc.support.errors import GraphError

NAME = bytes([0x0A, len(ATTRIBUTE)]) + ATTRIBUTE.encode()
"""The name of the attribute of resources, as the key of an attribute is encoded."""


def resources_of(programs: Iterable[Node]) -> tuple[ResourceNode, ...]:
    """Return the resources that programs use, each once, sorted by digest, type and shape.

    Raises:
      GraphError: a graph with resources is malformed.
    """
    sections = {
        node
        for program in programs
        for node in walk(program)
        # Only a graph with resources has the name of the attribute in its bytes.
        if isinstance(node, Compiled) and node.kind == "tensorflow" and NAME in node.payload
    }
    return tuple(sorted({each for section in sections for each in resources_in(section)}))


@functools.lru_cache(maxsize=256)
def resources_in(section: Compiled) -> tuple[ResourceNode, ...]:
    """Return the resources in the graph of a TensorFlow section, as `resources_of` does."""
    if section.kind != "tensorflow" or NAME not in section.payload:
        return ()
    graph = read_graph(read_tensorflow(section.payload).graph_def)
    return tuple(sorted({resource for _, resource in resources_among(graph.node)}))


def sizes_of(resources: Iterable[ResourceNode]) -> dict[str, int]:
    """Return the bytes of resources by digest, sorted.

    Raises:
      GraphError: two have the same digest and different sizes.
    """
    sizes: dict[str, int] = {}
    for resource in resources:
        size = sizes.setdefault(resource.digest, resource.size)
        if size != resource.size:
            raise GraphError(
                "E340",
                f"the resource {resource.digest} has both {size} and {resource.size} bytes",
                help="trace the computation again",
            )
    return sizes


def resource_type(resource: ResourceNode) -> TensorType:
    """Return the type of a resource."""
    return TensorType(BY_NUMBER[resource.dtype], resource.shape)
