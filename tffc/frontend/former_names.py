"""Former names in TFF's API, and their names today."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any, NamedTuple


class Today(NamedTuple):
    """Today's name of a former one: the module and attribute that define it, and how users write
    it."""

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
"""Today's names by those of older releases, written without the leading `tff.`."""


def find(name: str) -> Any:
    """Return the object that a former name refers to, or None if it is not a former name.

    Gives a DeprecationWarning at the user's line that says today's name.
    """
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
    """Return how many frames above the caller of this function the user's code is."""
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
