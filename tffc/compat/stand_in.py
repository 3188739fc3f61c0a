"""Modules without code, whose names are imported from other modules when they are first used."""

from __future__ import annotations

import importlib
import importlib.abc
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tffc.errors import TffcError

Homes = Mapping[str, Sequence[str]]
"""Names, by the modules that define them."""

ALL: Sequence[str] = ()
"""Stands for all public names of a module, those in its `__all__`."""

Refuse = Callable[[str, str], TffcError]
"""Makes the error for a module and a name that it does not have."""


class StandIn(ModuleType):
    """A module whose names are those of other modules.

    An unknown name is refused with an error of ours, unless it is one that Python asks every module
    for.
    """

    def __init__(self, name: str, homes: Homes, refuse: Refuse) -> None:
        super().__init__(name)
        self.__homes = {
            name: home
            for home, names in homes.items()
            for name in names or importlib.import_module(home).__all__
        }
        self.__refuse = refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home = self.__homes.get(name)
        if home is None:
            raise self.__refuse(self.__name__, name)
        value = importlib.import_module(home)
        if not home.endswith(f".{name}"):
            value = getattr(value, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__homes})


class Mirror(ModuleType):
    """A package with the names of another module, and files of its own."""

    def __init__(self, name: str, mirrored: str) -> None:
        super().__init__(name)
        self.__mirrored = mirrored

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__mirrored), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__mirrored))


class MirrorLoader(importlib.abc.Loader):
    """Creates a mirror of a module, with its own version if given."""

    def __init__(self, mirrored: str, version: str | None = None) -> None:
        self._mirrored = mirrored
        self._version = version

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = Mirror(spec.name, self._mirrored)
        if self._version is not None:
            # Programs check the version to know which names they may use.
            vars(made)["__version__"] = self._version
        return made

    def exec_module(self, module: ModuleType) -> None:
        pass


class Loader(importlib.abc.Loader):
    """Creates a stand-in, which has no code to run."""

    def __init__(self, homes: Homes, refuse: Refuse) -> None:
        self._homes = homes
        self._refuse = refuse

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name, self._homes, self._refuse)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in(
    name: str, homes: Homes, refuse: Refuse, folders: Sequence[str] | None = None
) -> ModuleSpec:
    """Return the spec of a stand-in.

    With `folders` it is a package, whose other modules are files there.
    """
    spec = ModuleSpec(name, Loader(homes, refuse), is_package=folders is not None)
    if folders is not None:
        spec.submodule_search_locations = list(folders)
    return spec
