"""Having TensorFlow loaded in silence also where a user's module imports it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tffc.execution.silence import silence
from tffc.execution.tensorflow import find_devices, keep_quiet, load_tensorflow


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
    find_devices(load_tensorflow())


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
            self.loader.exec_module(module)
