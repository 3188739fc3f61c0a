"""Rounds of programs without TensorFlow graphs need no TensorFlow."""

from __future__ import annotations

import pathlib

import pytest

from tests.processes import run_python

PROGRAM = """\
import jax.numpy as jnp
import numpy as np
import tffc as tff

VECTOR = tff.TensorType(np.float32, [3])


@tff.jax_computation(np.float32, VECTOR)
def change(model, data):
    return jnp.mean(data) - model


@tff.jax_computation(np.float32, np.float32)
def step(model, change):
    return model + change


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(VECTOR))
def train(model, data):
    changes = tff.federated_map(change, (tff.federated_broadcast(model), data))
    mean = tff.federated_mean(changes)
    return tff.federated_map(step, (model, mean)), mean
"""

SCRIPT = """\
import sys

sys.modules["tensorflow"] = None
import numpy as np
import tffc

bundle = tffc.compile("program.py:train", form="mergeable")
data = [np.float32([1, 2, 3]), np.float32([4, 5, 6]), np.float32([7, 8, 9])]
run = tffc.run(bundle, data, rounds=2, state=np.float32(0), groups=2)
print([(round(float(each.output), 4), round(float(each.state), 4)) for each in run])
print(tffc.prove(bundle).is_proved)
"""


@pytest.mark.slow
def test_a_program_of_jax(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run_python("script.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[(5.0, 5.0), (0.0, 5.0)]\nTrue\n", "")
