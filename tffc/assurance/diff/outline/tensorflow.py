"""The outline of a TensorFlow graph."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from tffc.assurance.diff.outline.constants import Constant, constant
from tffc.assurance.diff.outline.rows import (
    ARGUMENT,
    CALL,
    Outline,
    OutlineCall,
    OutlineRow,
    OutlineScope,
    Resource,
    Value,
    Values,
    quoted,
)
from tffc.graphs import canonical as canon
from tffc.graphs import proto
from tffc.language.dtypes import BY_NUMBER, DType

if TYPE_CHECKING:
    from tffc.graphs.proto import AttrValue, FunctionDefLibrary, GraphDef, NameAttrList, TensorProto


def tensorflow_outline(
    graph: GraphDef, parameters: list[str], results: list[str], initialize_op: str
) -> Outline:
    """Return the outline of a graph, with the same arguments and order as `canonical_graph`."""
    reader = _GraphReader(graph.library)
    own = reader.scope("", canon.graph_scope(graph, parameters, results, initialize_op))
    functions: list[OutlineScope] = []
    # The list grows while functions are read.
    for name in reader.functions.met:
        function = reader.functions.functions[name]
        gradient = reader.functions.gradients.get(name, "")
        called = reader.called(gradient) if gradient else ""
        functions.append(reader.scope(name, canon.function_scope(function), called))
    return Outline(own, functions)


class _GraphReader:
    def __init__(self, library: FunctionDefLibrary) -> None:
        self.functions = canon.NumberedFunctions(library)
        self._resources: dict[bytes, int] = {}

    def called(self, name: str) -> OutlineCall:
        number = self.functions.number(name)
        return OutlineCall(name if number is None else number)

    def scope(self, name: str, scope: canon.GraphScope, gradient: Value = "") -> OutlineScope:
        numbers = canon.number_nodes(scope, self.functions)
        rows = [self._row(node, scope, numbers) for node in numbers]
        results = tuple((numbers[source], port) for source, port in scope.results)
        after = tuple(sorted(numbers[node] for node in scope.controls))
        return OutlineScope(name, rows, results, after, gradient)

    def _row(self, name: str, scope: canon.GraphScope, numbers: dict[str, int]) -> OutlineRow:
        if name in scope.arguments:
            return OutlineRow(ARGUMENT, name)
        node = scope.nodes.get(name)
        if node is None:
            return OutlineRow("missing", name)
        function = self.called(node.message.op)
        attributes: dict[str, Value] = {}
        if isinstance(function.function, int):
            attributes["function"] = function
        if node.message.device:
            attributes["device"] = quoted(node.message.device.encode())
        for key, value in canon.lasting_attributes(node.message.attr):
            attributes[key] = self._attribute(key, value)
        return OutlineRow(
            CALL if isinstance(function.function, int) else node.message.op,
            name,
            attributes,
            tuple((numbers[source], port) for source, port in node.data),
            tuple(sorted(numbers[source] for source in node.waits)),
        )

    def _attribute(self, name: str, value: AttrValue) -> Value:
        if name in canon.RESOURCE_NAMES:
            return Resource(self._resources.setdefault(value.s, len(self._resources)))
        return self._value(value)

    def _value(self, value: AttrValue) -> Value:
        match value.WhichOneof("value"):
            case "func":
                return self._call(value.func)
            case "tensor":
                return tensor_constant(value.tensor)
            case "list" if value.list.func or value.list.tensor:
                calls = (self._call(call) for call in value.list.func)
                return Values((*calls, *map(tensor_constant, value.list.tensor)))
            case "list":
                kinds = ((kind, getattr(value.list, kind)) for kind in _PLAIN)
                texts = (_plain(kind, element) for kind, elements in kinds for element in elements)
                return f"[{', '.join(texts)}]"
            case None:
                return "unset"
            case kind:
                return _plain(kind, getattr(value, kind))

    def _call(self, call: NameAttrList) -> OutlineCall:
        pairs = canon.lasting_attributes(call.attr)
        attributes = tuple((name, self._value(value)) for name, value in pairs)
        return OutlineCall(self.called(call.name).function, attributes)


_PLAIN = ("s", "i", "f", "b", "type", "shape")


def _plain(kind: str, value: Any) -> str:
    match kind:
        case "s":
            return quoted(value)
        case "f":
            import numpy as np

            return str(np.float32(value))
        case "b":
            return str(value).lower()
        case "type":
            return str(BY_NUMBER.get(value) or _type_name(value))
        case "shape":
            sizes = ("?" if dim.size < 0 else str(dim.size) for dim in value.dim)
            return "?" if value.unknown_rank else f"[{','.join(sizes)}]"
        case _:
            return str(value)


def _type_name(number: int) -> str:
    """Return the name of a type that the language lacks, such as `resource`."""
    if number not in proto.DataType.values():
        return str(number)
    return proto.DataType.Name(number).removeprefix("DT_").lower()


def tensor_constant(tensor: TensorProto) -> Constant:
    """Return the constant in a TensorProto."""
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    try:
        elements = canon.tensor_elements(tensor, math.prod(shape))
    except struct.error:
        return Constant(None, tuple(shape), tensor.SerializeToString(deterministic=True))
    if tensor.dtype == DType.STRING.number and not tensor.tensor_content:
        return constant(tensor.dtype, shape, elements)
    if tensor.dtype not in canon.STRUCT_CODES:
        return Constant(None, tuple(shape), elements[0])
    return constant(tensor.dtype, shape, elements[0])
