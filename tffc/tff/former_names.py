"""Former names in TFF's API, and their names today."""

from __future__ import annotations

import importlib
import inspect
import operator
import warnings
from types import ModuleType
from typing import Any

FORMER = {
    "NamedTupleType": "StructType",
    "NamedTupleTypeWithPyContainerType": "StructWithPythonType",
    "experimental.jax_computation": "jax.computation",
    "federated_apply": "federated_map",
    "federated_collect": "federated_aggregate",
    "federated_reduce": "federated_aggregate",
    "type_at_clients": "types.at_clients",
    "type_at_server": "types.at_server",
    "utils.IterativeProcess": "templates.IterativeProcess",
    "utils.update_state": "structure.update_struct",
}
"""Today's names by those of older releases, all written without the leading `tff.`."""

OPERATORS = ("federated_collect", "federated_reduce")
"""Former names of operators that today's replace, but do not equal: see `former_operators`."""


def find(name: str) -> Any:
    """Return the object that a former name refers to, or None if it is not a former name.

    Gives a DeprecationWarning at the user's line that says today's name.
    """
    if name in ("experimental", "utils"):
        return _Former(name)
    today = FORMER.get(name)
    if today is None:
        return None
    warnings.warn(f"tff.{name} is now tff.{today}", DeprecationWarning, stacklevel=calls_of_ours())
    if name in OPERATORS:
        return getattr(importlib.import_module("tffc.tff.former_operators"), name)
    return operator.attrgetter(today)(importlib.import_module("tffc"))


def calls_of_ours() -> int:
    """Return how many frames above the caller of this function the user's code is."""
    frame, calls = inspect.currentframe(), 0
    while frame is not None and frame.f_back is not None:
        if frame.f_globals["__name__"].partition(".")[0] != "tffc":
            break
        frame, calls = frame.f_back, calls + 1
    return calls


class _Former(ModuleType):
    """A module of older releases, such as `tff.utils`."""

    def __getattr__(self, name: str) -> Any:
        value = None if name.startswith("__") else find(f"{self.__name__}.{name}")
        if value is None:
            raise AttributeError(f"module 'tff.{self.__name__}' has no attribute {name!r}")
        return value
