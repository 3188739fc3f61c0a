"""`tffc python`: a script runs as Python runs it, with tffc under the name of TFF."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess

import pytest

from tests.cli.conftest import Run
from tests.processes import ENVIRONMENT, run_python

OLD = """\
import os
import pickle
import sys

import numpy as np
import tensorflow_federated as tff

import beside


class Noted:
    pass


if __name__ == "__main__":
    if sys.argv[1] == "fail":
        beside.fail()
    if sys.argv[1] == "build":
        beside.build()
    total = tff.federated_computation(tff.federated_sum, tff.FederatedType(np.int32, tff.CLIENTS))
    print(total([1, 2, 3]), sys.argv, os.path.relpath(sys.path[0]), os.path.relpath(__file__))
    print(type(pickle.loads(pickle.dumps(Noted()))).__name__, __spec__ is None)
    print(os.environ.get("TF_USE_LEGACY_KERAS"))
    sys.exit(3)
"""

BESIDE = """\
import numpy as np
import tensorflow_federated as tff


def fail():
    return 1 // 0


def build():
    @tff.federated_computation(tff.FederatedType(np.int32, tff.SERVER))
    def total(value):
        return tff.federated_sum(value)
"""

KERAS = "1" if importlib.util.find_spec("tf_keras") else "None"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with an old script, and a module beside it."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "old.py").write_text(OLD)
    (tmp_path / "scripts" / "beside.py").write_text(BESIDE)
    return tmp_path


def python(folder: pathlib.Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in ENVIRONMENT.items() if name != "TF_USE_LEGACY_KERAS"}
    return run_python("-m", "tffc", *words, cwd=folder, env={**env, **variables})


def test_a_script_runs_as_python_runs_it(folder: pathlib.Path) -> None:
    done = python(folder, "python", "scripts/old.py", "go", "--form", "x", "-m")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == (
        "6 ['scripts/old.py', 'go', '--form', 'x', '-m'] scripts scripts/old.py\n"
        f"Noted True\n{KERAS}\n"
    )


def test_a_module_runs_as_python_runs_it(folder: pathlib.Path) -> None:
    done = python(folder / "scripts", "python", "-m", "old", "go", TF_USE_LEGACY_KERAS="0")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == f"6 ['{folder}/scripts/old.py', 'go'] . old.py\nNoted False\n0\n"


def test_an_exception_of_the_script_has_its_traceback(folder: pathlib.Path) -> None:
    done = python(folder, "python", "scripts/old.py", "fail")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert [line.strip() for line in lines if "File " in line] == [
        f'File "{folder}/scripts/old.py", line 17, in <module>',
        f'File "{folder}/scripts/beside.py", line 6, in fail',
    ]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("ZeroDivisionError: ")


def test_an_error_of_tffc_is_shown_as_commands_show_it(folder: pathlib.Path) -> None:
    done = python(folder, "python", "scripts/old.py", "build")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[E471]: the value to sum must be at CLIENTS, but is of type `int32@SERVER`\n"
        "  --> scripts/beside.py:12:16\n"
        "   |\n"
        "12 |         return tff.federated_sum(value)\n"
        "   |                ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   |\n"
        "   = help: it is at the server; bring it to the clients with tff.federated_broadcast\n"
        "   = explain: tffc explain E471\n"
    )


def test_a_misspelt_import_has_help(folder: pathlib.Path) -> None:
    (folder / "typo.py").write_text("import tensorflow_federated as tff\nimport tensorfow\n")
    done = python(folder, "python", "typo.py")
    assert done.stderr.endswith(
        "ModuleNotFoundError: No module named 'tensorfow'\n  = help: did you mean 'tensorflow'?\n"
    )
    done = python(folder, "python", "-m", "no.such")
    assert done.returncode == 1
    assert done.stderr.startswith("error[E434]: there is no module named 'no.such'\n")


def test_a_script_that_is_not_there(run: Run, folder: pathlib.Path) -> None:
    assert run("python", "scripts/odl.py").refusal == (
        "error[E434]: there is no file scripts/odl.py\n = help: did you mean scripts/old.py?\n"
    )
    assert run("python", "scripts").refusal == (
        "error[E434]: scripts is a folder\n"
        " = help: give the path of a Python script, or -m and a module\n"
    )
    ran = run("scripts/old.py")
    assert (ran.code, ran.stderr.splitlines()[-1]) == (
        2,
        "Error: No such command 'scripts/old.py'. To run a script, write `tffc python "
        "scripts/old.py`.",
    )


def test_the_core_of_tff_without_what_it_needs(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "site-packages" / "tensorflow_federated"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import tensorflow_estimator\n")
    (tmp_path / "plain.py").write_text(
        "import tffc\nimport tensorflow_federated as tff\nprint(tff.CLIENTS)\n"
    )
    path = os.pathsep.join((ENVIRONMENT["PYTHONPATH"], str(package.parent)))
    done = run_python("plain.py", cwd=tmp_path, env={**ENVIRONMENT, "PYTHONPATH": path})
    assert done.stderr.endswith(
        "tffc.support.errors.MissingModuleError: TensorFlow Federated itself is being imported, "
        "and needs tensorflow_estimator, which today's TensorFlow does not have [E183]\n"
        f"  at {tmp_path}/plain.py:2\n"
        "  help: run the script with `tffc python SCRIPT`, or call "
        "tffc.install_as_tensorflow_federated() before anything imports tensorflow_federated\n"
    )
    done = python(tmp_path, "python", "plain.py", PYTHONPATH=path)
    assert (done.stdout, done.stderr) == ("CLIENTS\n", "")
