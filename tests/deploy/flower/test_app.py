"""What `tffc export --to flower` writes, and what it refuses."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import pathlib
import tomllib

import pytest

from tests.cli.conftest import Run, run, temperature
from tests.refusals import refusal
from tffc.backends.bundle.bundle import decode_bundle, read_bundle
from tffc.deploy.flower import apps
from tffc.deploy.flower.bundle_file import decode_bundle_file
from tffc.support.errors import MissingExtraError

__all__ = ["run", "temperature"]

FILES = [
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "tffc_app/__init__.py",
    "tffc_app/bundle.json",
    "tffc_app/client_app.py",
    "tffc_app/server_app.py",
]


def files_in(folder: pathlib.Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_an_app(run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path) -> None:
    ran = run("export", str(temperature), "--to", "flower", "-o", "Mean of 12")
    assert (ran.code, ran.stdout) == (0, "")
    assert ran.stderr == "wrote Mean of 12: a Flower app of mapreduce\n"
    app = tmp_path / "Mean of 12"
    assert files_in(app) == FILES
    project = tomllib.loads((app / "pyproject.toml").read_text())
    assert project["project"]["name"] == "mean-of-12"
    # Not tffc: SuperLinks install what stands here from the package index.
    assert project["project"]["dependencies"] == ["flwr>=1.41,<2"]
    components = project["tool"]["flwr"]["app"]["components"]
    assert components == {
        "serverapp": "tffc_app.server_app:app",
        "clientapp": "tffc_app.client_app:app",
    }
    content = (app / "tffc_app" / "bundle.json").read_bytes()
    bundle = decode_bundle(decode_bundle_file(content, "f"), pathlib.Path("f"))
    assert bundle.encode() == read_bundle(temperature).encode()
    for side in ("server_app", "client_app"):
        code = (app / "tffc_app" / f"{side}.py").read_text()
        imported = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
        assert [(node.module, node.names[0].name) for node in imported] == [(apps.__name__, side)]


def test_an_app_is_replaced_only_if_asked(
    run: Run, tmp_path: pathlib.Path, temperature: pathlib.Path
) -> None:
    args = ("export", str(temperature), "--to", "flower", "-o", "app")
    assert run(*args).code == 0
    cache = tmp_path / "app" / "tffc_app" / "__pycache__"
    cache.mkdir()
    (cache / "server_app.cpython-311.pyc").write_bytes(b"")
    assert run(*args).refusal == (
        "error[E956]: the folder app already holds an app\n"
        " = help: replace it, or name another folder; --force replaces it\n"
    )
    assert run(*args, "--force").code == 0
    assert files_in(tmp_path / "app") == FILES


def test_an_app_that_cannot_be_written(
    run: Run, temperature: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert run("export", str(temperature), "--to", "flower", "-o", "app").refusal == (
        "error[E851]: cannot write the folder app: No space left on device\n"
        " = note: nothing was written\n"
        " = help: give a path in a folder that exists and can be written\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--state", "x.npz"), "an app starts from the first state: omit --state and --part"),
        (("--part", "model"), "an app starts from the first state: omit --state and --part"),
        (("--partial",), "an app holds the whole bundle"),
        (("--allow-effects", "files"), "an app asks for consent when it runs"),
    ],
)
def test_options_without_effect(
    run: Run, temperature: pathlib.Path, options: tuple[str, ...], message: str
) -> None:
    ran = run("export", str(temperature), "--to", "flower", "-o", "app", *options)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr


def test_without_flower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for app in (apps.server_app, apps.client_app):
        assert refusal(MissingExtraError, app, "app/server_app.py") == (
            "Flower is not installed, and its apps need it [E701]\n"
            "  help: in tffc's checkout: pip install '.[flower]'"
        )
