"""Having TensorFlow loaded in silence also where a user's module imports it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tffc.frameworks.tensorflow.load import (
    find_devices,
    keep_quiet,
    load_libraries,
    load_tensorflow,
)
from tffc.frameworks.tensorflow.silence import may_speak, silence


def quiet_import() -> None:
    """Makes TensorFlow silent whenever it is imported from now on; loads nothing itself.

    Setting the environment variable TFFC_DEBUG to 1 lets it speak, and so does setting
    TensorFlow's own, TF_CPP_MIN_LOG_LEVEL, to 0.
    """
    keep_quiet()
    loaded = "tensorflow" in sys.modules
    installed = any(isinstance(finder, _SilentFinder) for finder in sys.meta_path)
    if not loaded and not installed and not may_speak():
        sys.meta_path.insert(0, _SilentFinder())


def quiet_start() -> None:
    """Loads TensorFlow and lets it find its devices, in silence.

    Raises:
      ExecutionError: it is not installed.
    """
    quiet_import()
    find_devices(load_tensorflow())


def hear_prints(write: Callable[[str], object]) -> None:
    """Has TensorFlow hand what `tf.print` prints to a function, in place of writing it to stderr.

    That is for good, in this process; what it prints to files is written to them.  Where this
    TensorFlow cannot do so, it writes as ever.
    """
    library = os.path.join(os.path.dirname(load_tensorflow().__file__), "libtensorflow_cc.so.2")

    @ctypes.CFUNCTYPE(None, ctypes.c_char_p)
    def listen(message: bytes) -> None:
        write(message.decode(errors="backslashreplace"))

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(library).TF_RegisterLogListener(listen)
        _listeners.append(listen)


_listeners: list[Any] = []
"""What TensorFlow calls, which has to live as long as the process does."""


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
        with silence():
            load_libraries()
            self.loader.exec_module(module)
