"""Finding the user's code on the stack, and cleaning tracebacks of all other frames.

An error points at the innermost line of the user's own code.  Code of packages that they installed
may lie between that line and ours, above all that of TFF's libraries, which build programs; it is
pointed at only if nothing else is there.

Tracing runs user functions inside ours.  Every public function of the front end is an
`entry_point`: an exception that leaves it, ours or the user's, shows no frames of this package, so
it reads as if the user's functions had called each other.  Frames of TensorFlow, JAX and NumPy are
removed too.  Setting the environment variable TFFC_DEBUG to 1 keeps all frames.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
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

FRAMEWORKS = frozenset(
    {"absl", "jax", "jaxlib", "keras", "numpy", "tensorflow", "tf_keras", "torch", "torchax"}
)
"""Packages that call the user's functions, as we do, or are called by them."""

INSTALLED = ("site-packages", "dist-packages")
"""The folders of installed packages."""

LIBRARIES_OF_TFF = ("tensorflow_federated", "python")
"""The folders, one in the other, of TFF's libraries, wherever their wheel is."""

AUTOGRAPH = "__autograph_generated_file"
"""The prefix of files in which TensorFlow rewrites the user's functions."""

AUTOGRAPH_METADATA = "ag_error_metadata"
"""The attribute with the exception that AutoGraph replaced: its class and message are in
`cause_message`, its frames in `translated_stack`, innermost first."""


def user_span() -> Span | None:
    """Return the call in the user's source that is being executed: the innermost frame of theirs,
    and not of a package, if there is one."""
    own = min(_places(), key=lambda frame: distance(frame.f_code.co_filename), default=None)
    return None if own is None else _span(own.f_code, own.f_lasti)


def building_span() -> Span | None:
    """Return the call that is being executed outside of this package and of frameworks, which may
    be in a package that builds programs."""
    frame = next(_places(), None)
    return None if frame is None else _span(frame.f_code, frame.f_lasti)


def _places() -> Iterator[FrameType]:
    """Yield the frames above the caller that are places of user code, innermost first."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if _is_place(frame):
            yield frame
        frame = frame.f_back


def distance(file: str) -> int:
    """Return how far a file that is not ours is from the user's own: 0 if it is theirs, 1 in an
    installed package, and 2 in TFF's libraries."""
    folders = file.split(os.sep)[:-1]
    if LIBRARIES_OF_TFF in itertools.pairwise(folders):
        return 2
    return int(not set(folders).isdisjoint(INSTALLED))


def is_users_file(file: str) -> bool:
    """Return whether the user wrote a file, or installed it with a package that is no framework:
    it is not ours or the library's."""
    if file.startswith((PACKAGE, "<frozen")) or not os.path.isabs(file):
        return False
    if os.path.basename(file).startswith(AUTOGRAPH):
        return False
    parts = file.split(os.sep)
    if "site-packages" in parts:
        inside = parts[len(parts) - parts[::-1].index("site-packages") :]
        return not FRAMEWORKS.intersection(inside[:1])
    return not file.startswith(LIBRARY)


def nearest_line(lines: Iterable[tuple[str, int]]) -> Span | None:
    """Return the user's innermost line of a stack of files and lines, the innermost first; as for
    `user_span`, one of an installed package only if there is no other."""
    own = [(file, line) for file, line in lines if is_users_file(file)]
    return Span(*min(own, key=lambda place: distance(place[0]))) if own else None


def raised_span(error: BaseException) -> Span | None:
    """Return where in the user's source an exception was raised: their innermost frame that it
    passed.

    If AutoGraph rewrote that code, the line it was rewritten from.
    """
    metadata = getattr(error, AUTOGRAPH_METADATA, None)
    stack = () if metadata is None else metadata.translated_stack
    rewritten = [frame for frame in stack if frame.is_converted]
    passed = _passed(error)
    if rewritten:
        frame = min(rewritten, key=lambda frame: distance(frame.filename))
        if passed is None or distance(frame.filename) <= distance(_file(passed)):
            return Span(frame.filename, frame.lineno)
    return None if passed is None else _span(passed.tb_frame.f_code, passed.tb_lasti)


def _passed(error: BaseException) -> TracebackType | None:
    """Return the innermost link of an exception's traceback that is in the user's source."""
    places = [link for link in _frames(error.__traceback__) if _is_place(link.tb_frame)]
    return min(reversed(places), key=lambda link: distance(_file(link)), default=None)


def _file(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename


def is_in_library_of_tff(error: BaseException | None = None) -> bool:
    """Return whether TFF's libraries raised an exception, or are what is being executed."""
    if error is None:
        innermost = next((frame.f_code.co_filename for frame in _places()), "")
    else:
        files = [_file(link) for link in _frames(error.__traceback__) if _is_place(link.tb_frame)]
        innermost = files[-1] if files else ""
    return distance(innermost) == 2


def raised_names(error: BaseException) -> set[str]:
    """Return the names defined where an exception was raised in the user's source."""
    passed = _passed(error)
    return set() if passed is None else {*passed.tb_frame.f_locals, *passed.tb_frame.f_globals}


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

    An error of ours without a place, or with one in an installed package, gets the user's line that
    led to it: inside of `function` if that ran user code, or else the line of its caller.  Errors
    about a file that could not be loaded get none.
    """

    @functools.wraps(function)
    def boundary(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if isinstance(error, TffcError) and not isinstance(error, LoadError):
                error.span = _nearest(error.span, raised_span(error), user_span())
            keep_users_frames(error)
            # A bare raise adds no frame, so the traceback stays as it was set.
            raise

    return boundary


def _nearest(*spans: Span | None) -> Span | None:
    """Return the first of the places that are nearest to the user's own code."""
    known = [span for span in spans if span is not None]
    return min(known, key=lambda span: distance(span.file), default=None)


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
    # Python makes the methods of our dataclasses of text.
    if file == "<string>" and package == __name__.partition(".")[0]:
        return False
    return package not in FRAMEWORKS and not os.path.basename(file).startswith(AUTOGRAPH)


def _is_place(frame: FrameType) -> bool:
    """Return whether a frame is the user's and not of the standard library, which they call."""
    file = frame.f_code.co_filename
    is_library = file.startswith(LIBRARY) and "site-packages" not in file
    # PyTorch makes functions of text, in no module.
    is_made = file == "<string>" and "__name__" not in frame.f_globals
    return _is_users(frame) and not is_library and not is_made


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
