"""Rewritings of programs that keep their type and what they compute, and pipelines of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tffc.passes.call_dominant import call_dominant as call_dominant
from tffc.passes.pipeline import Pass as Pass
from tffc.passes.pipeline import Pipeline as Pipeline
from tffc.passes.plugins import with_plugins as with_plugins
from tffc.passes.table import PASSES as PASSES

if TYPE_CHECKING:
    from tffc.passes.pipeline_text import parse_passes as parse_passes
    from tffc.passes.pipeline_text import parse_pipeline as parse_pipeline


def __getattr__(name: str) -> Any:
    """Return a reader of pipelines, loaded on first use: the default pipeline needs none."""
    if name not in ("parse_passes", "parse_pipeline"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tffc.passes import pipeline_text

    return getattr(pipeline_text, name)
