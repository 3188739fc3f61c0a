"""The import finder for modules under the name of TensorFlow Federated.

Each module is one of four: the top one, a mirror of tffc; a stand-in, whose names are tffc's; a
file of the installed wheel, which runs unchanged; or a package that only contains such modules.
Others are parts of TFF's core without a replacement, and are refused.
"""

from __future__ import annotations

import importlib.abc
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tffc.support.errors import (
    MissingElementError,
    MissingExtraError,
    MissingModuleError,
    TffcError,
)
from tffc.tff.former import with_former_names
from tffc.tff.names import LIBRARIES, MIRRORS, OWN_FILES, RELEASE, STAND_INS, WHEELS
from tffc.tff.stand_in import ALL, Creator, Homes, Mirror, StandIn

PACKAGE = "tensorflow_federated"
PYTHON = f"{PACKAGE}.python"

PIP = "pip install --no-deps --ignore-requires-python"
"""The command to install a wheel that requires older releases of Python and other packages."""


def _packages() -> frozenset[str]:
    """Return the packages that contain the modules of the tables."""
    packages: set[str] = set()
    for name in (*MIRRORS, *STAND_INS, *OWN_FILES):
        parts = name.split(".")
        packages.update(".".join(parts[:count]) for count in range(1, len(parts)))
    return frozenset(packages)


PACKAGES = _packages()


class CompatFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of TensorFlow Federated; the top one mirrors tffc."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of TFF; None for modules of other packages.

        Raises:
          MissingModuleError: it is a module of TFF's core that tffc does not replace.
          MissingExtraError: it is one of TFF's libraries, which are not installed, or in another
            release than the one that tffc replaces.
        """
        if name == PACKAGE:
            return _mirror(name, "tffc", f"{RELEASE}.0")
        if not name.startswith(f"{PACKAGE}."):
            return None
        if name in MIRRORS:
            return _mirror(name, MIRRORS[name])
        if name in STAND_INS or name in PACKAGES:
            return _stand_in(name, dict.fromkeys(STAND_INS.get(name, ()), ALL))
        if name in OWN_FILES or library_of(name) is not None:
            return _own_file(name)
        raise MissingModuleError(
            "E180",
            f"tffc replaces TFF's core, and has no module {name}",
            help="use what TFF documents: names that begin with `tff.`",
        )


def library_of(name: str) -> str | None:
    """Return the library of TFF, such as `learning`, that a module belongs to, or None."""
    first = name.removeprefix(f"{PYTHON}.").partition(".")[0]
    return first if name.startswith(f"{PYTHON}.") and first in LIBRARIES else None


def wheel_folders() -> list[str]:
    """Return the folders of the installed wheel; none if it is not installed."""
    spec = PathFinder.find_spec(PACKAGE)
    return [] if spec is None else list(spec.submodule_search_locations or ())


def installed_version() -> str | None:
    """Return the version of the installed wheel, or None if it is unknown."""
    try:
        return importlib.metadata.version("tensorflow-federated")
    except importlib.metadata.PackageNotFoundError:
        return None


def _mirror(name: str, mirrored: str, version: str | None = None) -> ModuleSpec:
    loader = Creator(lambda name: Mirror(name, mirrored, version))
    return ModuleSpec(name, loader, is_package=name in PACKAGES)


def _stand_in(name: str, homes: Homes) -> ModuleSpec:
    loader = Creator(lambda name: StandIn(name, homes, _no_name))
    return ModuleSpec(name, loader, is_package=name in PACKAGES)


def _own_file(name: str) -> ModuleSpec | None:
    """Return the spec of a module in the installed wheel, or None if it has no such file."""
    roots = wheel_folders()
    if not roots:
        raise MissingExtraError(
            "E181",
            f"{_shown(name)} is TFF's own, and TensorFlow Federated is not installed",
            help=f"pip install 'tffc[learning]' && {PIP} {' '.join(WHEELS)}",
        )
    installed = installed_version()
    if installed is not None and not f"{installed}.".startswith(f"{RELEASE}."):
        raise MissingExtraError(
            "E181",
            f"{_shown(name)} is TFF's own, and TensorFlow Federated {installed} is installed, but "
            f"tffc replaces the core of {RELEASE}",
            help=f"{PIP} {WHEELS[0]}",
        )
    inner = name.split(".")[1:-1]
    folders = [os.path.join(root, *inner) for root in roots]
    return with_former_names(PathFinder.find_spec(name, folders))


def _shown(name: str) -> str:
    library = library_of(name)
    return name if library is None else f"tff.{library}"


def _no_name(module: str, name: str) -> TffcError:
    return MissingElementError(
        "E180",
        f"tffc's replacement for {module} has no {name!r}",
        help="use what TFF documents: names that begin with `tff.`",
    )


def real_core_is_loaded() -> bool:
    """Return whether TensorFlow Federated itself, with its own core, was imported."""
    loaded = sys.modules.get(PACKAGE)
    return loaded is not None and not isinstance(loaded, Mirror)
