"""What the code of clients shows, which engines and nodes pass on only if they are asked to.

Code shows values where it prints, and in the texts of its errors.  Unless a block says otherwise,
it is taken to be a client's: prints are left out of its graphs, and its errors keep only what the
program decides.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from tffc.graphs.node import Nodes, source
from tffc.runtime.frameworks.tensorflow.quiet import quiet_if_loud
from tffc.support.errors import DataError, TffcError
from tffc.support.explanations import has_page, read_page

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


_is_showing = contextvars.ContextVar("is_showing", default=False)


@contextlib.contextmanager
def showing(shows: bool = True) -> Generator[None]:
    """Let the code in the block show what it computes with, as the server's may."""
    before = _is_showing.set(shows)
    try:
        yield
    finally:
        _is_showing.reset(before)


def is_showing() -> bool:
    """Tell whether code may show what it computes with here, in this thread."""
    return _is_showing.get()


@contextlib.contextmanager
def client_code() -> Generator[None]:
    """Take the values out of the errors of a client's code, and keep what TensorFlow logs of them
    off stderr, unless it may show them."""
    try:
        with without_logs(is_showing()):
            yield
    except DataError:
        raise  # it tells of a file, which no code has read
    except TffcError as error:
        if is_showing():
            # What the program decides, such as the operation that failed, is said as well.
            own = (note for note in error.public if note not in error.notes)
            error.notes = (*own, *error.notes)
            raise
        if not error.holds_values:
            raise
        raise without_values(error) from None


@contextlib.contextmanager
def without_logs(shows: bool) -> Generator[None]:
    """Keep the errors that TensorFlow logs off stderr, unless clients' code may show values.

    TensorFlow logs every error with its text.  It does not if tffc has imported it, but a user's
    script may have done so before.
    """
    with contextlib.nullcontext() if shows else quiet_if_loud():
        yield


def without_values(error: TffcError) -> TffcError:
    """Return an error of the same kind and code that says only what the program decides."""
    title = read_page(error.code).title if has_page(error.code) else "an error without a page"
    public = type(error)(
        error.code,
        f"a client's part of the round failed: {title[:1].lower()}{title[1:]}",
        notes=error.public,
        help="the rest may hold the client's values and is not shown; to see it, run the round on "
        "your own machine and let the engine show clients",
        span=error.span,
    )
    public.whole = error
    public.holds_values = False
    return public


FILE = b"file://"
"""How the output of a print begins that goes to a file, which is an effect of its own."""


def leave_prints_out(graph: GraphDef) -> None:
    """Make operations of a GraphDef that print do nothing, also inside of functions.

    What waited for a print waits for what the print waited for.
    """
    _leave_out(graph.node, frozenset())
    for function in graph.library.function:
        arguments = frozenset(argument.name for argument in function.signature.input_arg)
        _leave_out(function.node_def, arguments)


def _leave_out(nodes: Nodes, arguments: frozenset[str]) -> None:
    for node in nodes:
        if node.op == "PrintV2" and not node.attr["output_stream"].s.startswith(FILE):
            node.op = "NoOp"
            node.input[:] = _waiting(node.input, arguments)
            node.attr.clear()
        elif node.op == "Print":
            node.op = "Identity"
            node.input[:] = [node.input[0], *_waiting(node.input[1:], arguments)]
            kind = node.attr["T"].type
            node.attr.clear()
            node.attr["T"].type = kind


def _waiting(edges: Iterable[str], arguments: frozenset[str]) -> list[str]:
    """Return control edges in place of edges; arguments of functions are always there."""
    return [f"^{name}" for name in dict.fromkeys(map(source, edges)) if name not in arguments]
