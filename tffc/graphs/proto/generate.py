"""Makes `descriptors.binpb` and `__init__.pyi` from the `.proto` files beside it.

    python tffc/graphs/proto/generate.py

Needs protoc as the package grpcio-tools brings it.  Only descriptors are committed, never code
that protoc writes, for such code runs with few versions of protobuf and descriptors with all; they
are the same bytes from every protoc since version 21.  `__init__.pyi` tells type checkers which
fields the messages of graphs have.
"""

from __future__ import annotations

import importlib
import pathlib
import tempfile
from collections.abc import Iterator

from google.protobuf import descriptor_pb2

FOLDER = pathlib.Path(__file__).parent
TARGET = FOLDER / "descriptors.binpb"
DECLARATIONS = FOLDER / "__init__.pyi"
GRAPH = "tffc.graph"


def describe() -> bytes:
    """Return the serialized FileDescriptorSet of all `.proto` files here and what they import.

    Raises:
      ImportError: grpcio-tools is not installed.
      RuntimeError: protoc refuses a file; it has printed why.
    """
    protoc = importlib.import_module("grpc_tools.protoc")
    root = FOLDER.parents[2]
    includes = [root, pathlib.Path(str(protoc.__file__)).parent / "_proto"]
    sources = sorted(str(path.relative_to(root)) for path in FOLDER.glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / TARGET.name
        arguments = ["protoc", *(f"-I{path}" for path in includes), "--include_imports"]
        status = protoc.main([*arguments, f"--descriptor_set_out={target}", *sources])
        if status != 0:
            raise RuntimeError(f"protoc ended with status {status}")
        return target.read_bytes()


HEADER = '''\
"""The names of the package, with the fields of graphs' messages; written by `generate.py`."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTORS: pathlib.Path

def message(name: str) -> Any: ...

Example: Any
'''

SCALARS = {
    "float": ("FLOAT", "DOUBLE"),
    "bool": ("BOOL",),
    "str": ("STRING",),
    "bytes": ("BYTES",),
    "int": ("INT32", "INT64", "UINT32", "UINT64", "ENUM"),
}
"""The kinds of fields that each type of Python stands for."""


def declare() -> str:
    """Return the content of `__init__.pyi`, which declares the messages of graphs."""
    file = descriptor_pb2.FileDescriptorProto()
    messages = importlib.import_module("tffc.graphs.proto")
    messages.GraphDef.DESCRIPTOR.file.CopyToProto(file)
    lines: list[str] = [HEADER]
    for enum in file.enum_type:
        lines.append(f"class _{enum.name}(EnumTypeWrapper):")
        lines.extend(f"    {value.name}: int" for value in enum.value)
        lines.extend(("", f"{enum.name}: _{enum.name}", ""))
    for message in file.message_type:
        lines.extend(_declared(message))
    return "\n".join(lines).rstrip() + "\n"


def _declared(message: descriptor_pb2.DescriptorProto) -> Iterator[str]:
    """Yield the lines of the class of a message."""
    yield f"class {message.name}(Message):"
    entries = {inner.name: inner for inner in message.nested_type if inner.options.map_entry}
    for inner in message.nested_type:
        if inner.name not in entries:
            yield from (f"    {line}" if line else "" for line in _declared(inner))
    types = {field.name: _type_of(field, entries) for field in message.field}
    for name, (held, _) in types.items():
        yield f"    {name}: {held}"
    yield "    def __init__("
    yield "        self,"
    yield "        *,"
    for name, (_, taken) in types.items():
        yield f"        {name}: {taken} | None = ...,"
    yield "    ) -> None: ..."
    yield ""


def _type_of(
    field: descriptor_pb2.FieldDescriptorProto, entries: dict[str, descriptor_pb2.DescriptorProto]
) -> tuple[str, str]:
    """Return the type that a field holds, and the type of what it can be made from."""
    kind = _name_of(field)
    is_message = field.type == field.TYPE_MESSAGE
    if kind in entries:
        key, value = entries[kind].field
        held = "MessageMap" if value.type == value.TYPE_MESSAGE else "ScalarMap"
        content = f"[{_name_of(key)}, {_name_of(value)}]"
        return held + content, "Mapping" + content
    taken = f"{kind} | Mapping[str, object]" if is_message else kind
    if field.label != field.LABEL_REPEATED:
        return kind, taken
    held = "RepeatedCompositeFieldContainer" if is_message else "RepeatedScalarFieldContainer"
    return f"{held}[{kind}]", f"Iterable[{taken}]"


def _name_of(field: descriptor_pb2.FieldDescriptorProto) -> str:
    """Return the type of one value of a field; of a map, the name of its entries."""
    kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_")
    if kind == "MESSAGE":
        name = field.type_name.removeprefix(f".{GRAPH}.")
        return name.rpartition(".")[2] if name.endswith("Entry") else name
    return next(name for name, kinds in SCALARS.items() if kind in kinds)


if __name__ == "__main__":
    TARGET.write_bytes(describe())
    DECLARATIONS.write_text(declare())
