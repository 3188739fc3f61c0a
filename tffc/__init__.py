"""A compiler of federated programs, which are written as for TFF after `import tffc as tff`.

Names are imported on first use, so importing the package costs nothing: not even other modules of
Python, for until the command line has begun, Python itself answers Ctrl-C.  `__init__.pyi` declares
the names, both for type checkers and for this module.
"""

from __future__ import annotations

import sys

from tffc.support.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = VERSION

_known_homes: dict[str, str] = {}


def _homes() -> dict[str, str]:
    """Return the public names, each with the module or package that it comes from."""
    if not _known_homes:
        import ast
        import pkgutil

        stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        _known_homes.update(
            {alias.name: node.module or "" for node in imports for alias in node.names}
        )
    return _known_homes


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__all__":
        value: Any = sorted(_homes())
    elif name in importlib.import_module("tffc.tff.names").LIBRARIES:
        # Not kept: a process can use the libraries of two releases.
        return importlib.import_module("tffc.tff.install").library(name)
    elif name.startswith("__") or name not in _homes():
        return _former(name)
    else:
        value = importlib.import_module(_homes()[name])
        if hasattr(value, "__path__"):
            value = importlib.import_module(f"{value.__name__}.{name}")
        else:
            value = getattr(value, name)
    globals()[name] = value
    return value


def _former(name: str) -> Any:
    """Return the value of a name that an older TFF had."""
    import importlib
    import importlib.util

    value = None
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        value = importlib.import_module("tffc.tff.former_names").find(name)
    if value is None:
        raise _unknown(name)
    return value


def _unknown(name: str) -> AttributeError:
    import importlib.util

    message = f"module 'tffc' has no attribute {name!r}"
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is not None:
        # Python looks up dunder names in every module, and a submodule's name before importing it.
        return AttributeError(message)
    from tffc.runtime.user_code.source import user_span
    from tffc.support.errors import MissingElementError
    from tffc.support.near import did_you_mean_by
    from tffc.tff import types

    places = {"IterativeProcess": "templates.IterativeProcess"}
    places |= {member: f"types.{member}" for member in dir(types) if not member.startswith("_")}
    places |= {home: home for home in _homes()}
    help = did_you_mean_by(places, name)
    return MissingElementError("E469", message, help=help, span=user_span())


def __dir__() -> list[str]:
    return sorted([*_homes(), "__version__"])


class _LastFinder:
    """Explains why TensorFlow Federated's own core fails, where tffc has not taken its name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Find nothing.

        Raises:
          MissingModuleError: TensorFlow Federated itself looks for what today's TensorFlow lacks.
        """
        if name == "tensorflow_estimator" and "tensorflow_federated" in sys.modules:
            from tffc.tff.install import refuse_real_core

            refuse_real_core(name)


sys.meta_path.append(_LastFinder())
