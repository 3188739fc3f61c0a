"""The errors that tffc raises.

Every error has a stable code, a message that says what was found and what was expected, notes
that give context, a help line that says what to do, and, where one is known, the place in the
user's source.  Nothing here prints: the command line renders errors, a script sees ordinary
exceptions.

Codes are grouped by subject: E1xx types and nodes, E2xx wire format and notation, E3xx passes and
graphs, E4xx loading and tracing, E5xx forms, E6xx bundles and data, E7xx execution, E8xx goldens
and the command line, E9xx validation, audits, engines and export.
"""

from __future__ import annotations

import functools
import inspect
import os
import pathlib
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, cast

from tffc.support.printable import printable, printable_lines
from tffc.support.source_text import source_line


class Span(NamedTuple):
    """A place in the user's source: a file, a line and, where known, the columns of a call.

    Lines count from 1 and columns, in bytes of UTF-8, from 0, as in Python's own syntax trees.
    `text` is the line if it is in no file.
    """

    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def shown(self) -> str:
        """Return the place with the shortest path: relative if the file is below the working
        directory."""
        return f"{shown_path(self.file)}:{self.line}"

    def source_line(self) -> str:
        """Return the first line of the place as in the file, empty if it cannot be read."""
        if self.text:
            return self.text
        return source_line(self.file, self.line)


names_of_files: list[Callable[[str], str | None]] = []
"""Functions that know other names of some files than their paths: those of a notebook's cells."""


def shown_path(file: str) -> str:
    """Return the name of a file if it has one, or the shortest path: relative if the file is below
    the working directory."""
    for name_of in names_of_files:
        if (name := name_of(file)) is not None:
            return name
    try:
        relative = os.path.relpath(file)
    except OSError:  # The working directory is gone.
        return file
    return file if relative.startswith(os.pardir) else relative


LONGEST_LINE = 100
"""The most characters of a line that are shown around a mark in it."""


