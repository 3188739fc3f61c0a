"""The recorded computations that `TFFC_CORPUS` points to, one folder each.

Every case holds a serialized computation that TensorFlow Federated 0.87 traced, what it printed,
which forms it compiled it to, and what it computed on a small round.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tffc.language import Node
from tffc.language.wire import from_bytes

ROOT = os.environ.get("TFFC_CORPUS")
MISSING = "TFFC_CORPUS does not name a folder of recorded computations"


@dataclasses.dataclass(frozen=True)
class Case:
    """One recorded computation."""

    folder: Path

    def __str__(self) -> str:
        return self.folder.name

    @functools.cached_property
    def meta(self) -> dict[str, Any]:
        return json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))

    @functools.cached_property
    def forms(self) -> dict[str, Any]:
        """What TFF made of each form: `ok`, the parts' types, or the error."""
        recorded = json.loads((self.folder / "forms.json").read_text(encoding="utf-8"))
        return recorded.get("forms", {})

    def program(self, name: str = "comp") -> Node:
        """The traced computation, or with `init` that of the first state."""
        return from_bytes((self.folder / f"{name}.pb").read_bytes())

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def rounds(self) -> Any:
        """The recorded rounds; see the reader that comes with the recordings."""
        return recordings().load(str(self.folder))


@functools.cache
def recordings() -> ModuleType:
    """The reader of recorded rounds that stands beside the cases."""
    assert ROOT is not None
    spec = importlib.util.spec_from_file_location("corpus_io", Path(ROOT) / "corpus_io.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases() -> list[Case]:
    """Every case, by name; none where there are no recordings."""
    if ROOT is None:
        return []
    return [Case(path.parent) for path in sorted(Path(ROOT).glob("*/comp.pb"))]


def each_case(chosen: Sequence[Case]) -> pytest.MarkDecorator:
    """Run a test with each case: with every fourth, from the first, in the quick tests."""
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=str(case), marks=[pytest.mark.slow] if place % 4 else [])
            for place, case in enumerate(chosen)
        ],
    )
