"""Forms, the compilation of programs to forms, and bundles that hold them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tffc.backends.compiler import compile_bundle, compile_form, compile_initialize

__all__ = ["compile_bundle", "compile_form", "compile_initialize"]

MODULES = frozenset({"mapreduce", "native", "reference", "test"})
"""The modules that users access as `tff.backends.NAME`."""


def __getattr__(name: str) -> Any:
    """Return a module of TFF's names or a function of the compiler, imported on first use."""
    if name in MODULES:
        return importlib.import_module(f"tffc.tff.backends.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.compiler"), name)
