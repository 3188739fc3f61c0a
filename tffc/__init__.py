"""A compiler of federated programs, which are written as for TFF after `import tffc as tff`.

Names are imported on first use, so importing the package costs nothing.  `__init__.pyi` declares
them, both for type checkers and for this module.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any

from tffc.version import VERSION

__version__ = VERSION


@functools.cache
def _homes() -> dict[str, str]:
    """Return the public names, each with the module or package that it comes from."""
    import ast
    import pkgutil

    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        value: Any = sorted(_homes())
    elif name in importlib.import_module("tffc.compat.names").LIBRARIES:
        value = importlib.import_module("tffc.compat.install").library(name)
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
    found = None
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        found = importlib.import_module("tffc.frontend.former_names").find(name)
    if found is None:
        raise _unknown(name)
    return found


def _unknown(name: str) -> AttributeError:
    message = f"module 'tffc' has no attribute {name!r}"
    if name.startswith("__") or importlib.util.find_spec(f"{__name__}.{name}") is not None:
        # Python looks up dunder names in every module, and a submodule's name before importing it.
        return AttributeError(message)
    from tffc.errors import MissingElementError
    from tffc.frontend import types
    from tffc.frontend.source import user_span
    from tffc.near import did_you_mean_by

    places = {"IterativeProcess": "templates.IterativeProcess"}
    places |= {each: f"types.{each}" for each in dir(types) if not each.startswith("_")}
    places |= {each: each for each in _homes()}
    help = did_you_mean_by(places, name)
    return MissingElementError("E469", message, help=help, span=user_span())


def __dir__() -> list[str]:
    return sorted([*_homes(), "__version__"])
