"""Writes down the public names of TFF 0.87: `python -m tests.tff.names`, where it is installed.

They are kept in `recorded/names.json`.
"""

from __future__ import annotations

import json
import pathlib
from types import ModuleType

NAMES = pathlib.Path(__file__).parent / "recorded" / "names.json"

TOP = "tensorflow_federated"
INSIDE = ("python", "proto")
"""Packages at the top that hold the files, and are not names for users."""


def public_names(module: ModuleType, path: str) -> list[str]:
    """Return the names in a public module and in those below it, sorted.

    A file of a package is not one of its names, although Python shows it as an attribute, and
    neither is what a file imports.
    """
    found = []
    for name in sorted(vars(module)):
        value = getattr(module, name)
        if name.startswith("_") or (path == "tff" and name in INSIDE):
            continue
        if not isinstance(value, ModuleType):
            if is_its_own(value, module):
                found.append(f"{path}.{name}")
            continue
        is_package = hasattr(value, "__path__")
        is_file = value.__name__ == f"{module.__name__}.{name}" and not is_package
        if value.__name__.startswith(TOP) and hasattr(module, "__path__") and not is_file:
            found += public_names(value, f"{path}.{name}")
    return found


def is_its_own(value: object, module: ModuleType) -> bool:
    """Whether a name of a module is meant for users: in a package all are, in a file its own."""
    return hasattr(module, "__path__") or getattr(value, "__module__", None) == module.__name__


def main() -> None:
    # Only where it is installed.
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

    NAMES.write_text(json.dumps(public_names(tff, "tff"), indent=0) + "\n")


if __name__ == "__main__":
    main()
