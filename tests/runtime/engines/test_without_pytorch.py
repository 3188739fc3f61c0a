"""What PyTorch traced needs neither PyTorch nor JAX to be compiled, run, audited and proved."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from tests.processes import run_python

PROGRAM = """\
from collections import OrderedDict

import numpy as np
import tffc as tff
import torch

torch.manual_seed(1)
module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
weights = tff.torch.weights(module)
WEIGHTS = tff.to_type(tff.torch.types(weights.trained))
BATCH = tff.TensorType(np.float32, [2, 3])
DATA = tff.StructType([("x", BATCH), ("seed", np.int64)])
optimizer = tff.torch.sgd(0.1)


@tff.torch.computation(WEIGHTS, DATA)
def train(trained, data):
    def loss(trained):
        with tff.torch.draws(data["seed"]):
            return tff.torch.call(module, trained, data["x"]).square().mean()

    slopes, value = torch.func.grad_and_value(loss)(trained)
    return optimizer.step(trained, slopes, optimizer.first(trained))[0], value


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(DATA))
def learn(model, data):
    after, loss = tff.federated_map(train, (tff.federated_broadcast(model), data))
    return tff.federated_mean(after), tff.federated_mean(loss)
"""

TRACE = """\
import numpy as np
import program
import tffc

pathlib = __import__("pathlib")
pathlib.Path("program.pb").write_bytes(tffc.serialize_computation(program.learn))
np.savez("state.npz", **program.weights.trained)
"""

RUN = """\
import sys

ABSENT = ("torch", "torchax", "jax", "jaxlib")
sys.modules |= dict.fromkeys(ABSENT)
from collections import OrderedDict

import numpy as np
import tffc

bundle = tffc.compile("program.pb", form="mergeable")
saved = np.load("state.npz")
state = OrderedDict((name, saved[name]) for name in saved.files)
rows = np.float32([[1, 2, 3], [4, 5, 6]]) / 6
data = [OrderedDict(x=rows + n, seed=np.int64(n)) for n in range(3)]
losses = [float(each.output) for each in tffc.run(bundle, data, rounds=3, state=state, groups=2)]
print(losses[0] > losses[1] > 0, all(np.isfinite(losses)))
print(tffc.prove(bundle).is_proved)
print(type(tffc.audit("program.pb", form="mergeable")).__name__)
print({name.split(".")[0] for name in sys.modules if sys.modules[name]} & {*ABSENT})
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "torchax", "jax")),
    reason="PyTorch is not installed: pip install '.[torch]'",
)
def test_a_program_of_pytorch(tmp_path: pathlib.Path) -> None:
    for name, text in (("program.py", PROGRAM), ("trace.py", TRACE), ("rounds.py", RUN)):
        (tmp_path / name).write_text(text)
    run_python("trace.py", cwd=tmp_path, check=True)
    done = run_python("rounds.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("True True\nTrue\nReport\nset()\n", "")
