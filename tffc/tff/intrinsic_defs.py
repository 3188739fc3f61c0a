"""The operators under the names that TFF has for them, such as `FEDERATED_SUM`."""

from __future__ import annotations

from tffc.language.intrinsics import INTRINSICS, IntrinsicDefinition
from tffc.language.intrinsics import definition_of as definition_of
from tffc.tff import building_blocks as building_blocks  # which gives operators TFF's names


def __getattr__(name: str) -> IntrinsicDefinition:
    definition = INTRINSICS.get(name.lower()) if name.isupper() else None
    if definition is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return definition
