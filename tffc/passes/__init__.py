"""Rewritings of programs that keep their type and what they compute, and pipelines of them."""

from __future__ import annotations

from tffc.passes.call_dominant import call_dominant
from tffc.passes.desugar_means import desugar_means
from tffc.passes.drop_identity_maps import drop_identity_maps
from tffc.passes.drop_unused_bindings import drop_unused_bindings
from tffc.passes.lower_select import lower_select
from tffc.passes.normalize_all_equal import normalize_all_equal
from tffc.passes.pipeline import Pass, Pipeline
from tffc.passes.pipeline_text import parse_passes, parse_pipeline
from tffc.passes.plugins import with_plugins
from tffc.passes.share_equal_calls import share_equal_calls
from tffc.passes.strip_containers import strip_containers
from tffc.passes.table import PASSES
from tffc.passes.unique_names import unique_names

__all__ = [
    "PASSES",
    "Pass",
    "Pipeline",
    "call_dominant",
    "desugar_means",
    "drop_identity_maps",
    "drop_unused_bindings",
    "lower_select",
    "normalize_all_equal",
    "parse_passes",
    "parse_pipeline",
    "share_equal_calls",
    "strip_containers",
    "unique_names",
    "with_plugins",
]
