"""Programs with Keras models compute over tffc, as they are and as bundles, what TFF 0.87 computed.

TFF's library knows Keras 2 only, so they run in a process of their own where `tf.keras` is that.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest

from tests.tff.test_forms import bundle_differences
from tests.tff.test_programs import ANSWERS, OF_KERAS, differences
from tests.tff.wheel import needs_wheel, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    pytest.mark.skipif(
        importlib.util.find_spec("tf_keras") is None,
        reason="Keras 2 is not installed: pip install tf_keras",
    ),
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

FEW = ("keras: keras_fed_avg", "keras: keras_fed_avg_normalizing", "keras: keras_recon")
REST = tuple(name for name in OF_KERAS if name not in FEW)


@functools.cache
def computed(names: Sequence[str]) -> dict[str, Any]:
    """What the programs give in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "answers.json"
        subprocess.run(
            [sys.executable, "-m", "tests.tff.record", "--tffc", "--out", str(out), *names],
            env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
            cwd=pathlib.Path(__file__).parents[2],
            check=True,
            capture_output=True,
        )
        return json.loads(out.read_text())


@pytest.mark.parametrize("name", FEW)
def test_program(name: str) -> None:
    check(name, computed(FEW))


@pytest.mark.long
@pytest.mark.parametrize("name", REST)
def test_program_of_the_rest(name: str) -> None:
    check(name, computed(REST))


def check(name: str, answers: dict[str, Any]) -> None:
    found = answers[name]
    assert "refused" not in found, found
    expected = ANSWERS.get(name, found)
    assert differences(found, expected, (), 1e-4) == []
    known = programs().Program(None, ())
    for rounds in (found["bundles"] or {}).values():
        assert bundle_differences(rounds, expected["rounds"], known) == []
