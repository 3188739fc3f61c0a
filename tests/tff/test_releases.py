"""Which of TFF's libraries a program gets: of the release that it was written for."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import tffc
from tests.refusals import refusal
from tffc.frontend.load import load
from tffc.runtime.user_code.modules import import_source
from tffc.support.errors import MissingExtraError
from tffc.tff import releases
from tffc.tff.releases import HEAD, SOURCE, WHEEL, written_for

TODAY = """\
import federated_language
import numpy as np
import tensorflow_federated as tff


@federated_language.federated_computation(
    federated_language.FederatedType(np.int32, federated_language.CLIENTS)
)
def total(x):
    return federated_language.federated_sum(x)


def name():
    return tff.learning.NAME
"""

CLASSIC = """\
import numpy as np
import tensorflow_federated as tff


@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def total(x):
    return tff.federated_sum(x)


def name():
    return tff.learning.NAME
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Iterator[None]:
    """No release is chosen, and none is there."""
    monkeypatch.delenv(SOURCE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(releases, "_in_use", releases.ReleaseInUse())
    monkeypatch.setattr(releases, "installed", lambda: None)
    before = _modules()
    tffc.install_as_tensorflow_federated()
    for name in before:
        del sys.modules[name]
    yield
    for name in _modules():
        del sys.modules[name]
    sys.modules.update(before)


def _modules() -> dict[str, ModuleType]:
    names = "tensorflow_federated", "federated_language"
    return {name: each for name, each in sys.modules.items() if name.startswith(names)}


def checkout(folder: pathlib.Path, name: str, version: str, *, moved: bool) -> str:
    """A checkout of TFF with one library, whose language has moved out or not."""
    package = folder / "tensorflow_federated"
    library = package / "python" / "learning"
    types = package / "python" / "core" / "impl" / "types"
    for each in (library, types):
        each.mkdir(parents=True)
    (library / "__init__.py").write_text(f"NAME = {name!r}\n")
    (package / "version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    if not moved:
        (types / "computation_types.py").touch()
    return str(folder)


@pytest.fixture
def classic(tmp_path: pathlib.Path) -> str:
    return checkout(tmp_path / "classic", "classic", "0.87.0", moved=False)


@pytest.fixture
def today(tmp_path: pathlib.Path) -> str:
    return checkout(tmp_path / "today", "today", "0.95.0", moved=True)


def module(folder: pathlib.Path, name: str, text: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (TODAY, HEAD),
        ("from federated_language import program\n", HEAD),
        ("def f():\n    import federated_language.program as p\n", HEAD),
        (CLASSIC, WHEEL),
        ("import tensorflow_federated as tff\nx = tff.CLIENTS\n", WHEEL),
        ("import tensorflow_federated as tff\ntff.learning.templates\n", None),
        ("import federated_language_of_mine\n", None),
        ("# import federated_language\n", None),
        ('"""\nimport federated_language\n"""\n', None),
        ("import tensorflow_federated as t\nx = t.federated_sum\n", WHEEL),
        ("import tensorflow_federated\nx = tensorflow_federated.types.at_server\n", WHEEL),
        ("from tensorflow_federated import CLIENTS as everywhere\n", WHEEL),
        ("import mine as tff\nx = tff.CLIENTS\n", None),
        ("import federated_language\nthis is no Python\n", None),
        ("", None),
    ],
)
def test_what_a_module_was_written_for(text: str, release: releases.Release | None) -> None:
    assert written_for(text) is release


def test_each_module_gets_the_libraries_of_its_release(
    tmp_path: pathlib.Path, classic: str, today: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, os.pathsep.join([classic, today]))
    texts = {"first": CLASSIC, "second": TODAY, "third": CLASSIC, "fourth": TODAY}
    loaded = [import_source(module(tmp_path, name, text)) for name, text in texts.items()]
    assert [each.name() for each in loaded] == ["classic", "today", "classic", "today"]
    assert [each.tff.__version__ for each in loaded] == ["0.87.0", "0.95.0", "0.87.0", "0.95.0"]
    # Also when they are asked in another order than they were loaded.
    assert [each.name() for each in reversed(loaded)] == ["today", "classic", "today", "classic"]


@pytest.mark.parametrize("text", [TODAY, CLASSIC], ids=["today", "classic"])
def test_the_core_needs_no_libraries(tmp_path: pathlib.Path, text: str) -> None:
    assert load(module(tmp_path, "round", text)).name == "total"


def test_a_program_that_uses_the_language_of_neither(
    tmp_path: pathlib.Path, today: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, today)
    path = module(tmp_path, "any", "import tensorflow_federated as tff\nN = tff.learning.NAME\n")
    assert import_source(path).N == "today"


def test_a_program_of_0_87_over_the_libraries_that_the_user_names(
    tmp_path: pathlib.Path, today: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, today)
    assert import_source(module(tmp_path, "old", CLASSIC)).name() == "today"


@pytest.mark.parametrize("place", [".", "inner"])
def test_a_checkout_is_found_by_its_name(
    tmp_path: pathlib.Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(tmp_path / "tensorflow-federated", "beside", "0.95.0", moved=True)
    (tmp_path / place).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / place)
    assert import_source(module(tmp_path, "new", TODAY)).name() == "beside"


def test_libraries_that_are_not_there(
    tmp_path: pathlib.Path, classic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, classic)
    name = import_source(module(tmp_path, "new", TODAY)).name
    assert refusal(MissingExtraError, name) == (
        "tff.learning is TFF's own, and there is no checkout of today's TFF, for which this "
        "program was written: it imports federated_language [E181]\n"
        "  help: in tffc's checkout: pip install '.[learning]' && git clone "
        "https://github.com/google-parfait/tensorflow-federated, and set TFFC_TFF_SOURCE to the "
        "folder"
    )


def test_a_folder_that_is_no_checkout(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, str(tmp_path))
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("tensorflow_federated.python.learning")
    assert str(caught.value).startswith(
        f"{tmp_path} is no checkout of TensorFlow Federated: it has no folder "
        "tensorflow_federated/python [E181]"
    )


@pytest.mark.parametrize("version", ["0.86.0", "0.89.0"])
def test_a_checkout_of_another_release(
    tmp_path: pathlib.Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SOURCE, checkout(tmp_path / "other", "other", version, moved=False))
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("tensorflow_federated.python.learning")
    assert f"TensorFlow Federated {version} is there, but tffc runs" in str(caught.value)
