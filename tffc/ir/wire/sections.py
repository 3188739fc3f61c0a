"""Compiled sections on the wire: a graph, and which of its tensors are parameter and result."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from tffc.ir.term import Term
from tffc.ir.trampoline import Task, run
from tffc.proto.encoding import (
    Kind,
    Message,
    Place,
    Schema,
    content_field,
    integer_field,
    read_elements,
    read_message,
    read_variant,
    required,
    schema,
    signed,
    string_field,
    write,
)

GRAPH_URL = "type.googleapis.com/tensorflow.GraphDef"
HLO_URL = "type.googleapis.com/xla.HloModuleProto"

TENSORFLOW = schema(
    graph_def=(1, Kind.MESSAGE),
    parameter=(2, Kind.MESSAGE),
    result=(3, Kind.MESSAGE),
    initialize_op=(4, Kind.STRING),
    cache_key=(5, Kind.MESSAGE),
    session_token_tensor_name=(6, Kind.STRING),
)
CACHE_KEY = schema(id=(1, Kind.INTEGER))
XLA = schema(
    hlo_module=(1, Kind.MESSAGE),
    parameter=(2, Kind.MESSAGE),
    result=(3, Kind.MESSAGE),
    stablehlo=(1001, Kind.MESSAGE),
)
ANY = schema(type_url=(1, Kind.STRING), value=(2, Kind.MESSAGE))
TENSORFLOW_BINDING = schema(
    struct=(1, Kind.MESSAGE), tensor=(2, Kind.MESSAGE), sequence=(3, Kind.MESSAGE)
)
TENSOR_BINDING = schema(tensor_name=(1, Kind.STRING))
SEQUENCE_BINDING = schema(
    variant_tensor_name=(2, Kind.STRING), graph_def_tensor_name=(3, Kind.STRING)
)
XLA_BINDING = schema(struct=(1, Kind.MESSAGE), tensor=(2, Kind.MESSAGE))
XLA_TENSOR_BINDING = schema(index=(1, Kind.INTEGER))


class BindingBase(Term):
    """Where the parts of a value are in a graph, in the structure of the value's type."""

    __slots__ = ()

    def children(self) -> tuple[SectionBinding, ...]:
        return ()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TensorBinding(BindingBase):
    """A tensor: its name in a TensorFlow graph, or its index among an XLA module's."""

    tensor: str | int

    def own_label(self) -> Hashable:
        return self.tensor


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SequenceBinding(BindingBase):
    """A sequence: the name of a scalar variant tensor that holds a dataset."""

    variant: str

    def own_label(self) -> Hashable:
        return self.variant


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StructBinding(BindingBase):
    """A struct: the bindings of its elements."""

    elements: tuple[SectionBinding, ...]

    def children(self) -> tuple[SectionBinding, ...]:
        return self.elements

    def own_label(self) -> Hashable:
        return None


SectionBinding: TypeAlias = TensorBinding | SequenceBinding | StructBinding


@dataclasses.dataclass(frozen=True, slots=True)
class TensorFlowSection:
    """The content of a TensorFlow section; `graph_def` is a serialized GraphDef.

    `initialize_op` names an operation to run first; empty names and no cache key mean none.
    """

    graph_def: bytes
    parameter: SectionBinding | None
    result: SectionBinding
    initialize_op: str = ""
    session_token_tensor_name: str = ""
    cache_key: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class XlaSection:
    """The content of an XLA section; `hlo_module` is a serialized HloModuleProto.

    `stablehlo` is the same module as a portable artifact of StableHLO, which TensorFlow graphs can
    hold; empty where whoever wrote the section did not add it.  TensorFlow Federated skips it.
    """

    hlo_module: bytes
    parameter: SectionBinding | None
    result: SectionBinding
    stablehlo: bytes = b""


def read_tensorflow(payload: bytes, place: Place | None = None) -> TensorFlowSection:
    """Return the content of a serialized TensorFlow message.

    Raises:
      WireError: it is malformed.  The graph itself is not looked at.
    """
    place = place or Place(0, len(payload))
    found = read_message(payload, place, TENSORFLOW)
    graph_def = _read_any(payload, required(found, "graph_def", place), GRAPH_URL)
    parameter, result = _read_bindings(payload, found, place, TENSORFLOW_BINDING)
    cache_key = found.get("cache_key")
    if cache_key is not None:
        cache_key = read_message(payload, cache_key, CACHE_KEY).get("id", 0)
    return TensorFlowSection(
        graph_def,
        parameter,
        result,
        found.get("initialize_op", ""),
        found.get("session_token_tensor_name", ""),
        cache_key,
    )


