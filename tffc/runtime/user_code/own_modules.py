"""The modules of a user's program: those in its folder, which are reloaded after changes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import linecache
import os
import sys
import sysconfig
from types import ModuleType
from typing import Any


def is_path(source: str) -> bool:
    """Return whether a module is named by the path of its file, not by a dotted name."""
    return source.endswith(".py") or "/" in source or os.sep in source


def folder_of(source: str) -> str:
    """Return the folder that a module, given by its path or dotted name, can import from."""
    return os.path.dirname(os.path.abspath(source)) if is_path(source) else os.getcwd()


def file_of(source: str) -> str | None:
    """Return the file of a module, given by its path or dotted name, or None for one that Python
    looks for elsewhere than in the current folder."""
    if is_path(source):
        return source
    path = os.path.join(*source.split("."))
    files = f"{path}.py", os.path.join(path, "__init__.py")
    return next(filter(os.path.isfile, files), None)


def namespace(module: object) -> dict[Any, Any]:
    """Return a module's names with their objects; none if it has put another object in its place.

    It is not what a lazy module makes of its `__dict__`.
    """
    is_module = issubclass(type(module), ModuleType)
    return vars(ModuleType)["__dict__"].__get__(module) if is_module else {}


class OwnModules:
    """The modules in a folder that are imported from now on, except installed packages."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._others = frozenset(sys.modules)

    def files(self) -> set[str]:
        """Return the files of the modules that are imported now."""
        files = (namespace(module).get("__file__") for module in self._modules().values())
        return {os.path.abspath(file) for file in files if file is not None}

    def forget(self) -> None:
        """Unload the modules and their cached source lines, so that they are imported again."""
        for name in self._modules():
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.clearcache()

    def _modules(self) -> dict[str, ModuleType]:
        modules = list(sys.modules.items())
        return {
            name: module
            for name, module in modules
            if name not in self._others and self._is_own(module)
        }

    def _is_own(self, module: ModuleType) -> bool:
        names = namespace(module)
        place, name = names.get("__file__"), names.get("__name__")
        if place is None:
            # A namespace package has no file, only the paths of its modules.
            with contextlib.suppress(Exception):  # of a module that has put another object there
                place = next(iter(names.get("__path__", ())), None)
        if type(place) is not str or type(name) is not str or name.partition(".")[0] == "tffc":
            return False
        place = os.path.abspath(place)
        return place.startswith(self.folder.rstrip(os.sep) + os.sep) and not any(
            place.startswith(other + os.sep) for other in _folders_of_others()
        )


@functools.cache
def _folders_of_others() -> frozenset[str]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    return frozenset(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
