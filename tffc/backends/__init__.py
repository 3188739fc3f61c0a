"""The forms, how a program becomes one, and bundles of them."""

from __future__ import annotations

import importlib
from typing import Any

from tffc.backends.compiler import compile_form
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import Form
from tffc.backends.forms.initialize import compile_initialize
from tffc.backends.forms.kinds import FORMS, computation_of, is_round
from tffc.backends.forms.map_reduce import MapReduceForm

__all__ = [
    "FORMS",
    "BroadcastForm",
    "DistributeAggregateForm",
    "Form",
    "MapReduceForm",
    "compile_form",
    "compile_initialize",
    "computation_of",
    "is_round",
]


def __getattr__(name: str) -> Any:
    """Return the module `mapreduce`, which needs the front end and so is loaded when it is used."""
    if name != "mapreduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("tffc.backends.mapreduce")
