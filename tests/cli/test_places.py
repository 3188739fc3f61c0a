"""What a command writes stays where it was asked to be, and replaces nothing that it read."""

from __future__ import annotations

import os
import pathlib
import subprocess

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run

LIST = "count:\n  target: round.py\n  forms: [mapreduce]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "round.py").write_text(ROUND)
    return tmp_path


@pytest.fixture
def bundle(run: Run, folder: pathlib.Path) -> pathlib.Path:
    assert run("trace", "round.py", "-o", "p.pb").code == 0
    assert run("compile", "p.pb", "--form", "mapreduce", "--out", "b").code == 0
    return folder


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# Inputs.

REPLACING = [
    ("explore", "p.pb", "-o", "p.pb"),
    ("explore", "b", "-o", "b/manifest.json"),
    ("explore", "b", "-o", "b/computation.pb"),
    ("explore", "b", "-o", "./b/../b/manifest.json"),
    ("trace", "round.py", "-o", "round.py"),
    ("opt", "p.pb", "--passes", "call-dominant", "-o", "p.pb"),
    ("parse", "p.txt", "-o", "p.txt"),
    ("decompile", "b", "-o", "b/manifest.json"),
    ("audit", "p.pb", "-o", "p.pb"),
    ("audit", "p.pb", "--policy", "policy.yaml", "-o", "policy.yaml"),
    ("audit", "b", "-o", "b/manifest.json"),
    ("show", "x.npz", "--to", "npy", "-o", "x.npz"),
    ("explore", "p.pb", "-o", "hard.pb"),
    ("explore", "p.pb", "-o", "link.pb"),
    ("compile", "b/computation.pb", "--form", "mapreduce", "--out", "b", "--force"),
]


@pytest.mark.parametrize("command", REPLACING, ids=" ".join)
def test_no_command_replaces_its_input(
    run: Run, bundle: pathlib.Path, command: tuple[str, ...]
) -> None:
    (bundle / "p.txt").write_text(run("print", "p.pb", "--style", "typed").stdout)
    (bundle / "policy.yaml").write_text("protection: none\n")
    np.savez(bundle / "x.npz", x=np.zeros(3))
    os.link(bundle / "p.pb", bundle / "hard.pb")
    (bundle / "link.pb").symlink_to("p.pb")
    before = contents(bundle)
    ran = run(*command)
    assert ran.code == 1, ran
    assert "error[E863]" in ran.stderr
    assert contents(bundle) == before


def test_a_pack_is_not_packed_into_itself(run: Run, folder: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="an optional package")
    (folder / "data").mkdir()
    np.savez(folder / "data" / "a.npz", x=np.zeros(3))
    assert run("data", "pack", "data", "-o", "pack").code == 0
    before = contents(folder)
    ran = run("data", "pack", "pack", "-o", "pack", "--force")
    assert (ran.code, contents(folder)) == (1, before)


def test_what_an_earlier_command_read_may_be_replaced(run: Run, bundle: pathlib.Path) -> None:
    assert run("print", "p.pb").code == 0
    assert run("trace", "round.py", "-o", "p.pb").code == 0
    assert run("compile", "p.pb", "--form", "mapreduce", "--out", "b", "--force").code == 0


# Links.

DANGLING = [
    ("init", "link"),
    ("trace", "round.py", "-o", "link"),
    ("compile", "round.py", "--form", "mapreduce", "--out", "link"),
    ("explore", "round.py", "-o", "link"),
    ("audit", "round.py", "-o", "link"),
]


@pytest.mark.parametrize("command", DANGLING, ids=" ".join)
def test_nothing_is_written_behind_a_link_to_nothing(
    run: Run, folder: pathlib.Path, command: tuple[str, ...]
) -> None:
    (folder / "link").symlink_to(folder / "elsewhere")
    ran = run(*command)
    assert ran.code == 1, ran
    assert "a link to" in ran.stderr
    assert not (folder / "elsewhere").exists()
    assert (folder / "link").is_symlink()


def test_a_pack_is_not_written_behind_a_link_to_nothing(run: Run, folder: pathlib.Path) -> None:
    pytest.importorskip("pyarrow", reason="an optional package")
    (folder / "data").mkdir()
    np.savez(folder / "data" / "a.npz", x=np.zeros(3))
    (folder / "link").symlink_to(folder / "elsewhere")
    assert run("data", "pack", "data", "-o", "link").code == 1
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize("place", ["count", "count/mapreduce", "count/program.sexpr"])
def test_goldens_are_not_written_behind_links(run: Run, folder: pathlib.Path, place: str) -> None:
    (folder / "golden").mkdir()
    (folder / "golden" / "golden.yaml").write_text(LIST)
    assert run("golden", "update").code == 0
    (folder / "golden" / place).rename(folder / "elsewhere")
    (folder / "golden" / place).symlink_to(folder / "elsewhere")
    if (folder / "elsewhere").is_dir():
        (folder / "elsewhere" / "mine.txt").write_text("kept")
    source = folder / "round.py"
    source.write_text(ROUND.replace("1", "2"))
    before = contents(folder / "elsewhere") or {"": (folder / "elsewhere").read_bytes()}
    ran = run("golden", "update")
    after = contents(folder / "elsewhere") or {"": (folder / "elsewhere").read_bytes()}
    assert after == before
    assert (ran.code, "[E864]" in ran.stderr) == (1, True) or place != "count"


# Revisions of git.


def git(folder: pathlib.Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(("git", *identity, *args), check=True, cwd=folder, capture_output=True)


@pytest.fixture
def repository(folder: pathlib.Path) -> pathlib.Path:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.mark.parametrize(
    "revision",
    ["--output=kept", "-okept", "-l", "--remote=x", "--exec=touch kept", "HEAD --output=kept", ""],
)
@pytest.mark.parametrize("command", ["diff --breaking", "explore"])
def test_a_revision_is_no_option_of_git(
    run: Run, repository: pathlib.Path, command: str, revision: str
) -> None:
    (repository / "kept").write_text("kept")
    before = contents(repository)
    if command == "explore":
        ran = run("explore", "round.py", "--since", f"git:{revision}", "-o", "-")
    else:
        ran = run("diff", "--breaking", f"git:{revision}", "round.py")
    assert ran.code == 1
    assert "error[E858]" in ran.stderr
    assert contents(repository) == before


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "nowhere", "round.py", "loop"])
def test_links_in_a_repository(run: Run, repository: pathlib.Path, target: str) -> None:
    (repository / "loop").symlink_to(target)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a link")
    ran = run("diff", "--breaking", "git:HEAD", "round.py")
    assert (ran.code, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tffc/__init__.py", "tffc.py", "json.py", "typing/__init__.py"])
def test_modules_of_a_repository_do_not_shadow(
    run: Run, repository: pathlib.Path, name: str
) -> None:
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("raise RuntimeError('another module')\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a module")
    (repository / name).unlink()
    ran = run("diff", "--breaking", "git:HEAD", "round.py")
    assert (ran.code, ran.stdout) == (0, ""), ran.stderr
