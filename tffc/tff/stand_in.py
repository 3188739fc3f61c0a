"""Modules without code, whose names are imported from other modules when they are first used."""

from __future__ import annotations

import importlib
import importlib.abc
import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tffc.support.errors import TffcError

Homes = Mapping[str, Sequence[str]]
"""Names, by the modules that define them."""

ALL: Sequence[str] = ()
"""All public names of a module, in a `Homes`."""

Refuse = Callable[[str, str], TffcError]
"""Makes the error for a module and a name that it does not have."""


class StandIn(ModuleType):
    """A module whose names are those of other modules.

    An unknown name is refused with an error of ours, unless it begins with an underscore, as names
    do that Python looks up in every module.
    """

    def __init__(self, name: str, homes: Homes, refuse: Refuse) -> None:
        super().__init__(name)
        self.__homes = homes
        self.__refuse = refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for home, names in self.__homes.items():
            if names == ALL or name in names:
                module = importlib.import_module(home)
                value = module if home.endswith(f".{name}") else getattr(module, name, None)
                if value is not None:
                    setattr(self, name, value)
                    return value
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise self.__refuse(self.__name__, name)

    def __dir__(self) -> list[str]:
        homes = self.__homes.items()
        names_of_homes = [names or dir(importlib.import_module(home)) for home, names in homes]
        public = (name for name in itertools.chain(*names_of_homes) if not name.startswith("_"))
        return sorted({*super().__dir__(), *public})


class Mirror(ModuleType):
    """A package with the names of another module, its own version if given, and files of its
    own."""

    def __init__(self, name: str, mirrored: str, version: str | None = None) -> None:
        super().__init__(name)
        self.__mirrored = mirrored
        if version is not None:
            # Programs check the version to know which names they may use.
            self.__version__ = version

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__mirrored), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__mirrored))


class Creator(importlib.abc.Loader):
    """Creates a module that has no code to run."""

    def __init__(self, create: Callable[[str], ModuleType]) -> None:
        self._create = create

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._create(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