def excerpt(line: str, start: int, length: int, longest: int = LONGEST_LINE) -> tuple[str, int]:
    """Return the part of a line around a mark of some length, and the position of the mark in it.

    At most `longest` characters are kept; three dots mark text that is left out at either side.
    """
    first = max(0, min(start - (longest - length) // 2, len(line) - longest))
    before = "..." if first else ""
    after = "..." if first + longest < len(line) else ""
    return f"{before}{line[first : first + longest]}{after}", len(before) + start - first


LONG_QUOTATION = re.compile(r"`([^`]{200})([^`]{200,})([^`]{100})`")
"""Matches the quotations to abridge: types of real models fill pages, and the rest of the message
says what is wrong."""


def abridge(text: str) -> str:
    """Return a message without the middle of every quotation of more than 500 characters."""
    return LONG_QUOTATION.sub(lambda m: f"`{m[1]} ...{len(m[2])} characters... {m[3]}`", text)


class Details(TypedDict, total=False):
    """The optional parts of an error."""

    notes: tuple[str, ...]
    help: str | None
    span: Span | None
    remedy: str


class TffcError(Exception):
    """The base of all errors: what tffc refuses, and how to correct it.

    Subclasses also derive from the builtin exception that Python would have raised, so that a
    caller may catch either.  `message` is complete; `str` and the command line abridge its
    quotations.  `remedy` names what helps, such as `replace`, for callers who say in their own
    words how to ask for it; it is empty if the help says all.
    """

    exit_code = 1
    public: tuple[str, ...] = ()
    """Notes that hold no value that a computation had, for an error whose message may."""

    holds_values = True
    """Whether message, notes or help may hold such a value, when the error is of a computation."""

    whole: TffcError | None = None
    """The error that this one stands for, without what may be values."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        notes: tuple[str, ...] = (),
        help: str | None = None,
        span: Span | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.notes = notes
        self.help = help
        self.span = span
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled as calls with their message alone, which is no call of these.
        return _new_error, (type(self), self.message), self.__dict__

    def __str__(self) -> str:
        lines = [f"{self.seen(self.message)} [{self.code}]"]
        if self.span is not None:
            lines.append(f"  at {printable(str(self.span))}")
            lines.extend(_marked(self.span))
        lines.extend(f"  note: {self.seen(note)}" for note in self.notes)
        if self.help is not None:
            lines.append(f"  help: {self.seen(self.help)}")
        return abridge("\n".join(lines))

    @staticmethod
    def seen(text: str) -> str:
        """Return the message, a note or the help with invisible characters escaped."""
        return printable_lines(text)


def _new_error(kind: type[TffcError], message: str) -> TffcError:
    """Return an error without its other attributes."""
    return kind.__new__(kind, message)


def _marked(span: Span) -> list[str]:
    """Return the line of a span that is in no file, with a caret below the column."""
    if span.text is None or span.column is None:
        return []
    start = len(span.text.encode()[: span.column].decode(errors="ignore"))
    shown, start = excerpt(span.text.replace("\t", " "), start, 1)
    before, after = printable(shown[:start]), printable(shown[start:])
    return [f"    {before}{after}", f"    {' ' * len(before)}^"]


class _OneLineError(TffcError):
    """An error whose message, notes and help are one line each, whatever they quote."""

    @staticmethod
    def seen(text: str) -> str:
        """Return the text on one line."""
        return printable(text)


class LanguageTypeError(TffcError, TypeError):
    """A program, type or value breaks a typing rule of the language."""


class LanguageValueError(TffcError, ValueError):
    """A program, type or value is of the right kind, but the language refuses its content."""


class ComputationReturnedNoneError(LanguageValueError):
    """The function of a computation returned None."""


class NotCallableError(LanguageTypeError, SyntaxError):
    """A value of a program is called and is no function; TFF has SyntaxError for it."""

    @property
    def msg(self) -> str:  # type: ignore[override]  # Python shows it in place of `str`
        return str(self)


class UnsupportedError(LanguageTypeError, NotImplementedError):
    """A Python object that cannot be converted to a value or an element type of the language."""


class StructureMismatchError(LanguageTypeError, ValueError):
    """A structure, or one beside another, does not have its leaves where it must."""


class WrongCountError(LanguageValueError, IndexError):
    """There is more or less of something than needed."""


class MissingElementError(TffcError, AttributeError):
    """A name that no element of a struct has, or that a module does not have."""


class MissingFieldError(MissingElementError, KeyError, TypeError):
    """A struct has no element of the name that was to be changed."""


class OutOfRangeError(TffcError, IndexError):
    """A position or slice outside of a struct."""


class ContextError(TffcError, RuntimeError):
    """An operation was used where it has no meaning, such as a federated operator outside a
    federated computation."""


MISSING_PACKAGE = "E701"
"""The code of errors that say that a package is not installed or cannot be used."""


class MissingExtraError(TffcError, ImportError):
    """A package that only this use of tffc needs is not installed."""


class MissingModuleError(TffcError, ImportError):
    """A module that a program for TensorFlow Federated imports and that tffc does not have."""


class WireError(TffcError, ValueError):
    """Bytes that are not a well-formed serialized computation."""


class OversizeError(WireError):
    """A program whose message would be too large, because messages repeat shared parts."""


class UnstorableError(WireError, NotImplementedError):
    """A type that the wire format has no message for."""


class NotationError(TffcError, ValueError):
    """Text that is not in the printed notation."""


class PipelineError(TffcError, ValueError):
    """A pipeline that names unknown passes or options, or orders them wrongly."""


class PluginError(TffcError, ValueError):
    """What an installed package adds to tffc is unknown, or not what it should be."""


class PassError(TffcError, RuntimeError):
    """A pass from another package failed."""


class VerificationError(TffcError, ValueError):
    """A program that breaks an invariant of the intermediate representation."""


class ValidationError(TffcError):
    """A program, pass or form that does not compute what it should."""


class LoadError(_OneLineError):
    """A user's module that cannot be found, imported or searched for a computation."""


class FormError(TffcError, TypeError, ValueError):
    """A program that cannot be expressed in the requested form."""


class GraphError(TffcError, ValueError):
    """A TensorFlow graph that is malformed or cannot be linked."""


class BundleError(_OneLineError):
    """A bundle that is damaged, of an unknown format, or cannot be written."""


class DataError(_OneLineError, ValueError):
    """Clients' data or a saved state that does not fit the bundle."""


class ExportError(TffcError):
    """A bundle that cannot be exported to another runtime."""


class ExecutionError(TffcError, RuntimeError):
    """A computation that could not be run to its end."""


class ConsentError(TffcError, RuntimeError):
    """A program has effects of `kinds` that its user has not consented to."""

    def __init__(
        self, code: str, message: str, *, kinds: tuple[str, ...] = (), **details: Unpack[Details]
    ) -> None:
        super().__init__(code, message, **details)
        self.kinds = kinds


class PolicyError(TffcError, ValueError):
    """A file that is not a policy for what may leave the clients."""


class TrustError(TffcError, ValueError):
    """A signature, an approval or a key that is not what it should be, or a bundle that is not
    admitted."""


class GoldenError(TffcError):
    """Golden files that differ from the printed output."""


# Nobody can think of everything that may be in a file.  Whatever a reader raises beside the errors
# above becomes a refusal at its boundary, so that no input can end a command as if tffc were
# defective.

F = TypeVar("F", bound=Callable[..., Any])


def reader(kind: str, error: type[TffcError]) -> Callable[[F], F]:
    """Make a function the reader of a kind of input, such as `a policy`.

    What it raises is a `TffcError`, or `error` with code E865; `OSError` and `MemoryError` pass.
    """

    def register(function: F) -> F:
        def read(*args: Any, **kwargs: Any) -> Any:
            with _boundary(kind, error, args):
                return function(*args, **kwargs)

        def read_each(*args: Any, **kwargs: Any) -> Generator[Any]:
            with _boundary(kind, error, args):
                yield from function(*args, **kwargs)

        wrapper = read_each if inspect.isgeneratorfunction(function) else read
        wrapper = functools.wraps(function)(wrapper)
        vars(wrapper)["reads"] = kind
        return cast("F", wrapper)

    return register


def kind_read_by(function: Any) -> str | None:
    """Return the kind of input whose reader a function is; None if it is none."""
    return getattr(function, "reads", None)


@contextmanager
def _boundary(kind: str, error: type[TffcError], arguments: tuple[Any, ...]) -> Generator[None]:
    try:
        yield
    except (TffcError, OSError, MemoryError):
        raise
    except Exception as unexpected:
        place = next((f"{each}: " for each in arguments if isinstance(each, pathlib.Path)), "")
        raise error(
            "E865",
            f"{place}this cannot be read as {kind}: {type(unexpected).__name__}: {unexpected}",
            help="it is damaged, or of a kind that tffc did not expect; if another program reads "
            "it, please report this",
        ) from unexpected
