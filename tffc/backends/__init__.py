"""The forms, how a program becomes one, bundles of them, and what runs them."""

from __future__ import annotations

import importlib
from typing import Any

from tffc.backends.compiler import FORMS, compile_form, is_round
from tffc.backends.forms.decompile import computation_of
from tffc.backends.forms.form import BroadcastForm, DistributeAggregateForm, Form, MapReduceForm
from tffc.backends.forms.initialize import compile_initialize

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
    """Gives the module `mapreduce`, which needs the front end and so is loaded when it is used."""
    if name != "mapreduce":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("tffc.backends.mapreduce")
