"""The forms, how a program becomes one, and bundles of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tffc.backends.compiler import compile_form, compile_initialize

__all__ = ["compile_form", "compile_initialize"]

MODULES = frozenset({"mapreduce", "native", "reference", "test"})
"""The modules here that users write as `tff.backends.NAME`."""


def __getattr__(name: str) -> Any:
    """Return what this room offers under a name, from a module that is loaded when it is used."""
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.compiler"), name)
