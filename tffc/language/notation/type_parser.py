"""The parser of types.  docs/notation.md has the grammar; each method reads one rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Hashable

from tffc.language.dtypes import BY_LABEL, DType
from tffc.language.notation.lexer import Cursor, Source, Word
from tffc.language.shapes import Shape
from tffc.language.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.support.errors import NotationError, reader
from tffc.support.near import near_names
from tffc.support.trampoline import Task, run


@reader("the text of a type", NotationError)
def parse_type(text: str, file: str = "<text>", variables: Container[str] = ()) -> Type:
    """Return the type that `type_text` printed; `file` is its place in errors.

    Names in `variables` denote abstract types, which otherwise need double quotes.

    Raises:
      NotationError: the text is not a type.
    """
    parser = TypeParser(Source(text, file), variables)
    type = run(parser.type())
    if parser.peek().kind != "end":
        parser.expected("the end of the text")
    return type


class TypeParser(Cursor):
    """The rules of types.  Equal types become one object, however often they are written."""

    def __init__(self, source: Source, variables: Container[str] = ()) -> None:
        super().__init__(source)
        self._variables = variables
        self._types: dict[tuple[Hashable, ...], Type] = {}

    def type(self) -> Task[Type]:
        word = self.peek()
        parsed = yield self._base_type()
        while True:
            if self.accept("*"):
                make = functools.partial(SequenceType, parsed)
                parsed = self._shared(("sequence", id(parsed)), word, make)
            elif self.accept("@"):
                parsed = self._placed(word, parsed, True)
            else:
                return parsed

    def _shared(self, key: tuple[Hashable, ...], word: Word, make: Callable[[], Type]) -> Type:
        """Return the type that `make` makes, once for each `key`.  The key has its parts, and types
        in it by their ids, which stay valid because this parser keeps all types that it makes."""
        type = self._types.get(key)
        if type is None:
            type = self._types[key] = self.build(word, make)
        return type

    def _placed(self, word: Word, member: Type, all_equal: bool) -> Type:
        placement = self.placement()
        make = functools.partial(FederatedType, member, placement, all_equal)
        return self._shared(("placed", id(member), placement, all_equal), word, make)

    def _base_type(self) -> Task[Type] | Type:
        word = self.peek()
        match word:
            case Word(text="<"):
                return self._struct_type()
            case Word(text="("):
                return self._function_type()
            case Word(text="{"):
                return self._partly_equal_type()
            case Word(kind="string"):
                return self._abstract()
            case Word(kind="name") if word.text in self._variables:
                return self._abstract()
            case Word(kind="unranked"):
                self.take()
                dtype = self._dtype(word, word.text[1 : word.text.index("'", 1)])
                return self._tensor(word, dtype, None)
            case Word(kind="name", text="placement"):
                self.take()
                return self._shared(("placement",), word, PlacementType)
            case Word(kind="name"):
                dtype = self._dtype(self.take(), word.text)
                return self._tensor(word, dtype, self._shape() if self.accept("[") else ())
            case _:
                return self.expected("a type")

    def _abstract(self) -> Type:
        word, label = self.peek(), self.name()
        return self._shared(("abstract", label), word, functools.partial(AbstractType, label))

    def _tensor(self, word: Word, dtype: DType, shape: Shape) -> Type:
        make = functools.partial(TensorType, dtype, shape)
        return self._shared(("tensor", dtype, shape), word, make)

    def _dtype(self, word: Word, name: str) -> DType:
        if name not in BY_LABEL:
            near = near_names(name, BY_LABEL)
            self.refuse(
                "E236",
                word,
                f"there is no type `{name}`",
                notes=(f"the element types are {', '.join(BY_LABEL)}",),
                help=f"did you mean `{near[0]}`?" if near else None,
            )
        return BY_LABEL[name]

    def _shape(self) -> tuple[int | None, ...]:
        sizes: list[int | None] = []
        while True:
            sizes.append(None if self.accept("?") else self._size())
            if self.accept("]"):
                return tuple(sizes)
            self.expect(",")

    def _size(self) -> int:
        word = self.peek()
        size = self.integer()
        if size < 0:
            self.refuse(
                "E112", word, f"a size is {size}", help="write ? for a size that is not known"
            )
        return size

    def _struct_type(self) -> Task[Type]:
        word = self.take()
        names: list[str | None] = []
        types: list[Type] = []
        while not self.accept(">"):
            if names:
                self.expect(",")
            names.append(self.element_name())
            types.append((yield self.type()))
        make = functools.partial(StructType.of, tuple(names), tuple(types))
        return self._shared(("struct", *names, *map(id, types)), word, make)

    def element_name(self) -> str | None:
        """Return the name before an element of a struct, if it has one."""
        if self.peek().kind not in ("name", "string") or self.peek(1).text != "=":
            return None
        name = self.name()
        self.expect("=")
        return name

    def _function_type(self) -> Task[Type]:
        word = self.take()
        parameter = None if self.peek().text == "->" else (yield self.type())
        self.expect("->")
        result = yield self.type()
        self.expect(")")
        make = functools.partial(FunctionType, parameter, result)
        return self._shared(("function", id(parameter), id(result)), word, make)

    def _partly_equal_type(self) -> Task[Type]:
        word = self.take()
        member = yield self.type()
        self.expect("}")
        self.expect("@")
        return self._placed(word, member, False)
