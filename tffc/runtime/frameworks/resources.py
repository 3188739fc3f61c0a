"""Sections that give resources and nothing else, which run without any framework."""

from __future__ import annotations

from typing import Any

from tffc.graphs.proto import NodeDef
from tffc.graphs.resources import ResourceNode, is_resource, resource_of
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.language.values.concrete import unflatten
from tffc.language.values.resources import array_of
from tffc.language.wire.resources import resource_type, resources_in
from tffc.runtime.frameworks.tensorflow.graph_content import UnreadableGraph, read_graph


def result_resources(section: Compiled) -> list[ResourceNode] | None:
    """Return the resources that a section gives, in the order of its result; None if it gives
    anything else.

    Raises:
      GraphError: its graph has resources and is malformed.
    """
    assert isinstance(section.type, FunctionType)
    if section.type.parameter is not None or not resources_in(section):
        return None
    try:
        content = read_graph(section)
    except UnreadableGraph:
        return None
    resources: list[ResourceNode] = []
    for name, type in content.result:
        node = content.nodes[name.partition(":")[0]]
        while node.op == "Identity" and len(node.input) == 1:
            node = content.nodes.get(node.input[0].removesuffix(":0"), NodeDef())
        if not is_resource(node) or resource_type(resource_of(node)) != type:
            return None
        resources.append(resource_of(node))
    return None if content.initialize_op else resources


class ResourceRunner:
    """A section of some type that gives these resources."""

    def __init__(self, type: FunctionType, resources: list[ResourceNode]) -> None:
        self._type = type
        self._resources = resources

    def __call__(self, argument: Any) -> Any:
        arrays = (array_of(resource) for resource in self._resources)
        values = (array if array.shape else array[()] for array in arrays)
        return unflatten(values, self._type.result)
