"""The names of `federated_language.framework`: parts of the core, for programs that extend it."""

from __future__ import annotations

import importlib
from typing import Any

RENAMED = {
    "computation_count": ("tffc.tff.federated_language.analysis", "count"),
    "type_contains": ("tffc.frontend.type_queries", "contains"),
    "type_contains_only": ("tffc.frontend.type_queries", "contains_only"),
    "type_count": ("tffc.frontend.type_queries", "count"),
}
"""Names that tffc has under others: their modules, and the names there."""

HOMES = (
    "tffc.tff.framework",
    "tffc.tff.federated_language.analysis",
    "tffc.tff.intrinsic_defs",
    "tffc.tff.federated_language.tracing",
    "tffc.frontend.execution",
    "tffc.frontend.conversion",
    "tffc.frontend.type_conversions",
    "tffc.frontend.type_queries",
    "tffc.frontend.type_analysis",
    "tffc.language.type_base",
    "tffc.frontend.computation",
    "tffc.support.errors",
    "tffc.tff.type_instances",
    "tffc.tff.cardinalities",
    "tffc.tff.test",
    "tffc.tff.types",
    "tffc.tff.structure",
)
"""The modules that have the others."""


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        home, own = RENAMED[name]
        return getattr(importlib.import_module(home), own)
    if not name.startswith("_"):
        for home in HOMES:
            module = importlib.import_module(home)
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'federated_language.framework' has no attribute {name!r}")
