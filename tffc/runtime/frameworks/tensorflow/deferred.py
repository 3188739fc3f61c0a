"""Putting off what TensorFlow imports of other packages and does not use itself.

The import of TensorFlow ends with one of Keras, so that Keras 2 can register its optimizers, and
its converter for LiteRT imports a function of JAX.  TensorFlow goes on without either, and loads
Keras where somebody uses `tf.keras`.  Both import much in turn, such as scikit-learn, SciPy and
Matplotlib where they are installed: then they are half of the time until TensorFlow is loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

IMPORTERS = {"keras": "tensorflow", "jax": "tensorflow.lite.python.util"}
"""The packages that are put off, and the module of TensorFlow whose import of each is."""

CONVERTERS = ("tensorflow.lite.python.util", "tensorflow.lite.python.lite")
"""The modules of TensorFlow that have JAX's function, as `_jit`, or None where there is no JAX."""


@contextlib.contextmanager
def deferring() -> Generator[None]:
    """Put off the imports of Keras 3 and JAX by TensorFlow, which is imported in the context.

    Imports of them by anything else are as always, also in other threads.
    """
    put_off = _PutOff()
    sys.meta_path.insert(0, put_off)
    try:
        yield
    finally:
        sys.meta_path.remove(put_off)
        if "jax" in put_off.names:
            _jit_by_name()


class _PutOff(MetaPathFinder):
    """Finds no package where TensorFlow looks for one of `IMPORTERS`, and remembers its name."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        is_legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
        self._importers = {
            name: module
            for name, module in IMPORTERS.items()
            if not (name == "keras" and (is_legacy or not _is_keras_3()))
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        importer = self._importers.get(fullname)
        if importer is not None and _importing_module(inspect.currentframe()) == importer:
            self.names.add(fullname)
            raise ModuleNotFoundError(f"the import of {fullname} is put off", name=fullname)
        return None


def _is_keras_3() -> bool:
    """Return whether the installed Keras is one that registers nothing with TensorFlow."""
    import importlib.metadata

    try:
        return importlib.metadata.version("keras").startswith("3.")
    except importlib.metadata.PackageNotFoundError:
        return False


def _importing_module(frame: FrameType | None) -> str | None:
    """Return the name of the module whose code imports something, below the import system."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != __name__ and name.partition(".")[0] not in ("importlib", "_frozen_importlib"):
            return name
        frame = frame.f_back
    return None


def _jit_by_name() -> None:
    """Let the converter for LiteRT load JAX when it converts a function of JAX, if it is there."""
    if importlib.util.find_spec("jax") is None:
        return
    for name in CONVERTERS:
        module = sys.modules.get(name)
        if module is not None and getattr(module, "_jit", module) is None:
            module._jit = _jit  # pyright: ignore[reportAttributeAccessIssue]  # private


def _jit(*arguments: Any, **options: Any) -> Any:
    """Call `jax.jit`."""
    return importlib.import_module("jax").jit(*arguments, **options)
