"""Making `import tensorflow_federated` and `import federated_language` give tffc."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from types import ModuleType

from tffc.runtime.user_code.source import user_span
from tffc.support.errors import ContextError, MissingModuleError
from tffc.tff.absent import AbsentFinder
from tffc.tff.finder import PYTHON, LanguageFinder, TffFinder, real_core_is_loaded
from tffc.tff.language_names import FEDERATED_LANGUAGE
from tffc.tff.names import TENSORFLOW_FEDERATED
from tffc.tff.package import Package
from tffc.tff.releases import choose, written_for
from tffc.tff.third_parties import ThirdPartyFinder

_LOCK = threading.Lock()

TITLES = {
    TENSORFLOW_FEDERATED.name: "TensorFlow Federated",
    FEDERATED_LANGUAGE.name: "federated_language",
}
"""What messages call the packages themselves."""


def install_as_tensorflow_federated() -> None:
    """Make `import tensorflow_federated as tff` give tffc in this process from now on, and `import
    federated_language` too, unless that is loaded already.

    TFF's own libraries, such as `tff.learning`, then run on tffc from their files.  Calling it
    again changes nothing.

    Raises:
      ContextError: TensorFlow Federated itself is loaded already.
    """
    _refuse_loaded(TENSORFLOW_FEDERATED)
    _install()


def install_as_federated_language() -> None:
    """Make `import federated_language` give tffc in this process from now on, and `import
    tensorflow_federated` too, unless that is loaded already.

    Calling it again changes nothing.

    Raises:
      ContextError: federated_language itself is loaded already.
    """
    _refuse_loaded(FEDERATED_LANGUAGE)
    _install()


def install_unless_loaded() -> None:
    """Install tffc under both names, except one whose package itself is loaded."""
    _install()


def install_for(path: str | None) -> None:
    """Install tffc as `install_unless_loaded` does, for a module of the user: TFF's name gives the
    release for which it was written.

    `path` is that of its file, if that is known.
    """
    _install()
    if path is not None and os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            choose(written_for(file.read()))


def _refuse_loaded(package: Package) -> None:
    if real_core_is_loaded(package.name):
        raise ContextError(
            "E183",
            f"tffc cannot take the name {package.name}, because {TITLES[package.name]} itself is "
            "loaded already",
            help=f"call tffc.install_as_{package.name}() before anything imports it",
        )


def _install() -> None:
    with _LOCK:
        installed = {type(finder) for finder in sys.meta_path}
        if LanguageFinder not in installed and not real_core_is_loaded(FEDERATED_LANGUAGE.name):
            sys.meta_path.insert(0, LanguageFinder())
        if TffFinder not in installed and not real_core_is_loaded():
            sys.meta_path[:0] = [TffFinder(), ThirdPartyFinder()]
            sys.meta_path.append(AbsentFinder())


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
