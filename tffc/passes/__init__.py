"""Rewritings of programs that keep their type and what they compute, and pipelines of them."""

from __future__ import annotations

from tffc.passes.call_dominant import call_dominant as call_dominant
from tffc.passes.pipeline import Pass as Pass
from tffc.passes.pipeline import Pipeline as Pipeline
from tffc.passes.pipeline_text import parse_passes as parse_passes
from tffc.passes.pipeline_text import parse_pipeline as parse_pipeline
from tffc.passes.plugins import with_plugins as with_plugins
from tffc.passes.table import PASSES as PASSES
