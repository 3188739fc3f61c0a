"""Finding the user's code on the stack, and cleaning tracebacks of all other frames.

Tracing runs user functions inside ours.  Every public function of the front end is an
`entry_point`: an exception that leaves it, ours or the user's, shows no frames of this package, so
it reads as if the user's functions had called each other.  Frames of TensorFlow, JAX and NumPy are
removed too.  Setting the environment variable TFFC_DEBUG to 1 keeps all frames.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import ParamSpec, TypeVar

from tffc.support.debug import is_debugging
from tffc.support.errors import LoadError, Span, TffcError

P = ParamSpec("P")
T = TypeVar("T")

PACKAGE = os.path.join(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")), "")
"""The folder of this package; code compiled from a file in it is ours."""

LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
"""The folder of the standard library, which contains that of installed packages."""

FRAMEWORKS = frozenset({"absl", "jax", "jaxlib", "keras", "numpy", "tensorflow", "tf_keras"})
"""Packages that call the user's functions, as we do, or are called by them."""

AUTOGRAPH = "__autograph_generated_file"
"""The prefix of files in which TensorFlow rewrites the user's functions."""

AUTOGRAPH_METADATA = "ag_error_metadata"
"""The attribute with the exception that AutoGraph replaced: its class and message are in
`cause_message`, its frames in `translated_stack`, innermost first."""


def user_span() -> Span | None:
    """Return the call in the user's source that is being executed: their innermost frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_place(frame):
        frame = frame.f_back
    return None if frame is None else _span(frame.f_code, frame.f_lasti)


def is_users_file(file: str) -> bool:
    """Return whether the user wrote a file: it is not ours, a framework's or the library's."""
    if file.startswith((PACKAGE, "<frozen")) or not os.path.isabs(file):
        return False
    if os.path.basename(file).startswith(AUTOGRAPH):
        return False
    parts = file.split(os.sep)
    if "site-packages" in parts:
        inside = parts[len(parts) - parts[::-1].index("site-packages") :]
        return not FRAMEWORKS.intersection(inside[:1])
    return not file.startswith(LIBRARY)


def raised_span(error: BaseException) -> Span | None:
    """Return where in the user's source an exception was raised: their innermost frame that it
    passed.

    If AutoGraph rewrote that code, the line it was rewritten from.
    """
    metadata = getattr(error, AUTOGRAPH_METADATA, None)
    for frame in () if metadata is None else metadata.translated_stack:
        if frame.is_converted:
            return Span(frame.filename, frame.lineno)
    passed = [link for link in _frames(error.__traceback__) if _is_place(link.tb_frame)]
    return _span(passed[-1].tb_frame.f_code, passed[-1].tb_lasti) if passed else None


def raised_names(error: BaseException) -> set[str]:
    """Return the names defined where an exception was raised in the user's source."""
    passed = [link.tb_frame for link in _frames(error.__traceback__) if _is_place(link.tb_frame)]
    return {*passed[-1].f_locals, *passed[-1].f_globals} if passed else set()


def exception_text(error: BaseException) -> str:
    """Return an exception's message; empty if even that fails, because its class may be the
    user's."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (only the text of a message is lost)
        return ""


def class_name(error: BaseException) -> str:
    """Return the name of an exception's class, whatever its metaclass says."""
    return type.__dict__["__name__"].__get__(type(error))


def original_words(error: BaseException) -> tuple[str, str]:
    """Return an exception's class name and message, from before AutoGraph replaced it."""
    metadata = getattr(error, AUTOGRAPH_METADATA, None)
    if metadata is None:
        return class_name(error), exception_text(error)
    name, _, words = metadata.cause_message.partition(": ")
    return name, words


def entry_point(function: Callable[P, T]) -> Callable[P, T]:
    """Make `function` a boundary: exceptions leave it with the user's frames only.

    An error of ours without a place gets the user's line that led to it: inside of `function` if
    that ran user code, or else the line of its caller.  Errors about a file that could not be
    loaded get none.
    """

    @functools.wraps(function)
    def boundary(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if (
                isinstance(error, TffcError)
                and error.span is None
                and not isinstance(error, LoadError)
            ):
                error.span = raised_span(error) or user_span()
            keep_users_frames(error)
            # A bare raise adds no frame, so the traceback stays as it was set.
            raise

    return boundary


def call_theirs(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call code that is not ours, so that an exception in it is not taken for a bug of ours.

    TensorFlow removes its own frames from tracebacks, so the last one left may be of its caller.
    """
    return function(*args, **kwargs)


def run_inside(
    around: Callable[P, contextlib.AbstractContextManager[None]], function: Callable[P, T]
) -> Callable[P, T]:
    """Return the function wrapped to run inside the context manager `around` makes from its
    arguments.

    It may replace a function that the user's code calls: tracebacks do not show it.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with around(*args, **kwargs):
            return function(*args, **kwargs)

    return run


def keep_users_frames(error: BaseException) -> None:
    """Remove all frames but the user's from the tracebacks of `error` and its causes.

    An error that looks like a bug of ours keeps them all.
    """
    if is_debugging():
        return
    for link in _chain(error):
        if is_defect(link):
            continue
        frames: TracebackType | None = None
        for frame in reversed(list(_frames(link.__traceback__))):
            if _is_users(frame.tb_frame):
                frame.tb_next = frames
                frames = frame
        link.__traceback__ = frames


def is_defect(error: BaseException) -> bool:
    """Return whether an exception that user code may have raised is a bug of ours.

    That is one raised in our code that is not one of our errors.  A call with the wrong number of
    arguments fails in the boundary itself and is the user's mistake.
    """
    frames = list(_frames(error.__traceback__))
    if isinstance(error, TffcError) or not isinstance(error, Exception) or not frames:
        return False
    innermost = frames[-1].tb_frame.f_code
    return innermost.co_filename.startswith(PACKAGE) and innermost.co_filename != __file__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and all exceptions that it was raised from or while handling."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        link = stack.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        stack += [link.__cause__, link.__context__]


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_users(frame: FrameType) -> bool:
    """Return whether a frame is the user's: not ours, a framework's or the import system's."""
    file = frame.f_code.co_filename
    if file.startswith((PACKAGE, "<frozen importlib")):
        return False
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package not in FRAMEWORKS and not os.path.basename(file).startswith(AUTOGRAPH)


def _is_place(frame: FrameType) -> bool:
    """Return whether a frame is the user's and not of the standard library, which they call."""
    file = frame.f_code.co_filename
    is_library = file.startswith(LIBRARY) and "site-packages" not in file
    return _is_users(frame) and not is_library


def _span(code: CodeType, instruction: int) -> Span:
    line, end_line, column, end_column = _positions(code)[instruction // 2]
    return Span(code.co_filename, line or code.co_firstlineno, column, end_line, end_column)


@functools.lru_cache(maxsize=256)
def _positions(
    code: CodeType,
) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    """Return the source range of every instruction, cached: reading it for each call is
    quadratic."""
    return tuple(code.co_positions())
