"""Rewritings of programs that keep their type and what they compute, and pipelines of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tffc.passes.call_dominant import call_dominant as call_dominant
from tffc.passes.pipeline import Pass as Pass
from tffc.passes.pipeline import Pipeline as Pipeline

if TYPE_CHECKING:
    from tffc.passes.pipeline_text import parse_passes as parse_passes
    from tffc.passes.pipeline_text import parse_pipeline as parse_pipeline
    from tffc.passes.plugins import with_plugins as with_plugins
    from tffc.passes.table import PASSES as PASSES

_MODULES = {
    "PASSES": "table",
    "parse_passes": "pipeline_text",
    "parse_pipeline": "pipeline_text",
    "with_plugins": "plugins",
}
"""The modules that define the other names.  They are loaded at first use: diffs use one pass, and
compiling reads no pipeline unless one is given."""


def __getattr__(name: str) -> Any:
    """Return the object of this name, loading the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
