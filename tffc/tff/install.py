"""Making `import tensorflow_federated` give tffc."""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType

from tffc.runtime.user_code.source import user_span
from tffc.support.errors import ContextError, MissingModuleError
from tffc.tff.absent import AbsentFinder
from tffc.tff.finder import PYTHON, CompatFinder, real_core_is_loaded
from tffc.tff.third_parties import ThirdPartyFinder

_LOCK = threading.Lock()


def install_as_tensorflow_federated() -> None:
    """Make `import tensorflow_federated as tff` give tffc in this process from now on.

    TFF's own libraries, such as `tff.learning`, then run on tffc from the files of the installed
    wheel.  Calling it again changes nothing.

    Raises:
      ContextError: TensorFlow Federated itself is loaded already.
    """
    if real_core_is_loaded():
        raise ContextError(
            "E183",
            "tffc cannot take the name tensorflow_federated, because TensorFlow Federated itself "
            "is loaded already",
            help="call tffc.install_as_tensorflow_federated() before anything imports it",
        )
    with _LOCK:
        if any(isinstance(finder, CompatFinder) for finder in sys.meta_path):
            return
        sys.meta_path[:0] = [CompatFinder(), ThirdPartyFinder()]
        sys.meta_path.append(AbsentFinder())


def install_unless_loaded() -> None:
    """Install tffc as `install_as_tensorflow_federated` does, unless TensorFlow Federated is
    loaded."""
    if not real_core_is_loaded():
        install_as_tensorflow_federated()


def refuse_real_core(missing: str) -> None:
    """Refuse to import a module that TensorFlow Federated's own core needs, if it is loaded.

    Raises:
      MissingModuleError: it is.
    """
    if real_core_is_loaded():
        raise MissingModuleError(
            "E183",
            f"TensorFlow Federated itself is being imported, and needs {missing}, which today's "
            "TensorFlow does not have",
            help="run the script with `tffc python SCRIPT`, or call "
            "tffc.install_as_tensorflow_federated() before anything imports tensorflow_federated",
            span=user_span(),
        )


def library(name: str) -> ModuleType:
    """Return one of TFF's own libraries, such as `learning`, running on tffc.

    Raises:
      ContextError: TensorFlow Federated itself is loaded already.
      MissingExtraError: the libraries are not installed.
    """
    install_as_tensorflow_federated()
    return importlib.import_module(f"{PYTHON}.{name}")
