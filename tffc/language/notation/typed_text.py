"""The typed form: everything in a program, so that it can be parsed again.

It is the formatted form with types at binders and at nodes whose types do not follow from others,
with every constant in full, and with a table of the compiled sections at the end.  The table has
the hashes of their content, which is kept elsewhere.  Python containers are not printed; the wire
format does not store them either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, assert_never

from tffc.language.growth import growth_notes
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.notation.elements import constant_text, default_dtype
from tffc.language.notation.labels import check_size, data_name, section_name
from tffc.language.notation.lexer import quoted, quoted_key
from tffc.language.notation.pieces import Mark, bracketed, check_length, expanded, layout, max_text
from tffc.language.notation.section_folder import digest
from tffc.language.size import written_size
from tffc.language.traverse import walk
from tffc.language.types import Type
from tffc.support.printable import json_string


class Bind(NamedTuple):
    """A mark among the pieces: from here to its `Unbind`, the name is bound to a value of this
    type."""

    name: str
    type: Type


class Unbind(NamedTuple):
    """A mark that ends the scope of the last `Bind` of the name."""

    name: str


LONGEST_TYPE = 2**16
"""The type of a local is left out if it has more characters than this.  It follows from the local's
value, and if each local contains the one before it twice, the text would double with each."""

DEEPEST_INDENTATION = 32
"""Lines are indented no deeper than this, so that deep programs have texts of linear size."""


def typed(root: Node) -> str:
    """Return the program with all types, but without the content of its sections; `parse` reads it.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    check_size(root)
    printer = _Printer()
    printer.check_types(root)
    return layout(printer.program(root), max_text(), deepest=DEEPEST_INDENTATION)


class _Printer:
    """Prints one program."""

    def __init__(self) -> None:
        self._scope: dict[str, list[Type]] = {}
        self._table: dict[Compiled | Data, str] = {}
        self._keys: set[str] = set()
        self._sizes: dict[int, int] = {}

    def check_types(self, root: Node) -> None:
        """Check, before any type is written, that types alone do not make the text too long."""
        most = max_text()
        size = sum(self._length(shown) for shown in map(_shown_type, walk(root)) if shown)
        check_length(size, most, lambda: growth_notes(root, self._length, most, "characters"))

    def _length(self, type_: Type) -> int:
        """Return the length of a type's text."""
        known = self._sizes.get(id(type_))
        return written_size(type_, self._sizes, _own_length) if known is None else known

    def program(self, root: Node) -> Iterator[str | Mark]:
        """Yield the text of the program, and that of the table of sections and data, which it only
        names."""
        yield from expanded([root], self._expand)
        if self._table:
            yield Mark.BREAK
            yield "where"
            yield Mark.INDENT
            yield from expanded(self._table_parts(), self._expand)

    def _expand(self, item: Bind | Unbind | Type | Node) -> list[Any]:
        match item:
            case Bind():
                self._scope.setdefault(item.name, []).append(item.type)
                return []
            case Unbind():
                self._scope[item.name].pop()
                return []
            case Type():
                return type_pieces(item)
            case _:
                return self._parts(item)

    def _parts(self, node: Node) -> list[Any]:
        match node:
            case Reference():
                return self._reference(node)
            case Selection():
                step = f"[{node.index}]" if node.name is None else f".{quoted(node.name)}"
                return [node.source, step]
            case StructNode():
                return bracketed(list(node.items()), quoted)
            case Call():
                argument = [] if node.argument is None else [node.argument]
                return [node.function, "(", *argument, ")"]
            case Lambda():
                return self._lambda(node)
            case Block():
                return self._block(node)
            case Intrinsic():
                return [f"{quoted(node.uri)}:", node.type]
            case PlacementNode():
                return [str(node.literal)]
            case Literal():
                return self._literal(node)
            case Compiled() | Data():
                return [self._key(node)]
            case _:
                assert_never(node)

    def _reference(self, node: Reference) -> list[Any]:
        context = "" if node.context is None else f"@{quoted(node.context)}"
        bound = self._scope.get(node.name)
        if bound and _same(bound[-1], node.type):
            return [quoted(node.name) + context]
        return [f"&{quoted(node.name)}{context}:", node.type]

    def _lambda(self, node: Lambda) -> list[Any]:
        name, type_ = node.parameter_name, node.parameter_type
        if name is None or type_ is None:
            return ["( -> ", node.result, ")"]
        bound = Bind(name, type_), node.result, Unbind(name)
        return [f"({quoted(name)}: ", type_, " -> ", *bound, ")"]

    def _block(self, node: Block) -> list[Any]:
        parts: list[Any] = ["(let ", Mark.INDENT]
        for index, binding in enumerate(node.locals):
            if index:
                parts.extend((",", Mark.BREAK))
            parts.append(quoted(binding.name))
            if self._length(binding.value.type) <= LONGEST_TYPE:
                parts.extend((": ", binding.value.type))
            parts.extend(("=", binding.value))
            parts.append(Bind(binding.name, binding.value.type))
        ends = [Unbind(binding.name) for binding in node.locals]
        return [*parts, Mark.DEDENT, " in ", node.result, *ends, ")"]

    def _literal(self, node: Literal) -> list[Any]:
        text = constant_text(node.array)
        exact = node.array.type
        if node.type != exact:
            return [text, ":", exact, ":", node.type]
        if not exact.shape and default_dtype(text) is exact.element_type:
            return [text]
        return [text, ":", exact]

    def _key(self, node: Compiled | Data) -> str:
        """Return the node's key in the table; of two nodes with one name, the second gets the
        suffix -2."""
        if node not in self._table:
            if isinstance(node, Data):
                prefix, name = "data#", data_name(node.type_url, node.value)
            else:
                prefix, name = "comp#", section_name(node)
            key, count = prefix + quoted_key(name), 1
            while key in self._keys:
                count += 1
                key = prefix + quoted_key(f"{name}-{count}")
            self._table[node] = key
            self._keys.add(key)
        return self._table[node]

    def _table_parts(self) -> list[Any]:
        parts: list[Any] = []
        for node, key in self._table.items():
            if parts:
                parts.append(Mark.BREAK)
            parts.extend((f"{key}: ", node.type))
            if isinstance(node, Data):
                parts.append(f" {json_string(node.type_url)} 0x{node.value.hex()}")
            else:
                name = "" if node.name is None else f" {json_string(node.name)}"
                parts.append(f" {node.kind} sha256:{digest(node.payload)}{name}")
        return parts


def _shown_type(node: Node) -> Type | None:
    """Return the type that the text of a node always shows, if any; types of locals do not
    count."""
    if isinstance(node, Lambda):
        return node.parameter_type
    return node.type if isinstance(node, Intrinsic) else None


def _own_length(node: Type) -> int:
    """Return the length of a type's text without the types inside it."""
    return sum(len(part) for part in type_pieces(node) if isinstance(part, str))


def _same(first: Type, second: Type) -> bool:
    """Tell whether two types have the same text: they may differ in Python containers only."""
    if first == second:
        return True
    return not (first.is_abstract or second.is_abstract) and first.is_equivalent_to(second)


def type_text(root: Type) -> str:
    """Return the type on one line, as `parse_type` reads it."""
    return "".join(piece for piece in expanded([root], type_pieces) if isinstance(piece, str))


def type_pieces(type_: Type) -> list[Any]:
    """Return the pieces of a type's text; the types inside it are pieces themselves."""
    return [piece for piece in type_.pieces(quoted) if not isinstance(piece, Mark)]
