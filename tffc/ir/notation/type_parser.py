"""Reads types.  docs/notation.md has the grammar; each method reads one of its rules."""

from __future__ import annotations

import functools

from tffc.errors import near_names
from tffc.ir.dtypes import BY_LABEL, DType
from tffc.ir.notation.lexer import Cursor, Source, Word
from tffc.ir.trampoline import Task, run
from tffc.ir.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)


def parse_type(text: str, file: str = "<text>") -> Type:
    """Return the type that `type_text` printed; `file` is where errors say that the text is.

    Raises:
      NotationError: the text is not a type.
    """
    parser = TypeParser(Source(text, file))
    made = run(parser.type())
    if parser.peek().kind != "end":
        parser.expected("the end of the text")
    return made


class TypeParser(Cursor):
    """The rules of types."""

    def type(self) -> Task[Type]:
        word = self.peek()
        made = yield self._base_type()
        while True:
            if self.accept("*"):
                made = self.build(word, functools.partial(SequenceType, made))
            elif self.accept("@"):
                make = functools.partial(FederatedType, made, self.placement(), True)
                made = self.build(word, make)
            else:
                return made

    def _base_type(self) -> Task[Type]:
        word = self.peek()
        match word:
            case Word(text="<"):
                return (yield self._struct_type())
            case Word(text="("):
                return (yield self._function_type())
            case Word(text="{"):
                return (yield self._partly_equal_type())
            case Word(kind="string"):
                return AbstractType(self.string())
            case Word(kind="unranked"):
                self.take()
                return TensorType(self._dtype(word, word.text[1 : word.text.index("'", 1)]), None)
            case Word(kind="name", text="placement"):
                self.take()
                return PlacementType()
            case Word(kind="name"):
                dtype = self._dtype(self.take(), word.text)
                return TensorType(dtype, self._shape() if self.accept("[") else ())
        self.expected("a type")

    def _dtype(self, word: Word, name: str) -> DType:
        if name not in BY_LABEL:
            near = near_names(name, BY_LABEL)
            self.refuse(
                "E241",
                word,
                f"there is no type `{name}`",
                notes=(f"the element types are {', '.join(BY_LABEL)}",),
                help=f"did you mean `{near[0]}`?" if near else None,
            )
        return BY_LABEL[name]

    def _shape(self) -> tuple[int | None, ...]:
        sizes: list[int | None] = []
        while True:
            sizes.append(None if self.accept("?") else self.integer())
            if self.accept("]"):
                return tuple(sizes)
            self.expect(",")

    def _struct_type(self) -> Task[Type]:
        word = self.take()
        names: list[str | None] = []
        types: list[Type] = []
        while not self.accept(">"):
            if names:
                self.expect(",")
            names.append(self.element_name())
            types.append((yield self.type()))
        return self.build(word, functools.partial(StructType.of, tuple(names), tuple(types)))

    def element_name(self) -> str | None:
        """The name before an element of a struct, if it has one."""
        if self.peek().kind not in ("name", "string") or self.peek(1).text != "=":
            return None
        name = self.name()
        self.expect("=")
        return name

    def _function_type(self) -> Task[Type]:
        self.take()
        parameter = None if self.peek().text == "->" else (yield self.type())
        self.expect("->")
        result = yield self.type()
        self.expect(")")
        return FunctionType(parameter, result)

    def _partly_equal_type(self) -> Task[Type]:
        word = self.take()
        member = yield self.type()
        self.expect("}")
        self.expect("@")
        make = functools.partial(FederatedType, member, self.placement(), False)
        return self.build(word, make)
