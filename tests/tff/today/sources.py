"""Whether programs of today's TFF can run here: a checkout, and what its libraries import."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import warnings
from types import ModuleType

import pytest

from tffc.runtime.user_code.modules import import_source
from tffc.tff import releases

NEEDED = ("attrs", "dp_accounting", "federated_language", "tree")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]


def has_checkout() -> bool:
    """Whether the environment names a checkout of today's TFF."""
    folders = filter(None, os.environ.get(releases.SOURCE, "").split(os.pathsep))
    return any(
        pathlib.Path(folder, releases.PACKAGE).is_dir()
        and not pathlib.Path(folder, releases.PACKAGE, releases.LANGUAGE_FILE).exists()
        for folder in folders
    )


needs_checkout = pytest.mark.skipif(
    bool(ABSENT) or not has_checkout(),
    reason=f"needs a checkout of today's TFF in {releases.SOURCE}, and what it imports",
)


@functools.cache
def module(name: str) -> ModuleType:
    """A module of programs beside this one, loaded as tffc loads users' modules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_source(str(pathlib.Path(__file__).with_name(f"{name}.py")))
