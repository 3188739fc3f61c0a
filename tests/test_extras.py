"""Each extra in an environment that has it and no other, doing what it is for; and without it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator

import pytest

from tests.processes import ROOT
from tffc.deploy.nvflare.job_folder import CONTROLLER, EXECUTOR

pytestmark = pytest.mark.long

COMPILE = """\
rm -rf mean
tffc compile examples/temperature/temperature.py:mean_temperature --form mapreduce --out mean
"""
ROUND = "tffc run mean --data examples/temperature/sensors --rounds 1"

WRITE_PARQUET = """\
python -c '
import pyarrow, pyarrow.parquet
rows = {"client": ["a", "b"], "degrees": pyarrow.array([1, 2], pyarrow.float32())}
pyarrow.parquet.write_table(pyarrow.table(rows), "rows.parquet")
'
"""
READ_PARQUET = "tffc data describe 'parquet:rows.parquet?columns=degrees' --for mean"

JAX = """\
cat > doubled.py <<'end'
import numpy as np
import tffc as tff

@tff.jax_computation(np.float32)
def doubled(x):
    return x + x

if __name__ == "__main__":
    print(doubled(21.0))
end
python doubled.py
"""

LEARNING = """\
pip install --quiet --no-deps --ignore-requires-python \\
    tensorflow-federated==0.87.0 tensorflow-privacy==0.9.0 tensorflow-model-optimization==0.8.0
cat > mean.py <<'end'
import numpy as np
import tensorflow_federated as tff

mean = tff.aggregators.MeanFactory().create(tff.TensorType(np.float32), tff.TensorType(np.float32))
end
tffc compile mean.py:mean --form mapreduce --out build/mean
cat > today.py <<'end'
import asyncio

import federated_language
import numpy as np

manager = federated_language.program.MemoryReleaseManager()
asyncio.run(manager.release(np.int32(7), key=1))
print(manager.values())
end
tffc python today.py
"""

TORCH = """\
cat > doubled.py <<'end'
import numpy as np
import tffc as tff

@tff.torch_computation(np.float32)
def doubled(x):
    return x + x

if __name__ == "__main__":
    print(doubled(21.0))
end
python doubled.py
"""

OFFLINE = "export MLFLOW_DISABLE_TELEMETRY=true WANDB_MODE=offline\n"

READ_MLFLOW = """\
python -c '
import mlflow
[run] = mlflow.search_runs(experiment_names=["tffc"], output_format="list")
assert run.info.status == "FINISHED" and run.data.metrics["round/clients"] == 12, run
'
"""

METRICS = f"""\
{COMPILE}export TFFC_METRICS=counts
{ROUND}
python -m tffc.deploy.operations & endpoint=$!
trap 'kill $endpoint' EXIT
python -c '
import time, urllib.request
for _ in range(100):
    try:
        text = urllib.request.urlopen("http://127.0.0.1:9464/metrics").read().decode()
        break
    except OSError:
        time.sleep(0.1)
