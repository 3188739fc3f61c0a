"""What draws a number while a module is imported or traced draws the same for the same source.

Keras takes the seeds of initializers and of dropout from Python's generator when a layer is made,
and puts them into the graph as constants.  So while tffc loads a module, the generators of Python
and NumPy start from a fixed state; for each computation they start anew, from its name and the type
of its parameter, so that it does not depend on what else is traced.  Where the module seeds them
itself, they go on from there.  Afterwards they are as they were.

What a graph draws when it runs is not touched: TensorFlow's own seeds are left alone.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import random
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import numpy as np

from tffc.frontend.source import run_inside
from tffc.ir.types import Type


@dataclasses.dataclass(slots=True)
class _Loading:
    """The load of a module: whether its code has seeded a generator, and is at an import."""

    is_seeded: bool = False
    is_importing: bool = False

    @contextlib.contextmanager
    def seeding(self, *_: Any, **__: Any) -> Generator[None]:
        self.is_seeded = True
        yield

    @contextlib.contextmanager
    def importing(self, name: str = "", *_: Any, **__: Any) -> Generator[None]:
        if self.is_importing:
            yield
            return
        was_seeded, self.is_seeded, self.is_importing = self.is_seeded, False, True
        state = _state()
        if not was_seeded:
            _start(f"import {name}")
        try:
            yield
        finally:
            self.is_importing = False
            if not self.is_seeded:
                _restore(state)
            self.is_seeded |= was_seeded


_loading: ContextVar[_Loading | None] = ContextVar("tffc_loading", default=None)


@contextlib.contextmanager
def steady_seeds() -> Generator[None]:
    """Make generators draw the same numbers in each load of a module, also for its traces.

    What it imports does not change what it draws, but by seeding a generator.
    """
    loading = _Loading()
    token = _loading.set(loading)
    with _kept(), contextlib.ExitStack() as replaced:
        replaced.enter_context(_replaced(builtins, "__import__", loading.importing))
        for module in (random, np.random):
            replaced.enter_context(_replaced(module, "seed", loading.seeding))
        _start("module")
        try:
            yield
        finally:
            _loading.reset(token)


@contextlib.contextmanager
def steady_trace(name: str | None, parameter: Type | None) -> Generator[None]:
    """Within `steady_seeds`, start the generators anew for the trace of a computation."""
    loading = _loading.get()
    if loading is None or loading.is_seeded:
        yield
        return
    with _kept():
        _start(f"{name} {parameter}")
        try:
            yield
        finally:
            loading.is_seeded = False  # what a computation seeds it seeds for itself


def _start(name: str) -> None:
    """Start the generators from a state that the name decides; Python takes texts as seeds."""
    numbers = random.Random(f"tffc {name}")
    random.setstate(numbers.getstate())
    np.random.set_state(np.random.RandomState(numbers.getrandbits(32)).get_state())


def _state() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()


def _restore(state: tuple[Any, Any]) -> None:
    python, numpy = state
    random.setstate(python)
    np.random.set_state(numpy)


@contextlib.contextmanager
def _kept() -> Generator[None]:
    """Put the generators back into the state that they had."""
    state = _state()
    try:
        yield
    finally:
        _restore(state)


@contextlib.contextmanager
def _replaced(
    module: Any, name: str, around: Callable[..., contextlib.AbstractContextManager[None]]
) -> Generator[None]:
    original = getattr(module, name)
    setattr(module, name, run_inside(around, original))
    try:
        yield
    finally:
        setattr(module, name, original)
