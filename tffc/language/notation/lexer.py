"""Words of the typed form: reading them from text, and writing names so that they can be read
back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar

from tffc.language.types import PLACEMENTS as ALL_PLACEMENTS
from tffc.language.types import Placement
from tffc.support.errors import NotationError, Span, TffcError
from tffc.support.printable import json_string, printable

T = TypeVar("T")

NAME = r"(?:[^\W\d]|<lambda>)(?:\w|<lambda>)*"
DIGITS = r"\d+(?:\.\d*)?(?:e[-+]?\d+)?"
END = r"\b(?!<lambda>)"
REAL = rf"(?:{DIGITS}|nan{END}|inf{END})"
IMAGINARY = rf"(?:{DIGITS}|nan|inf)j{END}"
ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2})"
WORDS = {
    "space": r"\s+",
    "section": r"comp#(?:[\w-]+|\"(?:[^\"\\\n]|\\.)*\")",
    "data": r"data#[\w-]+",
    "digest": r"sha256:[0-9a-f]{64}\b",
    "bytes": rf"b'(?:[ !\"#-&(-\[\]-~]|{ESCAPE})*'|b\"(?:[ !#-\[\]-~]|{ESCAPE})*\"",
    "string": r"\"(?:[^\"\\\n]|\\.)*\"",
    "unranked": r"'\w+'\(shape=None\)",
    "bits": r"0x[0-9a-f]*",
    "number": rf"-?{IMAGINARY}|\(-?(?:{DIGITS}|nan|inf)[-+]{IMAGINARY}\)|-?{REAL}",
    "arrow": r"->",
    "name": NAME,
    "sign": r"[<>()\[\]{},=:*@?&.]",
    # Without it, the rest of the text would be searched for a word, from every character of it.
    "other": r"(?s:.)",
}
"""The kinds of words, in the order in which they are tried."""

PATTERN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in WORDS.items()))
PLAIN_NAME = re.compile(NAME)
PLAIN_KEY = re.compile(r"[\w-]+")
RESERVED = frozenset({"let", "in", "True", "False", "CLIENTS", "SERVER", "lambda", "nan", "inf"})
RESERVED_NUMBERS = frozenset({"nanj", "infj"})
"""Names that would mean something else without quotes; `<lambda>` would be read as a name."""

PLACEMENTS = {str(placement): placement for placement in ALL_PLACEMENTS}

MAX_DIGITS = 19
"""The most digits of an index or a size."""


class Word(NamedTuple):
    """A word: its kind, its text, and where in the text it starts."""

    kind: str
    text: str
    start: int

    def describe(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{printable(self.text)}`"


class Source:
    """A text and its words; it raises errors that show their places."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.words = self._split()

    def _split(self) -> list[Word]:
        words: list[Word] = []
        for match in PATTERN.finditer(self.text):
            kind = match.lastgroup or ""
            if kind == "other":
                self.refuse("E236", match.start(), f"unexpected {match[0]!r}")
            if kind != "space":
                words.append(Word(kind, match[0], match.start()))
        return words

    def refuse(
        self, code: str, at: int, message: str, notes: tuple[str, ...] = (), help: str | None = None
    ) -> NoReturn:
        """Raise NotationError for the character at index `at`, with its line and a caret."""
        line = self.text.count("\n", 0, at) + 1
        begin = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        shown = self.text[begin : end if end >= 0 else len(self.text)]
        span = Span(self.file, line, len(self.text[begin:at].encode()), text=shown)
        raise NotationError(code, message, notes=notes, help=help, span=span)


class Cursor:
    """A place among the words of a text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words = source.words
        self._at = 0
        self._end_at(len(self._words), len(source.text))

    def _end_at(self, count: int, start: int) -> None:
        """End the text before the word of this number, which begins at `start`.  Two end words are
        added, because `peek` can look past the next word."""
        self._words[count:] = [Word("end", "", start)] * 2

    def peek(self, ahead: int = 0) -> Word:
        """Return the next word, or the one after it; the last words are always the end."""
        return self._words[self._at + ahead]

    def take(self) -> Word:
        word = self.peek()
        self._at += 1
        return word

    def accept(self, text: str) -> bool:
        """Take the next word if it is this one; return whether it is."""
        if self._words[self._at].text != text:
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.expected(f"`{text}`")

    def expected(self, what: str) -> NoReturn:
        """Refuse the next word, because `what` must be in its place."""
        word = self.peek()
        self._source.refuse("E236", word.start, f"expected {what}, found {word.describe()}")

    def refuse(self, code: str, word: Word, message: str, **more: Any) -> NoReturn:
        self._source.refuse(code, word.start, message, **more)

    def build(self, word: Word, make: Callable[[], T]) -> T:
        """Return the result of `make`; an error of it becomes one about the text at `word`."""
        try:
            return make()
        except TffcError as error:
            self.refuse("E238", word, error.message, notes=error.notes, help=error.help)

    def name(self) -> str:
        """Return a name, bare or in double quotes."""
        word = self.peek()
        if word.kind == "string":
            return self.string()
        if word.kind != "name" or word.text in RESERVED:
            self.expected("a name")
        return self.take().text

    def string(self) -> str:
        word = self.peek()
        if word.kind != "string":
            self.expected("a text in double quotes")
        return self.unquoted(self.take(), word.text)

    def unquoted(self, word: Word, text: str) -> str:
        import json  # which few texts need

        try:
            return json.loads(text)
        except ValueError:
            self.refuse("E236", word, f"{text} is not a text in double quotes as JSON has them")

    def integer(self) -> int:
        word = self.peek()
        if word.kind != "number" or not word.text.removeprefix("-").isdecimal():
            self.expected("an integer")
        if len(word.text) > MAX_DIGITS:
            self.refuse("E236", word, f"the integer has more than {MAX_DIGITS} digits")
        return int(self.take().text)

    def placement(self) -> Placement:
        if self.peek().text not in PLACEMENTS:
            self.expected("a placement, " + " or ".join(PLACEMENTS))
        return PLACEMENTS[self.take().text]


def quoted_key(name: str) -> str:
    """Return the name of a section as the typed form writes it after `comp#`."""
    plain = PLAIN_KEY.fullmatch(name) and printable(name) == name
    return name if plain else json_string(name)


def quoted(name: str) -> str:
    """Return the name as the typed form writes it: bare, or in double quotes with the escapes of
    JSON."""
    if name in RESERVED or name in RESERVED_NUMBERS:
        return json_string(name)
    plain = PLAIN_NAME.fullmatch(name) and printable(name) == name
    return name if plain else json_string(name)
