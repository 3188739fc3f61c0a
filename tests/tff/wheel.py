"""Whether TFF's own libraries can run here: its wheel, and what they import."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from types import ModuleType
from typing import Any

import pytest

import tffc
from tffc.tff import releases

NEEDED = (
    "attrs",
    "cachetools",
    "dp_accounting",
    "portpicker",
    "tensorflow_model_optimization",
    "tensorflow_privacy",
    "tensorflow_probability",
    "tree",
)


def has_wheel() -> bool:
    """Whether the wheel of TFF 0.87 is installed."""
    installed = releases.installed()
    return installed is not None and installed.release is releases.WHEEL


ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]

needs_wheel = pytest.mark.skipif(
    bool(ABSENT) or not has_wheel(),
    reason="needs the wheel tensorflow-federated==0.87.0 and what it imports",
)


@functools.cache
def programs() -> ModuleType:
    """The module of programs, which imports TFF's libraries over tffc."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tffc.install_as_tensorflow_federated()
        releases.choose(releases.WHEEL)
        return importlib.import_module("tests.tff.programs")


@functools.cache
def program(name: str) -> Any:
    return programs().all_programs()[name]()
