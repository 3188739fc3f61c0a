"""`import tensorflow_federated` gives tffc, where that is wanted and possible."""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
from types import ModuleType

import pytest

import tffc
from tests.processes import run_python
from tests.refusals import refusal
from tffc.frontend.load import load
from tffc.support.errors import (
    ContextError,
    MissingElementError,
    MissingExtraError,
    MissingModuleError,
)
from tffc.tff import absent, finder, releases, third_parties
from tffc.tff.install import install_unless_loaded
from tffc.tff.names import STAND_INS

CORE = "tensorflow_federated.python.core"

NAMES = pathlib.Path(__file__).parent / "recorded" / "core_names.json"
CORE_NAMES: dict[str, list[str]] = json.loads(NAMES.read_text())
"""The names that TFF's libraries, and programs, take from modules of TFF's core."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(releases.SOURCE, raising=False)
    tffc.install_as_tensorflow_federated()


def run(program: str) -> str:
    done = run_python("-c", program)
    return done.stdout + done.stderr


def test_the_name_gives_what_tffc_has() -> None:
    program = (
        "import sys, tffc\n"
        "tffc.install_as_tensorflow_federated()\n"
        "import tensorflow_federated as tff\n"
        "print(tff.federated_computation is tffc.federated_computation, dir(tff) == dir(tffc))\n"
        "print(tff.__version__, 'tensorflow' in sys.modules)\n"
        "import tffc.graphs.proto\n"
        "print(hasattr(tffc.graphs.proto, 'GraphDef'))\n"
    )
    assert run(program) == "True True\n0.87.0 False\nTrue\n"


def test_it_is_installed_once(installed: None) -> None:
    before = list(sys.meta_path)
    tffc.install_as_tensorflow_federated()
    assert sys.meta_path == before


def test_beside_the_real_core(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("tensorflow_federated")
    monkeypatch.setitem(sys.modules, "tensorflow_federated", real)
    assert refusal(ContextError, tffc.install_as_tensorflow_federated) == (
        "tffc cannot take the name tensorflow_federated, because TensorFlow Federated itself is "
        "loaded already [E183]\n"
        "  help: call tffc.install_as_tensorflow_federated() before anything imports it"
    )
    install_unless_loaded()
    assert importlib.import_module("tensorflow_federated") is real


def test_a_module_that_tffc_loads(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "written_for_tff.py"
    path.write_text(
        "import numpy as np\n"
        "import tensorflow_federated as tff\n"
        "@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))\n"
        "def total(x):\n"
        "    return tff.federated_sum(x)\n"
    )
    assert load(str(path)).name == "total"


def test_a_module_of_the_core(installed: None) -> None:
    with pytest.raises(MissingModuleError) as caught:
        importlib.import_module(f"{CORE}.impl.compiler.tree_analysis")
    assert isinstance(caught.value, ImportError)
    assert str(caught.value) == (
        f"tffc replaces TFF's core, and has no module {CORE}.impl.compiler.tree_analysis [E180]\n"
        "  help: use what TFF documents: names that begin with `tff.`"
    )


def test_a_name_of_the_core(installed: None) -> None:
    module = importlib.import_module(f"{CORE}.impl.types.placements")
    assert module.CLIENTS is tffc.CLIENTS
    with pytest.raises(MissingElementError) as caught:
        _ = module.name_of_no_core
    assert str(caught.value) == (
        f"tffc's replacement for {CORE}.impl.types.placements has no 'name_of_no_core' [E180]\n"
        "  help: use what TFF documents: names that begin with `tff.`"
    )


def test_without_the_wheel(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("tensorflow_federated.python.learning.of_no_file")
    assert str(caught.value) == (
        "tff.learning is TFF's own, and TensorFlow Federated is not installed [E181]\n"
        "  help: in tffc's checkout: pip install '.[learning]' && pip install --no-deps "
        "--ignore-requires-python tensorflow-federated==0.87.0 tensorflow-privacy==0.9.0 "
        "tensorflow-model-optimization==0.8.0"
    )


@pytest.mark.parametrize("version", ["0.86.0", "0.88.1", "0.8"])
def test_a_wheel_of_another_release(
    version: str, installed: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = wheel(tmp_path, version)
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("tensorflow_federated.python.learning.of_that_wheel")
    assert str(caught.value) == (
        f"tff.learning is TFF's own, and TensorFlow Federated {version} is there, but tffc runs "
        "the libraries of 0.87 and of today's [E181]\n"
        "  help: pip install --no-deps --ignore-requires-python tensorflow-federated==0.87.0"
    )


def test_a_wheel_of_the_release(
    installed: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(wheel(tmp_path, "0.87.1"))
    found = finder.TffFinder().find_spec(f"{finder.PYTHON}.learning.of_that_wheel")
    assert found is not None


def wheel(folder: pathlib.Path, version: str) -> pathlib.Path:
    """A folder with an installed wheel of TFF, of which one file is there."""
    library = folder / "tensorflow_federated" / "python" / "learning"
    library.mkdir(parents=True)
    for package in (library, library.parent, library.parent.parent):
        (package / "__init__.py").touch()
    (library / "of_that_wheel.py").write_text("version = 1\n")
    about = folder / f"tensorflow_federated-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: tensorflow-federated\nVersion: {version}\n")
    return folder


@pytest.mark.parametrize("module", CORE_NAMES)
def test_the_names_that_libraries_take_from_the_core(module: str, installed: None) -> None:
    stand_in = importlib.import_module(f"tensorflow_federated.{module}")
    assert [name for name in CORE_NAMES[module] if not hasattr(stand_in, name)] == []


def test_each_stand_in_has_recorded_names() -> None:
    assert {f"tensorflow_federated.{module}" for module in CORE_NAMES} == set(STAND_INS)


def test_a_package_of_which_a_part_is_used(
    installed: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken_as_a_whole"
    package.mkdir()
    (package / "__init__.py").write_text("import nothing_of_this_name\n")
    (package / "part.py").write_text("useful = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = third_parties.PartlyUsed("the rest is broken", {"broken_as_a_whole.part": ("useful",)})
    monkeypatch.setitem(third_parties.PACKAGES, "broken_as_a_whole", made)
    found = importlib.import_module("broken_as_a_whole")
    assert found.useful == 1
    with pytest.raises(MissingElementError) as caught:
        _ = found.useless
    assert str(caught.value) == (
        "broken_as_a_whole.useless is not available: the rest is broken [E184]\n"
        "  help: only what TFF's libraries need is taken from this package"
    )


def test_a_package_that_is_absent(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(absent.DISTRIBUTIONS, "absent_package", "absent-package")
    part = importlib.import_module("absent_package.part")
    kind = part.Kind.Inner

    assert kind in (kind | None).__args__
    assert refusal(MissingExtraError, kind) == (
        "absent_package.part.Kind.Inner is part of absent-package, which is not installed [E181]\n"
        "  help: pip install absent-package"
    )
