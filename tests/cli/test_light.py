"""Commands do not load packages that they do not need, in fresh interpreters."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

import tffc as tff
from tests.cli.conftest import ROUND, Run
from tests.graphs.operations.artifacts import artifact
from tests.processes import run_python
from tffc.cli.application import COMMANDS
from tffc.language import Compiled, FunctionType
from tffc.language.wire import TensorBinding, XlaSection, write_xla

HEAVY = ("tensorflow", "jax", "torch", "torchax", "rich", "hypothesis", "pytest")


def loaded(folder: pathlib.Path, code: str) -> set[str]:
    """Return the packages that a fresh interpreter has loaded after running some code."""
    return {name.split(".")[0] for name in loaded_modules(folder, code)}


def loaded_modules(folder: pathlib.Path, code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running some code."""
    report = "import sys; print('\\n' + ' '.join(sys.modules))"
    ran = run_python("-c", f"{code}\n{report}", cwd=folder, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def command(*args: str) -> str:
    return (
        "from tffc.cli.application import application\n"
        f"application({list(args)!r}, standalone_mode=False)"
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path, run: Run, temperature: pathlib.Path) -> pathlib.Path:
    """A folder with a traced program that holds TensorFlow graphs, `x.pb`."""
    (tmp_path / "x.pb").write_bytes((temperature / "computation.pb").read_bytes())
    (tmp_path / "round.py").write_text(ROUND)
    np.savez(tmp_path / "x.npz", np.zeros([20]))
    shutil.copytree(temperature, tmp_path / "bundle")
    (tmp_path / "xla.pb").write_bytes(round_of_xla())
    return tmp_path


def round_of_xla() -> bytes:
    """A traced round that maps an XLA section at the clients, made without JAX."""
    module = artifact("func_v1", "add_v1", "return_v1")
    payload = write_xla(XlaSection(b"", TensorBinding(0), TensorBinding(0), module))
    mapped = tff.Computation.from_node(Compiled("xla", payload, FunctionType(np.int32, np.int32)))
    program = tff.federated_computation(
        lambda state, data: (state, tff.federated_sum(tff.federated_map(mapped, data))),
        tff.types.at_server(np.int32),
        tff.types.at_clients(np.int32),
    )
    return tff.serialize_computation(program)


@pytest.mark.parametrize(
    ("code", "also_absent"),
    [
        ("import tffc", ("numpy", "google", "click")),
        ("import tffc.language", ("numpy", "google", "click")),
        (command("--help"), ("numpy", "google", "yaml")),
        (command("print", "x.pb", "--sexpr"), ("numpy", "yaml")),
        (command("show", "x.npz"), ()),
        (command("explain", "E471"), ("numpy", "google", "yaml")),
        (command("compile", "x.pb", "--form", "mapreduce", "--out", "out"), ("numpy",)),
        (command("check", "x.pb", "--form", "mapreduce"), ("numpy",)),
        (command("decompile", "bundle", "--out", "back.pb"), ("numpy",)),
        (command("diff", "x.pb", "x.pb"), ("numpy",)),
        (command("audit", "x.pb", "--form", "mapreduce"), ("numpy",)),
        (command("compile", "xla.pb", "--form", "mapreduce", "--out", "out"), ()),
        (command("print", "round.py", "--sexpr"), ()),
        (command("prove", "bundle"), ("numpy",)),
        (command("explore", "x.pb", "-o", "page.html"), ()),
        (command("explore", "bundle", "-o", "page.html"), ()),
    ],
)
def test_stays_light(folder: pathlib.Path, code: str, also_absent: tuple[str, ...]) -> None:
    assert loaded(folder, code) & {*HEAVY, *also_absent} == set()


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            command("print", "x.pb"),
            {
                "tffc.language.notation.parser",
                "tffc.language.notation.structural_text",
                "tffc.language.notation.typed_text",
                "tffc.linking",
                "tffc.passes",
                "tffc.runtime.effects.accesses",
            },
        ),
        (
            command("diff", "x.pb", "x.pb"),
            {"tffc.assurance.diff.sections", "tffc.linking", "tffc.passes.table"},
        ),
        (
            command("check", "x.pb", "--form", "mapreduce"),
            {"tffc.language.notation.parser", "tffc.runtime.effects.accesses"},
        ),
        (
            command("compile", "x.pb", "--form", "mapreduce", "--out", "out"),
            {
                "tffc.cli.reproducer",
                "tffc.language.notation.parser",
                "tffc.passes.instruments",
                "tffc.passes.pipeline_text",
                "tffc.runtime.effects.accesses",
            },
        ),
    ],
)
def test_loads_only_what_it_uses(folder: pathlib.Path, code: str, absent: set[str]) -> None:
    """Commands do without the modules of tffc that few programs or options need."""
    assert loaded_modules(folder, code) & absent == set()


def test_help_is_quick(tmp_path: pathlib.Path) -> None:
    """The help of no command loads NumPy or a framework."""
    every = "; ".join(f"help_of({name!r})" for name in COMMANDS)
    code = f"""
from tffc.cli.application import application
def help_of(name):
    application([name, "--help"], standalone_mode=False)
{every}"""
    assert loaded(tmp_path, code) & {*HEAVY, "numpy"} == set()


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_bundle_runs_without_the_front_end(folder: pathlib.Path) -> None:
    """What traces programs is not loaded to run what is compiled, nor TFF's names; the prover is,
    because nothing else ties what runs to the program that people read."""
    np.savez(folder / "x.npz", np.array([20], np.float32))
    (folder / "data").mkdir()
    (folder / "x.npz").rename(folder / "data" / "x.npz")
    modules = loaded_modules(folder, command("run", "bundle", "--data", "data", "--rounds", "1"))
    ours = {name for name in modules if name.startswith("tffc.")}
    judges = ("tffc.assurance.golden", "tffc.assurance.trust", "tffc.assurance.validation")
    above = (*judges, "tffc.explorer", "tffc.frontend", "tffc.tff")
    assert {"tffc.runtime.engines.local", "tffc.assurance.proof.prove"} <= ours
    assert not {name for name in ours if name.startswith(above)}


def test_naming_the_algorithms_loads_no_framework(tmp_path: pathlib.Path) -> None:
    names = loaded(tmp_path, "import tffc; tffc.algorithms.Adam(0.1), tffc.algorithms.Model")
    assert names.isdisjoint({*HEAVY, "keras", "tf_keras", "pandas"})
