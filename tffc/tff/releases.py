"""The releases of TensorFlow Federated whose libraries run on tffc, and where their files are.

A process can use two releases: a module that tffc loads gets the one that it was written for, and
`choose` exchanges the modules under TFF's name.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from types import ModuleType

from tffc.support.errors import MissingExtraError
from tffc.support.extras import installation

PACKAGE = "tensorflow_federated"
LANGUAGE_PACKAGE = "federated_language"

SOURCE = "TFFC_TFF_SOURCE"
"""The environment variable with the folders of checkouts, which worker processes inherit."""

CHECKOUTS = ("tensorflow-federated", "federated")
"""The names that a folder with a checkout has after `git clone`, now and formerly."""

PIP = "pip install --no-deps --ignore-requires-python"
"""The command to install a wheel that requires older releases of Python and other packages."""

REPOSITORY = "https://github.com/google-parfait/tensorflow-federated"

LANGUAGE_FILE = os.path.join("python", "core", "impl", "types", "computation_types.py")
"""A file of releases whose language is not in `federated_language`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """A release: how messages call it, and how its libraries are installed."""

    title: str
    install: str


WHEELS = (
    "tensorflow-federated==0.87.0",
    "tensorflow-privacy==0.9.0",
    "tensorflow-model-optimization==0.8.0",
)
"""The requirements that install the libraries of 0.87, and those dependencies of theirs that
require old releases of others."""

WHEEL = Release("TFF 0.87", f"{installation('learning')} && {PIP} {' '.join(WHEELS)}")
"""The last release on the package index: the language is in `tensorflow_federated`."""

HEAD = Release(
    "today's TFF",
    f"{installation('learning')} && git clone {REPOSITORY}, and set {SOURCE} to the folder",
)
"""What its repository holds since 2025: the language is in `federated_language`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Libraries:
    """The files of TFF: their folder, named `tensorflow_federated`, and their release.

    It is None for a release whose libraries do not run on tffc.
    """

    folder: str
    version: str | None
    release: Release | None


class ReleaseInUse:
    """The release that modules get under TFF's name, and the modules of the other one."""

    def __init__(self) -> None:
        self.release: Release | None = None
        self.modules: dict[Release, dict[str, ModuleType]] = {}


_in_use = ReleaseInUse()

LANGUAGE = re.compile(
    r"CLIENTS|SERVER|(?:Federated|Function|Sequence|Struct|StructWithPython|Tensor)Type|"
    r"federated_\w+|sequence_\w+|to_type|to_value|type_at_\w+|types|tf_computation"
)
"""The names that `tensorflow_federated` had for the language."""


def written_for(text: str) -> Release | None:
    """Return the release for which a module was written, from its text: whose language it uses.

    It is None for a module that uses the language of neither, or is not valid Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    imports = list(_imports(nodes))
    if any(package == LANGUAGE_PACKAGE for package, _, _ in imports):
        return HEAD
    of_tff = [(own, name) for package, own, name in imports if package == PACKAGE]
    modules = {own for own, name in of_tff if name is None}
    names = {name for _, name in of_tff if name is not None}
    names.update(
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
    )
    return WHEEL if any(map(LANGUAGE.fullmatch, names)) else None


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str, str | None]]:
    """Yield for each import the package, the module's own name for what it imports, and which name
    of a module that is; None for a module itself."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                yield package, alias.asname or package, None
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module.partition(".")[0], alias.asname or alias.name, alias.name


def chosen() -> Release | None:
    """Return the release whose modules are under TFF's name, None if that is open."""
    return _in_use.release


def choose(release: Release | None) -> None:
    """Let TFF's name give a release from now on; None changes nothing.

    The modules of the other one stay with those that have imported them.
    """
    if release is None or release is _in_use.release:
        return
    if _in_use.release is not None:
        names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
        _in_use.modules[_in_use.release] = {name: sys.modules.pop(name) for name in names}
        sys.modules.update(_in_use.modules.pop(release, {}))
    _in_use.release = release


def version() -> str:
    """Return the version that TFF's name has: of 0.87, unless another release is chosen."""
    if _in_use.release is HEAD:
        for candidate in _candidates():
            if candidate.release is HEAD and candidate.version is not None:
                return candidate.version
    return "0.87.0"


