"""Which modules are a program's own, and that they are imported again."""

from __future__ import annotations

import importlib
import linecache
import os
import pathlib
import sys
import types
from collections.abc import Iterator

import pytest

from tffc.runtime.user_code.own_modules import OwnModules, folder_of


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A folder with modules and packages, and one beside it, in reach of imports."""
    for name in (
        "inside/own_one.py",
        "inside/own_space/own_two.py",
        "inside/own_package/__init__.py",
        "inside/own_package/own_three.py",
        "inside-out/other_one.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("VALUE = 1\n")
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path / "inside"))
    monkeypatch.syspath_prepend(str(tmp_path / "inside-out"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def load(name: str) -> object:
    return importlib.import_module(name)


def test_modules_of_the_folder_are_imported_anew(folder: pathlib.Path) -> None:
    own = OwnModules(str(folder / "inside"))
    names = ("own_one", "own_space.own_two", "own_package.own_three")
    others = ("other_one", "json.tool", "tffc.support.version")
    before = {name: load(name) for name in (*names, *others)}
    files = {os.path.relpath(file, folder) for file in own.files()}
    assert files == {
        "inside/own_one.py",
        "inside/own_package/__init__.py",
        "inside/own_package/own_three.py",
        "inside/own_space/own_two.py",
    }
    (folder / "inside" / "own_space" / "own_two.py").write_text("VALUE = 22\n")
    own.forget()
    assert own.files() == set()
    from own_space import own_two  # pyright: ignore[reportMissingImports]  # made by the test

    assert own_two.VALUE == 22
    assert all(load(name) is not before[name] for name in names)
    assert all(load(name) is before[name] for name in others)


def test_what_was_imported_before_is_not_ours(folder: pathlib.Path) -> None:
    first = load("own_one")
    own = OwnModules(str(folder / "inside"))
    own.forget()
    assert load("own_one") is first


def test_tffc_is_not_ours_where_its_own_checkout_is_the_folder() -> None:
    name = "tffc.tff.former_names"
    sys.modules.pop(name, None)
    own = OwnModules(str(pathlib.Path(__file__).parents[2]))
    load(name)
    assert not any("former_names" in file for file in own.files())


def test_a_module_that_raises_is_not_ours(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising(types.ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise ZeroDivisionError(name)

    own = OwnModules(str(folder / "inside"))
    monkeypatch.setitem(sys.modules, "raising", Raising("raising"))
    monkeypatch.setitem(sys.modules, "an object", object())  # type: ignore[arg-type]  # as a module may do to itself
    load("own_one")
    assert own.files() == {str(folder / "inside" / "own_one.py")}


def test_lines_are_read_anew(folder: pathlib.Path) -> None:
    file = folder / "inside" / "own_one.py"
    assert linecache.getline(str(file), 1) == "VALUE = 1\n"
    file.write_text("OTHER = 1\n")
    OwnModules(str(folder)).forget()
    assert linecache.getline(str(file), 1) == "OTHER = 1\n"


@pytest.mark.parametrize(
    ("target", "folder"), [("a/b.py", "a"), ("b.py", ""), ("a.b", ""), ("/x/b.py", "/x")]
)
def test_where_a_target_imports_from(target: str, folder: str) -> None:
    assert folder_of(target) == os.path.join(os.getcwd(), folder).rstrip("/")
