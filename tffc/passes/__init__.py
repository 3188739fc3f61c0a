"""Rewritings of programs that keep their type and what they compute, and pipelines of them."""

from __future__ import annotations

from tffc.passes.pipeline import Pass, Pipeline
from tffc.passes.pipeline_text import load_pipeline, parse_passes, parse_pipeline
from tffc.passes.plugins import with_plugins
from tffc.passes.table import PASSES

__all__ = [
    "PASSES",
    "Pass",
    "Pipeline",
    "load_pipeline",
    "parse_passes",
    "parse_pipeline",
    "with_plugins",
]
