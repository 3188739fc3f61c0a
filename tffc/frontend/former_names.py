"""Names that TFF had for parts of its API, and what they are called today."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any, NamedTuple


class Today(NamedTuple):
    """What a former name is today: the module and name that have it, and how users write it."""

    module: str
    name: str
    written: str


_OPERATORS = "tffc.frontend.operators"
_TYPES = "tffc.ir.types"
_TEMPLATES = "tffc.frontend.templates"

FORMER: dict[str, Today] = {
    "NamedTupleType": Today(_TYPES, "StructType", "tff.StructType"),
    "NamedTupleTypeWithPyContainerType": Today(
        _TYPES, "StructWithPythonType", "tff.StructWithPythonType"
    ),
    "experimental.jax_computation": Today(
        "tffc.frontend.computation", "jax_computation", "tff.jax.computation"
    ),
    "federated_apply": Today(_OPERATORS, "federated_map", "tff.federated_map"),
    "federated_collect": Today(
        "tffc.frontend.former_operators", "federated_collect", "tff.federated_aggregate"
    ),
    "federated_reduce": Today(
        "tffc.frontend.former_operators", "federated_reduce", "tff.federated_aggregate"
    ),
    "type_at_clients": Today(_TYPES, "at_clients", "tff.types.at_clients"),
    "type_at_server": Today(_TYPES, "at_server", "tff.types.at_server"),
    "utils.IterativeProcess": Today(
        _TEMPLATES, "IterativeProcess", "tff.templates.IterativeProcess"
    ),
    "utils.update_state": Today(
        "tffc.frontend.structure", "update_struct", "tff.structure.update_struct"
    ),
}
"""Today's names by those of older releases, without the `tff.` before them."""


def find(name: str) -> Any:
    """Return what a former name stood for, with a DeprecationWarning at the user's line that says
    today's name; None for any other name."""
    if name in ("experimental", "utils"):
        return _Former(name)
    today = FORMER.get(name)
    if today is None:
        return None
    warnings.warn(
        f"tff.{name} is now {today.written}", DeprecationWarning, stacklevel=_calls_of_ours()
    )
    return getattr(importlib.import_module(today.module), today.name)


def _calls_of_ours() -> int:
    """Return how far above the caller of this function the code of a user is."""
    frame, calls = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == "tffc":
        frame, calls = frame.f_back, calls + 1
    return calls


class _Former(ModuleType):
    """A module of older releases, such as `tff.utils`."""

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") else find(f"{self.__name__}.{name}")
        if found is None:
            raise AttributeError(f"module 'tff.{self.__name__}' has no attribute {name!r}")
        return found
