"""Reads and writes compiled sections: a graph, and bindings of its parameter and result to
tensors."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, TypeAlias

from tffc.graphs.proto.computation import described
from tffc.graphs.proto.encoding import Place, joined, signed
from tffc.graphs.proto.messages import ANY, Contents, FieldReader, message_content, required
from tffc.language.term import Term
from tffc.language.traverse import postorder
from tffc.language.types import Type
from tffc.support.errors import ExecutionError, WireError, reader
from tffc.support.trampoline import Task, run

GRAPH_URL = "type.googleapis.com/tensorflow.GraphDef"
HLO_URL = "type.googleapis.com/xla.HloModuleProto"

TENSORFLOW = "tffc.v0.TensorFlow"
XLA = "tffc.v0.Xla"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TensorBinding(Term):
    """A tensor: its name in a TensorFlow graph, or its index among an XLA module's."""

    tensor: str | int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SequenceBinding(Term):
    """A sequence: the name of a scalar variant tensor that holds a dataset."""

    variant: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StructBinding(Term):
    """A struct: the bindings of its elements."""

    _subtrees = ("elements",)
    elements: tuple[SectionBinding, ...]

    def children(self) -> tuple[SectionBinding, ...]:
        return self.elements


SectionBinding: TypeAlias = TensorBinding | SequenceBinding | StructBinding


class TensorFlowSection(NamedTuple):
    """The content of a TensorFlow section; `graph_def` is a serialized GraphDef.

    `initialize_op` names an operation to run first; empty names and no cache key mean none.
    """

    graph_def: bytes
    parameter: SectionBinding | None
    result: SectionBinding
    initialize_op: str = ""
    session_token_tensor_name: str = ""
    cache_key: int | None = None


class XlaSection(NamedTuple):
    """The content of an XLA section; `hlo_module` is a serialized HloModuleProto.

    `stablehlo` is the same module as a portable artifact of StableHLO, which TensorFlow graphs can
    hold; empty if the writer of the section did not add it.  TensorFlow Federated skips it.
    """

    hlo_module: bytes
    parameter: SectionBinding | None
    result: SectionBinding
    stablehlo: bytes = b""


@reader("a section of TensorFlow", WireError)
def read_tensorflow(payload: bytes, place: Place | None = None) -> TensorFlowSection:
    """Return the content of a serialized TensorFlow message.

    Raises:
      WireError: it is malformed.  The graph itself is not looked at.
    """
    fields = _read(payload, place, TENSORFLOW, GRAPH_URL)
    return TensorFlowSection(
        fields["graph_def"],
        fields.get("parameter"),
        fields["result"],
        fields.get("initialize_op", ""),
        fields.get("session_token_tensor_name", ""),
        fields["cache_key"].get("id", 0) if "cache_key" in fields else None,
    )


@reader("a section of XLA", WireError)
def read_xla(payload: bytes, place: Place | None = None) -> XlaSection:
    """Return the content of a serialized Xla message.

    Raises:
      WireError: it is malformed.  The module itself is not looked at.
    """
    fields = _read(payload, place, XLA, HLO_URL)
    stablehlo = fields.get("stablehlo", b"")
    return XlaSection(fields["hlo_module"], fields.get("parameter"), fields["result"], stablehlo)


def _read(payload: bytes, place: Place | None, name: str, url: str) -> dict[str, Any]:
    reader = _BindingReader(payload, name, url)
    return run(reader.fields(place or Place(0, len(payload)), name))


class _BindingReader(FieldReader):
    """Reads one section.  Its graph or module is in an Any message whose type is `url`."""

    def __init__(self, data: bytes, name: str, url: str) -> None:
        super().__init__(data)
        self._binding_name = f"{name}.Binding"
        self._url = url

    def _any(self, place: Place) -> Task[bytes]:
        fields = yield self.fields(place, ANY)
        url = fields.get("type_url", "")
        if url != self._url:
            place.refuse("E228", f"expected a message of type {self._url!r}, found {url!r}")
        return fields.get("value", b"")

    def _binding(self, place: Place) -> Task[SectionBinding] | SectionBinding:
        kind, inner, message = self.variant(place, self._binding_name, "a binding")
        if kind == "struct":
            return self._struct(inner, message)
        fields: Any = self.fields(inner, message)
        if kind == "sequence":
            if "variant_tensor_name" not in fields:
                inner.refuse("E228", "a sequence is not bound to a variant tensor")
            return SequenceBinding(fields["variant_tensor_name"])
        (name,) = described(message).fields
        value: Any = required(fields, name, inner)
        return TensorBinding(value if isinstance(value, str) else signed(value, 32))

    def _struct(self, place: Place, message: str) -> Task[SectionBinding]:
        fields = yield self.fields(place, message)
        return StructBinding(tuple(fields.get("element", ())))

    readers: ClassVar = {ANY: _any, f"{TENSORFLOW}.Binding": _binding, f"{XLA}.Binding": _binding}


def bound_otherwise(type: Type | None) -> ExecutionError:
    """Return the refusal of an XLA section whose parameter or result does not fit its type."""
    return ExecutionError("E721", f"an XLA section is bound otherwise than its type `{type}` says")


def write_tensorflow(section: TensorFlowSection) -> bytes:
    """Return the serialized TensorFlow message of a section."""
    key = section.cache_key
    fields = {
        "graph_def": {"type_url": GRAPH_URL, "value": section.graph_def},
        "parameter": section.parameter,
        "result": section.result,
        "initialize_op": section.initialize_op,
        "cache_key": None if key is None else {"id": key},
        "session_token_tensor_name": section.session_token_tensor_name,
    }
    return _written(TENSORFLOW, fields)


def write_xla(section: XlaSection) -> bytes:
    """Return the serialized Xla message of a section."""
    fields = {
        "hlo_module": {"type_url": HLO_URL, "value": section.hlo_module},
        "parameter": section.parameter,
        "result": section.result,
        "stablehlo": section.stablehlo,
    }
    return _written(XLA, fields)


def _written(name: str, fields: dict[str, Any]) -> bytes:
    known: Contents = {}
    for binding in filter(None, (fields["parameter"], fields["result"])):
        for part in postorder(binding):
            known[id(part)] = message_content(f"{name}.Binding", _fields(part), known)
    return joined(message_content(name, fields, known))


def _fields(binding: SectionBinding) -> dict[str, Any]:
    match binding:
        case StructBinding(elements):
            return {"struct": {"element": elements}}
        case SequenceBinding(variant):
            return {"sequence": {"variant_tensor_name": variant}}
        case TensorBinding(tensor):
            return {"tensor": {"index" if isinstance(tensor, int) else "tensor_name": tensor}}
