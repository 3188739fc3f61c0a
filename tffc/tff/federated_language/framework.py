"""The names of `federated_language.framework`: parts of the core, for programs that extend it."""

from __future__ import annotations

from typing import Any

import tffc.tff.framework
import tffc.tff.structure
import tffc.tff.types
from tffc.frontend.conversion import infer_type as infer_type
from tffc.frontend.type_queries import contains as type_contains
from tffc.frontend.type_queries import contains_only as type_contains_only
from tffc.frontend.type_queries import count as type_count

__all__ = ["infer_type", "type_contains", "type_contains_only", "type_count"]


def __getattr__(name: str) -> Any:
    for home in (tffc.tff.framework, tffc.tff.types, tffc.tff.structure):
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module 'federated_language.framework' has no attribute {name!r}")