def read_xla(payload: bytes, place: Place | None = None) -> XlaSection:
    """Return the content of a serialized Xla message.

    Raises:
      WireError: it is malformed.  The module itself is not looked at.
    """
    place = place or Place(0, len(payload))
    found = read_message(payload, place, XLA)
    hlo_module = _read_any(payload, required(found, "hlo_module", place), HLO_URL)
    parameter, result = _read_bindings(payload, found, place, XLA_BINDING)
    stablehlo = found.get("stablehlo")
    content = b"" if stablehlo is None else payload[stablehlo.start : stablehlo.end]
    return XlaSection(hlo_module, parameter, result, content)


def _read_any(data: bytes, place: Place, expected: str) -> bytes:
    url, content = read_any(data, place)
    if url != expected:
        place.refuse("E228", f"expected a message of type {expected!r}, found {url!r}")
    return content


def read_any(data: bytes, place: Place) -> tuple[str, bytes]:
    """Return the type URL and the content of an Any message."""
    found = read_message(data, place, ANY)
    value = found.get("value")
    return found.get("type_url", ""), b"" if value is None else data[value.start : value.end]


def any_field(number: int, url: str, content: bytes) -> bytes:
    """Return a field that holds an Any message."""
    value = content_field(2, content) if content else b""
    return content_field(number, string_field(1, url) + value)


def _read_bindings(
    data: bytes, found: dict[str, Any], place: Place, fields: Schema
) -> tuple[SectionBinding | None, SectionBinding]:
    parameter = found.get("parameter")
    result = required(found, "result", place)
    return (
        None if parameter is None else run(_binding(data, parameter, fields)),
        run(_binding(data, result, fields)),
    )


def _binding(data: bytes, place: Place, fields: Schema) -> Task[SectionBinding] | SectionBinding:
    kind, inner = read_variant(data, place, fields, "a binding")
    if kind == "struct":
        return _struct_binding(data, inner, fields)
    if kind == "sequence":
        found = read_message(data, inner, SEQUENCE_BINDING)
        if "variant_tensor_name" not in found:
            inner.refuse("E229", "a sequence is bound to something else than a variant tensor")
        return SequenceBinding(found["variant_tensor_name"])
    if fields is XLA_BINDING:
        found = read_message(data, inner, XLA_TENSOR_BINDING)
        name = "index"
    else:
        found = read_message(data, inner, TENSOR_BINDING)
        name = "tensor_name"
    value: Any = required(found, name, inner)
    return TensorBinding(value if isinstance(value, str) else signed(value, 32))


def _struct_binding(data: bytes, place: Place, fields: Schema) -> Task[SectionBinding]:
    elements: list[SectionBinding] = []
    for element in read_elements(data, place):
        elements.append((yield _binding(data, element, fields)))
    return StructBinding(tuple(elements))


def _expand_binding(binding: SectionBinding) -> Iterable[Any]:
    match binding:
        case StructBinding(elements):
            return [Message(1, [Message(1, [element]) for element in elements])]
        case SequenceBinding(name):
            return [content_field(3, _name_field(2, name))]
        case TensorBinding(tensor):
            is_index = isinstance(tensor, int)
            field = integer_field(1, tensor) if is_index else _name_field(1, tensor)
            return [content_field(2, field)]


def _name_field(number: int, name: str) -> bytes:
    return string_field(number, name) or content_field(number, b"")


def write_tensorflow(section: TensorFlowSection) -> bytes:
    """Return the serialized TensorFlow message of a section."""
    key = section.cache_key
    cache_key = b"" if key is None else content_field(5, integer_field(1, key) if key else b"")
    return write(
        [
            any_field(1, GRAPH_URL, section.graph_def),
            *_binding_fields(section),
            string_field(4, section.initialize_op),
            cache_key,
            string_field(6, section.session_token_tensor_name),
        ],
        _expand_binding,
    )


def write_xla(section: XlaSection) -> bytes:
    """Return the serialized Xla message of a section."""
    stablehlo = content_field(1001, section.stablehlo) if section.stablehlo else b""
    return write(
        [any_field(1, HLO_URL, section.hlo_module), *_binding_fields(section), stablehlo],
        _expand_binding,
    )


def _binding_fields(section: TensorFlowSection | XlaSection) -> list[Message]:
    parameter = [] if section.parameter is None else [Message(2, [section.parameter])]
    return [*parameter, Message(3, [section.result])]
