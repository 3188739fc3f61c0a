"""Eager TensorFlow's semantics for code that builds the graph of a trace."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import threading
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.runtime.user_code.source import call_theirs, run_inside

if TYPE_CHECKING:
    from tffc.graphs.proto import TensorProto


_compares_by_value: ContextVar[bool] = ContextVar("tffc_compares_by_value", default=False)


@contextlib.contextmanager
def eager_semantics() -> Generator[None]:
    """Run code that adds to the default graph with the semantics of eager TensorFlow.

    Operations that read or change the same variable or table run in the order in which they were
    added; `==` and `!=` compare tensors by value.
    """
    control = importlib.import_module("tensorflow.python.framework.auto_control_deps")
    logger = logging.getLogger("tensorflow")
    logger.addFilter(_is_no_complaint)
    try:
        with _comparisons, _comparing(by_value=True), control.AutomaticControlDependencies():
            yield
    finally:
        logger.removeFilter(_is_no_complaint)


def create_variable(create: Callable[..., object], **options: Any) -> Any:
    """Return the variable that TensorFlow makes of these options.

    Meanwhile TensorFlow itself uses `==` to ask whether two tensors are the same object.  Only the
    function that computes the initial value is the user's.
    """
    first = options.get("initial_value")
    if callable(first):
        options["initial_value"] = run_inside(lambda *_, **__: _comparing(by_value=True), first)
    with _comparing(by_value=False):
        return call_theirs(create, **options)


@contextlib.contextmanager
def _comparing(*, by_value: bool) -> Generator[None]:
    token = _compares_by_value.set(by_value)
    try:
        yield
    finally:
        _compares_by_value.reset(token)


class _Comparisons:
    """The operators `==` and `!=` of tensors and variables, replaced while a trace is running.

    In a graph that does not belong to a function TensorFlow compares objects, so `x == 1` would be
    False.  The classes are shared by all threads: the operators are restored when the last trace
    ends, and a thread without a trace compares as usual.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces = 0
        self._originals: list[tuple[type, str, Any]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._traces += 1
            if self._traces == 1:
                self._replace()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._traces -= 1
            if self._traces == 0:
                for owner, name, original in self._originals:
                    setattr(owner, name, original)
                self._originals.clear()

    def _replace(self) -> None:
        tf = load_tensorflow()
        for owner in (tf.Tensor, tf.Variable):
            for name, operation in (("__eq__", tf.raw_ops.Equal), ("__ne__", tf.raw_ops.NotEqual)):
                original = getattr(owner, name)
                self._originals.append((owner, name, original))
                setattr(owner, name, _by_value(tf, original, operation))


_comparisons = _Comparisons()


def _by_value(
    tf: TensorFlow, by_object: Callable[..., object], operation: Callable[..., object]
) -> Any:
    @functools.wraps(by_object)
    def compare(self: Any, other: Any) -> Any:
        if other is None or not _compares_by_value.get() or not _is_in_reach(tf, self):
            return by_object(self, other)
        return operation(x=self, y=other, incompatible_shape_error=False)

    return compare


def _is_in_reach(tf: TensorFlow, tensor: TensorProto) -> bool:
    """Return whether an operation that is added now can take a tensor as an operand.

    TensorFlow itself compares tensors of functions that it has finished, as objects.
    """
    graph = getattr(tensor, "graph", None)
    if graph is None:
        return True
    here = tf.compat.v1.get_default_graph()
    while here is not graph:
        here = getattr(here, "outer_graph", None)
        if here is None:
            return False
    return True


def _is_no_complaint(record: logging.LogRecord) -> bool:
    """Return whether a log message is other than TensorFlow's warning about an unused check.

    TensorFlow gives that warning for graphs whose side effects it does not order itself.
    """
    return "Object was never used" not in str(record.msg)
