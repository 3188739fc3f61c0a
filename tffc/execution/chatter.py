"""Keeping TensorFlow's native code silent, which no setting does altogether.

Some builds write to the stderr of the process when they are loaded, and when they look for devices
for the first time, whatever the log level is.  Python's own stderr stays open meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tffc.execution.tensorflow import keep_quiet, load_tensorflow

STDERR = 2


def quiet_import() -> None:
    """Makes TensorFlow silent whenever it is imported from now on; loads nothing itself.

    Setting the environment variable TFFC_DEBUG to 1 lets it speak.
    """
    keep_quiet()
    loaded = "tensorflow" in sys.modules
    installed = any(isinstance(finder, _SilentFinder) for finder in sys.meta_path)
    if not loaded and not installed and os.environ.get("TFFC_DEBUG") != "1":
        sys.meta_path.insert(0, _SilentFinder())


def quiet_start() -> None:
    """Loads TensorFlow and lets it find its devices, in silence.

    Raises:
      ExecutionError: it is not installed.
    """
    quiet_import()
    tf = load_tensorflow()
    with _silence(), tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.constant(0))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Sends what native code writes to stderr nowhere while the block runs."""
    if os.environ.get("TFFC_DEBUG") == "1":
        yield
        return
    stderr = sys.stderr
    with contextlib.ExitStack() as stack:
        stderr.flush()
        kept = stack.enter_context(os.fdopen(os.dup(STDERR), "w", buffering=1))
        nowhere = stack.enter_context(open(os.devnull, "w"))
        os.dup2(nowhere.fileno(), STDERR)
        stack.callback(os.dup2, kept.fileno(), STDERR)
        if stderr is sys.__stderr__:
            stack.enter_context(contextlib.redirect_stderr(kept))
        yield


class _SilentFinder(MetaPathFinder):
    """Finds TensorFlow as ever, once, but has it loaded in silence."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _SilentLoader(spec.loader)
        return spec


class _SilentLoader(Loader):
    """Loads a module in silence, and leaves no trace in it."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        assert module.__spec__ is not None
        module.__spec__.loader = self.loader
        with _silence():
            self.loader.exec_module(module)