def use_source(folder: str) -> None:
    """Take TFF's libraries from a checkout, also in processes that this one starts.

    It comes before those that the environment names.

    Raises:
      MissingExtraError: the folder has none.
    """
    _package_in(folder)
    others = os.environ.get(SOURCE)
    os.environ[SOURCE] = os.pathsep.join(filter(None, (os.path.abspath(folder), others)))


def libraries(shown: str) -> Libraries:
    """Return the libraries of the chosen release; of any, if none is chosen.

    `shown` is what messages call the one that is needed, such as `tff.learning`.

    Raises:
      MissingExtraError: they are not there, or only those of another release.
    """
    candidates = list(_candidates())
    wanted = _in_use.release
    for candidate in candidates:
        if candidate.release is not None and candidate.release is (wanted or candidate.release):
            choose(candidate.release)
            return candidate
    if wanted is WHEEL and os.environ.get(SOURCE):
        # Today's libraries compute the same on the language of 0.87, and the user names them.
        for candidate in candidates:
            if candidate.release is HEAD:
                return candidate
    raise _missing(shown, wanted, candidates)


def installed() -> Libraries | None:
    """Return the files of TFF that Python itself would import, or None."""
    spec = PathFinder.find_spec(PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return _libraries(folders[0], is_installed=True) if folders else None


def _candidates() -> Iterator[Libraries]:
    """Yield the files of TFF: those that the user names, the installed ones, and checkouts in the
    current folder and beside it."""
    for folder in filter(None, os.environ.get(SOURCE, "").split(os.pathsep)):
        yield _libraries(_package_in(folder))
    wheel = installed()
    if wheel is not None:
        yield wheel
    for folder in (os.curdir, os.pardir):
        for name in CHECKOUTS:
            path = os.path.join(os.path.abspath(folder), name, PACKAGE)
            if os.path.isdir(path):
                yield _libraries(path)


def _package_in(folder: str) -> str:
    """Return the folder of the package in a checkout that the user names.

    Raises:
      MissingExtraError: it has none.
    """
    path = os.path.join(os.path.abspath(folder), PACKAGE)
    if not os.path.isdir(os.path.join(path, "python")):
        raise MissingExtraError(
            "E181",
            f"{folder} is no checkout of TensorFlow Federated: it has no folder {PACKAGE}/python",
            help=f"git clone {REPOSITORY}, and set {SOURCE} to the folder",
        )
    return path


def _libraries(folder: str, *, is_installed: bool = False) -> Libraries:
    version = _installed_version() if is_installed else None
    if version is None:
        version = _stated_version(folder)
    if not os.path.exists(os.path.join(folder, LANGUAGE_FILE)) and not _is_bare(folder):
        return Libraries(folder, version, HEAD)
    is_known = version is None or f"{version}.".startswith("0.87.")
    return Libraries(folder, version, WHEEL if is_known else None)


def _is_bare(folder: str) -> bool:
    """Return whether a folder has none of TFF's core, as no release of any kind."""
    return not os.path.isdir(os.path.join(folder, "python", "core"))


def _installed_version() -> str | None:
    try:
        return importlib.metadata.version("tensorflow-federated")
    except importlib.metadata.PackageNotFoundError:
        return None


def _stated_version(folder: str) -> str | None:
    """Return the version that the files state, or None."""
    path = os.path.join(folder, "version.py")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", file.read(), re.MULTILINE)
    return None if match is None else match[1]


def _missing(shown: str, wanted: Release | None, candidates: list[Libraries]) -> MissingExtraError:
    unknown = next((each for each in candidates if each.release is None), None)
    if wanted is HEAD:
        reason = (
            "there is no checkout of today's TFF, for which this program was written: it imports "
            "federated_language"
        )
    elif unknown is not None:
        reason = (
            f"TensorFlow Federated {unknown.version} is there, but tffc runs the libraries of 0.87 "
            "and of today's"
        )
    else:
        reason = "TensorFlow Federated is not installed"
    help = f"{PIP} {WHEELS[0]}" if unknown is not None else (wanted or WHEEL).install
    return MissingExtraError("E181", f"{shown} is TFF's own, and {reason}", help=help)
