"""Fixed seeds while a module is imported or traced, so that the same source gives the same program.

Keras draws the seeds of initializers and dropout from Python's generator when a layer is made, and
puts them into the graph as constants.  So while tffc loads a module, the generators of Python and
NumPy start from a fixed state.  For each computation they start again, from its name and parameter
type, so that its trace does not depend on what else is traced.  If the module seeds them itself,
they continue from there.  Afterwards their state is restored.

PyTorch's generator starts there, too, or where the module first imports PyTorch.

The numbers that a graph draws when it runs are unaffected: TensorFlow's own seeds are left alone.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import random
import sys
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import numpy as np

from tffc.language.types import Type
from tffc.runtime.user_code.source import run_inside


@dataclasses.dataclass(slots=True)
class _Loading:
    """The loading of a module: whether its code has seeded a generator, and whether an import is
    running."""

    is_seeded: bool = False
    is_importing: bool = False

    @contextlib.contextmanager
    def seeding(self, *_: Any, **__: Any) -> Generator[None]:
        self.is_seeded = True
        yield

    @contextlib.contextmanager
    def importing(self, name: str = "", *_: Any, **__: Any) -> Generator[None]:
        is_first_of_torch = name.partition(".")[0] == "torch" and "torch" not in sys.modules
        if self.is_importing:
            yield
            if is_first_of_torch:
                _seed_torch()
            return
        was_seeded, self.is_seeded, self.is_importing = self.is_seeded, False, True
        state = _state()
        if not was_seeded:
            _start(f"import {name}")
        try:
            yield
            if is_first_of_torch:
                _seed_torch()
        finally:
            self.is_importing = False
            if not self.is_seeded:
                _restore(state)
            self.is_seeded |= was_seeded


_loading: ContextVar[_Loading | None] = ContextVar("tffc_loading", default=None)


@contextlib.contextmanager
def steady_seeds() -> Generator[None]:
    """Make generators draw the same numbers each time a module is loaded, also in its traces.

    Modules that it imports cannot change what it draws, except by seeding a generator.
    """
    loading = _Loading()
    token = _loading.set(loading)
    with _kept(), _torch_begins_anew(), contextlib.ExitStack() as replaced:
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
    """Within `steady_seeds`, restart the generators for the trace of a computation."""
    loading = _loading.get()
    if loading is None or loading.is_seeded:
        yield
        return
    with _kept():
        _start(f"{name} {parameter}")
        try:
            yield
        finally:
            # Seeding inside a computation affects that computation only.
            loading.is_seeded = False


PYTORCH_SEED = 1
"""The seed that PyTorch's generator has when a module begins, or imports it first."""


def _seed_torch() -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(PYTORCH_SEED)


@contextlib.contextmanager
def _torch_begins_anew() -> Generator[None]:
    """Let PyTorch, if it is loaded, draw from a fixed seed, and restore its state afterwards."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    state = torch.get_rng_state()
    _seed_torch()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def _start(name: str) -> None:
    """Set the generators to a state determined by the name."""
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
    """Restore the generators' state afterwards."""
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
    # `run_inside` hides our frame from tracebacks of the user's code.
    setattr(module, name, run_inside(around, original))
    try:
        yield
    finally:
        setattr(module, name, original)