assert "tffc_rounds_total{{outcome=\\"finished\\"}} 1" in text, text
'
"""

APP = f"{COMPILE}tffc export mean --to flower -o app\n"

SIGN = "openssl genpkey -algorithm ed25519 -out key && tffc sign mean --key key"

NVFLARE = f"""\
{COMPILE}
tffc export mean --to nvflare -o job
mkdir -p workspace/local
echo '{{"class_allow_list": ["{CONTROLLER}", "{EXECUTOR}"]}}' > workspace/local/resources.json
echo "{{\\"data\\": \\"$PWD/examples/temperature/sensors\\"}}" > workspace/local/tffc.json
nvflare simulator -w workspace -n 2 -t 2 job
tffc show workspace/server/simulate_job/tffc
"""

USES = {
    "": COMPILE + ROUND,
    "all": COMPILE
    + f"{ROUND} --engine beam --out run --log tensorboard\n{WRITE_PARQUET}{READ_PARQUET}",
    "beam": f"{COMPILE}{ROUND} --engine beam",
    "benchmarks": "python -m benchmarks --quick --only stages --runs 1 --budget 1 --output out",
    "docs": "mkdocs build --strict && ls build/site/index.html",
    "flower": f"{APP}flwr build --app app",
    "jax": JAX,
    "learning": LEARNING,
    "masking": f"{COMPILE}{ROUND} --secure-sums masked",
    "metrics": METRICS,
    "mlflow": f"{OFFLINE}{COMPILE}{ROUND} --track mlflow\n{READ_MLFLOW}",
    "nvflare": NVFLARE,
    "parquet": COMPILE + WRITE_PARQUET + READ_PARQUET,
    "ray": f"{COMPILE}{ROUND} --engine ray --engine-options --workers=1",
    "sign": f"{COMPILE}{SIGN}",
    "tensorboard": f"{COMPILE}{ROUND} --out run --log tensorboard\nls run/tensorboard/events*",
    "test": "pytest --collect-only -q && "
    "pytest -n2 tests/language/test_types.py tests/cli/test_light.py",
    "torch": TORCH,
    "wandb": f"{OFFLINE}{COMPILE}{ROUND} --track wandb\nls wandb/offline-run-*/*.wandb",
}
"""What each extra is for, tried in a copy of the checkout; nothing at all for the empty one."""

WITHOUT = {
    "beam": (f"{COMPILE}{ROUND} --engine beam", "pip install '.[beam]'"),
    "benchmarks": ("python -m benchmarks --quick", "pip install '.[benchmarks]'"),
    "flower": (f"{APP}cd app && python -m tffc_app.server_app", "pip install '.[flower]'"),
    "jax": (JAX, "pip install '.[jax]'"),
    "masking": (f"{COMPILE}{ROUND} --secure-sums masked", "pip install '.[masking]'"),
    "metrics": (
        "TFFC_METRICS=counts python -m tffc.deploy.operations",
        "pip install '.[metrics]'",
    ),
    "mlflow": (f"{COMPILE}{ROUND} --track mlflow", "pip install '.[mlflow]'"),
    "parquet": (
        f"{COMPILE}touch rows.parquet && {READ_PARQUET}",
        "pip install '.[parquet]'",
    ),
    "ray": (f"{COMPILE}{ROUND} --engine ray", "pip install '.[ray]'"),
    "sign": (f"{COMPILE}{SIGN}", "pip install 'securesystemslib[crypto]'"),
    "tensorboard": (f"{COMPILE}{ROUND} --out run --log tensorboard", "pip install tensorboard"),
    "wandb": (f"{COMPILE}{ROUND} --track wandb", "pip install '.[wandb]'"),
}
"""What is tried without each extra, and what the message says to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with tffc and one extra, and a copy of the checkout."""

    folder: pathlib.Path
    checkout: pathlib.Path

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        clean = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
        path = f"{self.folder / 'bin'}{os.pathsep}{clean['PATH']}"
        return subprocess.run(
            ["bash", "-euc", script],
            cwd=self.checkout,
            env={**clean, "PATH": path, "VIRTUAL_ENV": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy of what git knows of, which nobody changes meanwhile."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """tffc as it would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(checkout))
    return next(folder.glob("*.whl"))


def pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", *arguments, "--quiet"], check=True)


@pytest.fixture
def environment(
    request: pytest.FixtureRequest,
    checkout: pathlib.Path,
    wheel: pathlib.Path,
    tmp_path: pathlib.Path,
) -> Iterator[Environment]:
    """An environment with the extra that the test is given."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True, clear=True)
    extra = f"[{request.param}]" if request.param else ""
    pip(str(folder / "bin" / "python"), "install", f"tffc{extra} @ {wheel.as_uri()}")
    yield Environment(folder, shutil.copytree(checkout, tmp_path / "checkout"))
    # Each has a TensorFlow of its own, and pytest keeps the folders of three runs.
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "environment", sorted(USES), indirect=True, ids=lambda name: name or "none"
)
def test_alone(environment: Environment, request: pytest.FixtureRequest) -> None:
    extra = request.node.callspec.params["environment"]
    ended = environment.run(USES[extra])
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("environment", [""], indirect=True, ids=["none"])
def test_without(environment: Environment) -> None:
    for extra, (script, advice) in WITHOUT.items():
        ended = environment.run(script)
        assert ended.returncode == 1, (extra, ended.stderr)
        assert advice in ended.stderr, (extra, ended.stderr)
