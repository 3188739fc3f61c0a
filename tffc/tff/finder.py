"""The import finders for modules under the names of TensorFlow Federated and its language.

Each module is one of four: the top one, a mirror of tffc; a stand-in, whose names are tffc's; a
file of the package itself, which runs unchanged; or a package that only contains such modules.
Others are parts of the core without a replacement, and are refused.
"""

from __future__ import annotations

import importlib
import importlib.abc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from tffc.support.errors import (
    MissingElementError,
    MissingExtraError,
    MissingModuleError,
    TffcError,
)
from tffc.support.extras import installation
from tffc.tff import releases
from tffc.tff.former import with_former_names
from tffc.tff.language_names import FEDERATED_LANGUAGE, LANGUAGE_RELEASE
from tffc.tff.names import LIBRARIES, TENSORFLOW_FEDERATED
from tffc.tff.package import Package
from tffc.tff.stand_in import ALL, Creator, Homes, Mirror, StandIn

PYTHON = f"{TENSORFLOW_FEDERATED.name}.python"


class SharingLoader(SourceFileLoader):
    """Loads a module of a package's own files, and puts names of tffc in place of its own."""

    def __init__(self, name: str, path: str, homes: Mapping[str, str]) -> None:
        super().__init__(name, path)
        self._homes = homes

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, home in self._homes.items():
            setattr(module, name, getattr(importlib.import_module(home), name))


class PackageFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of a package; the top one mirrors a module of tffc."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self._packages = package.packages()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the package; None for modules of other packages.

        Raises:
          MissingModuleError: it is a module of the core that tffc does not replace.
          MissingExtraError: it is one of the libraries, which are not there, or in another
            release than those that tffc runs.
        """
        package = self.package
        if not package.holds(name):
            return None
        if name == package.name:
            return self._top(name)
        if name in package.mirrors:
            return self._mirror(name, package.mirrors[name])
        if name in package.own_files or package.library_of(name) is not None:
            return self._own_file(name)
        if name in package.stand_ins or name in self._packages:
            return self._stand_in(name, dict.fromkeys(package.stand_ins.get(name, ()), ALL))
        raise MissingModuleError(
            "E180",
            f"tffc replaces TFF's core, and has no module {name}",
            help="use what TFF documents: names that begin with `tff.`",
        )

    def _top(self, name: str) -> ModuleSpec:
        return self._mirror(name, self.package.mirrored, self._version())

    def _mirror(self, name: str, mirrored: str, version: str | None = None) -> ModuleSpec:
        loader = Creator(lambda name: Mirror(name, mirrored, version))
        return ModuleSpec(name, loader, is_package=name in self._packages)

    def _stand_in(self, name: str, homes: Homes) -> ModuleSpec:
        loader = Creator(lambda name: StandIn(name, homes, _no_name))
        return ModuleSpec(name, loader, is_package=name in self._packages)

    def _own_file(self, name: str) -> ModuleSpec | None:
        """Return the spec of a module in the package's files, or None if they do not have it."""
        folder = os.path.join(self._folder(name), *name.split(".")[1:-1])
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None and name in self.package.shared:
            spec.loader = SharingLoader(name, spec.origin or "", self.package.shared[name])
        return spec

    def _version(self) -> str:
        """Return what the package says is its version."""
        raise NotImplementedError

    def _folder(self, name: str) -> str:
        """Return the folder of the package's own files, for a module that is needed.

        Raises:
          MissingExtraError: there is none.
        """
        raise NotImplementedError


class TopMirror(Mirror):
    """`tensorflow_federated` itself, with the libraries of the release for which the module that
    imports it was written."""

    def __init__(self, name: str, version: str, release: releases.Release | None) -> None:
        super().__init__(name, TENSORFLOW_FEDERATED.mirrored, version)
        self.__release = release

    def __getattr__(self, name: str) -> Any:
        if name not in LIBRARIES:
            return super().__getattr__(name)
        releases.choose(self.__release)
        library = super().__getattr__(name)
        self.__release = releases.chosen()
        return library


class TffFinder(PackageFinder):
    """Finds the modules of `tensorflow_federated`, of the release that is chosen."""

    def __init__(self) -> None:
        super().__init__(TENSORFLOW_FEDERATED)

    def _version(self) -> str:
        return releases.version()

    def _folder(self, name: str) -> str:
        library = self.package.library_of(name)
        shown = name if library is None else f"tff.{library.rpartition('.')[2]}"
        return releases.libraries(shown).folder

    def _top(self, name: str) -> ModuleSpec:
        release = releases.chosen()
        loader = Creator(lambda name: TopMirror(name, self._version(), release))
        return ModuleSpec(name, loader, is_package=True)

    def _own_file(self, name: str) -> ModuleSpec | None:
        spec = super()._own_file(name)
        return spec if releases.chosen() is releases.HEAD else with_former_names(spec)


class LanguageFinder(PackageFinder):
    """Finds the modules of `federated_language`; the first program that imports it is one of
    today's TFF."""

    def __init__(self) -> None:
        super().__init__(FEDERATED_LANGUAGE)

    def _top(self, name: str) -> ModuleSpec:
        if releases.chosen() is None:
            releases.choose(releases.HEAD)
        return super()._top(name)

    def _version(self) -> str:
        return LANGUAGE_RELEASE

    def _folder(self, name: str) -> str:
        spec = PathFinder.find_spec(self.package.name)
        folders = [] if spec is None else list(spec.submodule_search_locations or ())
        if not folders:
            raise MissingExtraError(
                "E181",
                f"{name} is the package's own, and federated_language is not installed",
                help=installation("learning"),
            )
        return folders[0]


def _no_name(module: str, name: str) -> TffcError:
    return MissingElementError(
        "E180",
        f"tffc's replacement for {module} has no {name!r}",
        help="use what TFF documents: names that begin with `tff.`",
    )


def real_core_is_loaded(package: str = TENSORFLOW_FEDERATED.name) -> bool:
    """Return whether a package itself, with its own core, was imported."""
    loaded = sys.modules.get(package)
    return loaded is not None and not isinstance(loaded, Mirror)
