"""The outline of an HLO module: its instructions, from the result of the entry computation."""

from __future__ import annotations

from typing import Any

from tffc.assurance.diff.outline.constants import Constant
from tffc.assurance.diff.outline.rows import (
    Outline,
    OutlineCall,
    OutlineRow,
    OutlineScope,
    Value,
    Values,
    digest,
    quoted,
)
from tffc.graphs.node import reached
from tffc.graphs.proto.encoding import Kind, Place, read_fields, read_message, schema, signed
from tffc.linking.hlo_modules import ELEMENTS, SHAPE, TUPLE, packed_literal
from tffc.support.errors import WireError, reader

MODULE = schema(computations=(3, Kind.MESSAGES), entry=(6, Kind.INTEGER))
COMPUTATION = schema(
    name=(1, Kind.STRING),
    instructions=(2, Kind.MESSAGES),
    number=(5, Kind.INTEGER),
    root=(6, Kind.INTEGER),
)
INSTRUCTION = schema(
    name=(1, Kind.STRING),
    opcode=(2, Kind.STRING),
    shape=(3, Kind.MESSAGE),
    literal=(8, Kind.MESSAGE),
    parameter_number=(9, Kind.INTEGER),
    tuple_index=(13, Kind.INTEGER),
    dimensions=(14, Kind.INTEGERS),
    custom_call_target=(28, Kind.STRING),
    number=(35, Kind.INTEGER),
    operands=(36, Kind.INTEGERS),
    after=(37, Kind.INTEGERS),
    called=(38, Kind.INTEGERS),
    comparison_direction=(63, Kind.STRING),
)
READ = frozenset({1, 2, 3, 7, 8, 9, 13, 14, 28, 35, 36, 37, 38, 63})
"""The numbers of an instruction's fields that are read, and 7, the source location, which is
ignored."""

EMPTY = b"\0"
"""An empty message or string."""


@reader("a module of HLO", WireError)
def xla_outline(module: bytes) -> Outline:
    """Return the outline of a serialized HloModuleProto.

    Raises:
      WireError: it is malformed.
    """
    fields = read_message(module, Place(0, len(module)), MODULE)
    reader = _ModuleReader(module, fields.get("computations", []))
    own = reader.scope(fields.get("entry", 0))
    functions: list[OutlineScope] = []
    # The list grows while computations are read.
    for number in reader.met:
        functions.append(reader.scope(number))
    return Outline(own, functions)


class _ModuleReader:
    def __init__(self, module: bytes, computations: list[Place]) -> None:
        self._data = module
        self.met: list[int] = []
        self._numbers: dict[int, int] = {}
        read = (read_message(module, place, COMPUTATION) for place in computations)
        self._computations: dict[int, dict[str, Any]] = {c.get("number", 0): c for c in read}

    def scope(self, number: int) -> OutlineScope:
        computation = self._computations.get(number, {})
        nodes: dict[int, tuple[dict[str, Any], Place]] = {}
        for place in computation.get("instructions", ()):
            fields = read_message(self._data, place, INSTRUCTION)
            nodes[fields.get("number", 0)] = (fields, place)
        root = computation.get("root", 0)
        numbers = _order(nodes, root)
        rows = [self._row(nodes.get(instruction), numbers) for instruction in numbers]
        return OutlineScope(computation.get("name", ""), rows, ((numbers[root], "0"),), ())

    def _row(
        self, node: tuple[dict[str, Any], Place] | None, numbers: dict[int, int]
    ) -> OutlineRow:
        if node is None:
            return OutlineRow("missing", "")
        fields, place = node
        return OutlineRow(
            fields.get("opcode", ""),
            fields.get("name", ""),
            self._attributes(fields, place),
            tuple((numbers[operand], "0") for operand in fields.get("operands", ())),
            tuple(sorted(numbers[source] for source in fields.get("after", ()))),
        )

    def _attributes(self, fields: dict[str, Any], place: Place) -> dict[str, Value]:
        attributes: dict[str, Value] = {}
        if "literal" in fields:
            attributes["literal"] = _literal(self._data, fields["literal"])
        if "shape" in fields:
            attributes["shape"] = _shape(self._data, fields["shape"])
        for name in ("parameter_number", "tuple_index"):
            if name in fields:
                attributes[name] = str(fields[name])
        for name in ("custom_call_target", "comparison_direction"):
            if fields.get(name):
                attributes[name] = quoted(fields[name].encode())
        if "dimensions" in fields:
            attributes["dimensions"] = str([signed(size) for size in fields["dimensions"]])
        if "called" in fields:
            calls = tuple(self._call(computation) for computation in fields["called"])
            attributes["calls"] = calls[0] if len(calls) == 1 else Values(calls)
        attributes.update(self._other_fields(place))
        return attributes

    def _call(self, number: int) -> OutlineCall:
        if number not in self._numbers:
            self._numbers[number] = len(self.met)
            self.met.append(number)
        return OutlineCall(self._numbers[number])

    def _other_fields(self, place: Place) -> dict[str, str]:
        """Return hashes of the fields that are not read, by number: a change in them may matter."""
        parts: dict[int, bytes] = {}
        for number, _, _, value, end in read_fields(self._data, place):
            if number not in READ and self._data[value:end] != EMPTY:
                parts[number] = parts.get(number, b"") + self._data[value:end]
        return {f"field_{number}": digest(content) for number, content in sorted(parts.items())}


def _order(nodes: dict[int, tuple[dict[str, Any], Place]], root: int) -> dict[int, int]:
    """Give the instructions numbers: first those that the root needs; others may have effects."""

    def nexts(number: int) -> list[int]:
        fields = nodes[number][0] if number in nodes else {}
        return [*fields.get("operands", ()), *sorted(fields.get("after", ()))]

    return {number: at for at, number in enumerate(reached([root, *sorted(nodes)], nexts))}


def _shape(data: bytes, place: Place) -> str:
    parts: list[str] = []
    stack: list[Place | str] = [place]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        shape = read_message(data, item, SHAPE)
        element = shape.get("element", 0)
        if element == TUPLE:
            stack.append(")")
            elements: list[Place] = shape.get("elements", [])
            for index, part in reversed(list(enumerate(elements))):
                stack.extend((part, ",") if index else (part,))
            parts.append("(")
        else:
            known = ELEMENTS.get(element)
            sizes = ",".join(str(signed(size)) for size in shape.get("dimensions", ()))
            name = str(known[0]) if known else f"type {element}"
            parts.append(f"{name}[{sizes}]" if sizes else name)
    return "".join(parts)


def _literal(data: bytes, place: Place) -> Constant:
    fields = read_message(data, place, schema(shape=(1, Kind.MESSAGE)))
    shape = read_message(data, fields["shape"], SHAPE) if "shape" in fields else {}
    element = shape.get("element", 0)
    sizes = tuple(signed(size) for size in shape.get("dimensions", ()))
    if element not in ELEMENTS:
        return Constant(None, sizes, data[place.start : place.end])
    dtype, field, code = ELEMENTS[element]
    kind = Kind.INTEGERS if code else Kind.MESSAGE
    held = read_message(data, place, schema(elements=(field, kind))).get("elements")
    if held is None:
        return Constant(dtype, sizes, b"")
    if isinstance(held, Place):
        return Constant(dtype, sizes, data[held.start : held.end])
    return Constant(dtype, sizes, packed_literal(held, code))
