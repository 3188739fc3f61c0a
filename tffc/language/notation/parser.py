"""The parser of the typed form.  docs/notation.md has the grammar; each method reads one rule.

Rules that contain each other are tasks of a trampoline, so that texts may be nested to any depth.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tffc.language.nodes import (
    Binding,
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
from tffc.language.notation.elements import array_of, default_dtype
from tffc.language.notation.lexer import PLACEMENTS, RESERVED, Source
from tffc.language.notation.section_folder import digest
from tffc.language.notation.type_parser import TypeParser
from tffc.language.types import TensorType, Type
from tffc.support.errors import NotationError, reader
from tffc.support.near import near_names
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run

CONSTANTS = ("number", "bits", "bytes")


@reader("a typed text", NotationError)
def parse(text: str, sections: Mapping[str, bytes] | None = None, file: str = "<text>") -> Node:
    """Return the program that `typed` printed.

    `sections` gives the payloads of its compiled sections by their digests, as
    `tffc.language.notation.section_folder` makes them; `file` is the place of the text in errors.

    Raises:
      NotationError: the text is not in the grammar, does not type, or a section is missing.
    """
    return run(_Parser(Source(text, file), sections or {}).program())


class _Parser(TypeParser):
    """The rules of programs and of their tables."""

    def __init__(self, source: Source, sections: Mapping[str, bytes]) -> None:
        super().__init__(source)
        self._sections = sections
        self._scope: dict[str, list[Type]] = {}
        self._table: dict[str, Node] = {}

    def program(self) -> Task[Node]:
        """Return the program: its expression, read after the table, which has the types that it
        needs."""
        yield self._read_table()
        node = yield self.expression()
        if self.peek().kind != "end":
            self.expected("the end of the text")
        return node

    def _read_table(self) -> Task[None]:
        starts = (index for index, word in enumerate(self._words) if word.text == "where")
        start = next(filter(self._is_table, starts), None)
        if start is None:
            return
        self._at = start + 1
        while self.peek().kind != "end":
            yield self._entry()
        self._end_at(start, self._words[start].start)
        self._at = 0

    def _is_table(self, start: int) -> bool:
        word, after = self._words[start : start + 2]
        return word.kind == "name" and after.kind in ("section", "data")

    def _entry(self) -> Task[None]:
        word = self.take()
        if word.kind not in ("section", "data"):
            self._at -= 1
            self.expected("a section or data")
        if word.text in self._table:
            self.refuse("E242", word, f"`{word.text}` occurs twice in the table")
        self.expect(":")
        type_ = yield self.type()
        if word.kind == "data":
            url = self.string()
            if self.peek().kind != "bits" or len(self.peek().text) % 2:
                self.expected("bytes in hexadecimal, two digits each")
            content = bytes.fromhex(self.take().text[2:])
            self._table[word.text] = Data(url, content, type_)
        else:
            self._table[word.text] = self._section(type_)

    def _section(self, type_: Type) -> Node:
        word = self.peek()
        if word.text not in ("tensorflow", "xla"):
            self.expected("`tensorflow` or `xla`")
        kind = self.take().text
        word = self.peek()
        if word.kind != "digest":
            self.expected("`sha256:` and 64 hexadecimal digits")
        key = self.take().text.removeprefix("sha256:")
        name = self.string() if self.peek().kind == "string" else None
        payload = self._sections.get(key)
        if payload is None:
            self.refuse(
                "E243",
                word,
                f"the section {key} is not among those given",
                help="give the folder that was written together with the text",
            )
        if digest(payload) != key:
            self.refuse("E243", word, f"the section given for {key} has another content")
        return Compiled(kind, payload, type_, name)

    def expression(self) -> Task[Node]:
        """Return a primary expression with the selections and calls after it."""
        first = self.peek()
        node = yield self._primary()
        while True:
            if self.accept("["):
                make = functools.partial(Selection, node, self.integer())
                self.expect("]")
            elif self.accept("."):
                make = functools.partial(Selection.by_name, node, self.name())
            elif self.accept("("):
                argument = None
                if not self.accept(")"):
                    argument = yield self.expression()
                    self.expect(")")
                make = functools.partial(Call, node, argument)
            else:
                return node
            node = self.build(first, make)

    def _primary(self) -> Task[Node]:
        word = self.peek()
        if word.kind in ("section", "data"):
            return self._named_in_table()
        if word.text in PLACEMENTS:
            return PlacementNode(self.placement())
        if word.kind in CONSTANTS or word.text in ("[", "True", "False"):
            return (yield self._literal())
        if word.text == "<":
            return (yield self._struct())
        if word.text == "&":
            return (yield self._free_reference())
        if word.text == "(":
            return (yield self._block() if self.peek(1).text == "let" else self._lambda())
        if word.kind == "string" or (word.kind == "name" and word.text not in RESERVED):
            return (yield self._reference())
        self.expected("an expression")

    def _named_in_table(self) -> Node:
        word = self.take()
        if word.text not in self._table:
            self.refuse("E242", word, f"`{word.text}` is not in the table at the end of the text")
        return self._table[word.text]

    def _reference(self) -> Task[Node]:
        word = self.peek()
        name = self.name()
        if self.accept(":"):
            make = functools.partial(Intrinsic, name, (yield self.type()))
            return self.build(word, make)
        context = self.name() if self.accept("@") else None
        if not self._scope.get(name):
            near = near_names(name, [n for n, types in self._scope.items() if types], 3)
            names = " or ".join(f"`{printable(name)}`" for name in near)
            self.refuse(
                "E141",
                word,
                f"`{word.text}` is not bound here",
                notes=(f"bound are names like {names}",) if near else (),
                help=f"write `&{word.text}:TYPE` for a reference to what is not bound in the text, "
                f"`{word.text}:TYPE` for an intrinsic",
            )
        return Reference(name, self._scope[name][-1], context)

    def _free_reference(self) -> Task[Node]:
        self.expect("&")
        name = self.name()
        context = self.name() if self.accept("@") else None
        self.expect(":")
        return Reference(name, (yield self.type()), context)

    def _struct(self) -> Task[Node]:
        word = self.take()
        pairs: list[tuple[str | None, Node]] = []
        while not self.accept(">"):
            if pairs:
                self.expect(",")
            name = self.element_name()
            pairs.append((name, (yield self.expression())))
        return self.build(word, functools.partial(StructNode.from_pairs, pairs))

    def _lambda(self) -> Task[Node]:
        word = self.take()
        if self.accept("->"):
            result = yield self.expression()
            self.expect(")")
            return Lambda(None, None, result)
        name = self.name()
        self.expect(":")
        type_ = yield self.type()
        self.expect("->")
        self._bind(name, type_)
        result = yield self.expression()
        self._scope[name].pop()
        self.expect(")")
        return self.build(word, functools.partial(Lambda, name, type_, result))

    def _block(self) -> Task[Node]:
        self.expect("(")
        self.expect("let")
        bindings: list[Binding] = []
        while not self.accept("in"):
            if bindings:
                self.expect(",")
            name = self.name()
            declared = (yield self.type()) if self.accept(":") else None
            self.expect("=")
            word = self.peek()
            value = yield self.expression()
            if declared is not None and declared != value.type:
                self.refuse(
                    "E238",
                    word,
                    f"`{name}` is declared with type `{declared}` "
                    f"but its value has type `{value.type}`",
                )
            bindings.append(Binding(name, value))
            self._bind(name, value.type)
        result = yield self.expression()
        self.expect(")")
        for binding in bindings:
            self._scope[binding.name].pop()
        return Block(tuple(bindings), result)

    def _bind(self, name: str, type_: Type) -> None:
        self._scope.setdefault(name, []).append(type_)

    def _literal(self) -> Task[Node]:
        word = self.peek()
        texts, skeleton = self._elements()
        exact: Any = None
        if skeleton == "." and self.peek().text != ":":
            dtype = default_dtype(texts[0])
            exact = None if dtype is None else TensorType(dtype)
        if exact is None:
            self.expect(":")
            exact = yield self.type()
        declared = (yield self.type()) if self.accept(":") else exact
        if not isinstance(exact, TensorType) or exact.shape is None or None in exact.shape:
            self.refuse("E248", word, f"a constant cannot have exactly the type `{exact}`")
        if not isinstance(declared, TensorType):
            self.refuse("E248", word, f"a constant cannot have the type `{declared}`")
        shape = tuple(size for size in exact.shape if size is not None)
        try:
            array = array_of(texts, skeleton, exact.element_type, shape)
        except (ValueError, OverflowError):
            self.refuse("E248", word, f"this is not a constant of type `{exact}`")
        return self.build(word, functools.partial(Literal, array, declared))

    def _elements(self) -> tuple[list[str], str]:
        """Return the elements of a constant, and their brackets with a dot for each element."""
        texts: list[str] = []
        skeleton: list[str] = []
        depth = 0
        while True:
            word = self.peek()
            if word.text in ("[", "]"):
                depth += 1 if word.text == "[" else -1
                skeleton.append(word.text)
            elif word.kind in CONSTANTS or word.text in ("True", "False"):
                texts.append(word.text)
                skeleton.append(".")
            else:
                self.expected("an element or `]`")
            self.take()
            if depth == 0:
                return texts, "".join(skeleton)
