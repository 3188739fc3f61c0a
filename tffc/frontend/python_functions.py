"""Functions of Python in traced TensorFlow graphs, kept for as long as the process runs.

TensorFlow itself forgets them when the graph that was traced is freed, though the computation still
has a copy of it.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

from tffc.language.wire.python_functions import FUNCTIONS, CalledFunction, unknown_calls
from tffc.runtime.user_code.source import nearest_line
from tffc.support.errors import LanguageValueError, Span

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


class _Notes:
    """Notes the user's line of every function that TensorFlow registers while a trace is running.

    All threads share the registry; a note about the function of another thread does no harm.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces = 0
        self.spans: dict[str, Span | None] = {}

    def __enter__(self) -> None:
        with self._lock:
            self._traces += 1
            if self._traces == 1:
                _registry().insert = self._insert

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._traces -= 1
            if self._traces == 0:
                del _registry().insert

    def _insert(self, function: Any) -> str:
        registry = _registry()
        token: str = registry.__class__.insert(registry, function)
        self.spans[token] = _user_span()
        return token


noting_lines = _Notes()


def keep_python_functions(graph_def: GraphDef) -> None:
    """Keep the functions that a traced graph calls.

    Raises:
      LanguageValueError: TensorFlow does not have one of them.
    """
    registry = _registry()
    for node in unknown_calls(graph_def):
        token = node.attr["token"].s
        function = registry.get(token.decode(errors="replace"))
        if function is None:
            raise LanguageValueError(
                "E909",
                f"the operation {node.name!r} calls a function of Python that does not exist: "
                f"{token!r}",
                help="call the function with tf.py_function or tf.numpy_function, in the "
                "computation itself",
            )
        FUNCTIONS[token] = CalledFunction(function, noting_lines.spans.pop(token.decode(), None))


def _registry() -> Any:
    return importlib.import_module("tensorflow.python.ops.script_ops")._py_funcs


def _user_span() -> Span | None:
    """Return the user's innermost line on the stack, also where AutoGraph has rewritten it."""
    stack = importlib.import_module("tensorflow.python.util.tf_stack").extract_stack()
    return nearest_line((frame.filename, frame.lineno) for frame in reversed(stack))
