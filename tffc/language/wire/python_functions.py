"""Functions of Python that TensorFlow graphs call, such as those of `tf.py_function`.

A graph has no function, only a token by which TensorFlow finds it in the process.  So the functions
of the graphs that are traced here are kept until the process ends, and no graph that calls one is
written: elsewhere its token would stand for nothing, or for another function.  A graph from a file
may be written again, to be looked at; `tffc.runtime.effects.consent` refuses to run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tffc.graphs.node import all_nodes
from tffc.graphs.operations.effects import Effect, operations_of
from tffc.graphs.proto import GraphDef, NodeDef
from tffc.graphs.reading import read_graph
from tffc.language.lines import walk_with_lines
from tffc.language.nodes import Compiled, Node
from tffc.language.wire.sections import read_tensorflow
from tffc.support.errors import GraphError, LanguageValueError, Span

CALLS = operations_of(Effect.PYTHON)
"""The operations that call Python."""


class CalledFunction(NamedTuple):
    """A function that a graph calls, and the line of the user's that made it do so, if known."""

    function: Any
    span: Span | None


FUNCTIONS: dict[bytes, CalledFunction] = {}
"""The functions of all graphs that were traced in this process, by their tokens."""


def python_calls(graph: GraphDef) -> Iterator[NodeDef]:
    """Yield the nodes of a GraphDef, and of the functions in it, that call Python."""
    return (node for node in all_nodes(graph) if node.op in CALLS)


def has_python_functions(program: Node) -> bool:
    """Return whether a program calls functions of Python."""
    return next(_calls(program), None) is not None


def unknown_calls(graph: GraphDef) -> list[NodeDef]:
    """Return the nodes of a GraphDef that call functions of Python which are not kept."""
    return [node for node in python_calls(graph) if node.attr["token"].s not in FUNCTIONS]


def check_may_leave(program: Node) -> None:
    """Check that a program may leave this process, as it may not if it calls functions of Python
    that were traced here.

    Raises:
      LanguageValueError: it does.
    """
    for node, span in _calls(program) if FUNCTIONS else ():
        known = FUNCTIONS.get(node.attr["token"].s)
        if known is None:
            continue
        raise LanguageValueError(
            "E907",
            "the program calls a function of Python, which cannot leave the process that traced it",
            notes=(f"it does so by the operation {node.op} of TensorFlow",),
            help="write the function in TensorFlow, without tf.py_function, tf.numpy_function and "
            "Dataset.from_generator; or run the program in the process that traces it",
            span=known.span or span,
        )


def _calls(program: Node) -> Iterator[tuple[NodeDef, Span | None]]:
    """Yield the nodes of a program's graphs that call Python, with the line of the section."""
    names = [op.encode() for op in CALLS]
    for section, span in walk_with_lines(program):
        if not isinstance(section, Compiled) or section.kind != "tensorflow":
            continue
        # A graph that calls Python has the operation's name in its bytes, as few others do.
        if any(name in section.payload for name in names):
            for node in python_calls(_graph(section)):
                yield node, span


def _graph(section: Compiled) -> GraphDef:
    try:
        return read_graph(read_tensorflow(section.payload).graph_def)
    except GraphError:  # nothing runs it either
        return GraphDef()
