"""What a command writes stays where it was asked to be, and replaces nothing that it read."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run
from tests.hostile.graphs import hlo
from tests.processes import run_python
from tffc.language import wire
from tffc.support.files import inputs

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


def fresh(folder: pathlib.Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return run_python("-m", "tffc", *words, cwd=folder, **options)


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


@pytest.fixture
def helper(folder: pathlib.Path) -> pathlib.Path:
    """Let the module import a module and a package, and read a file."""
    (folder / "helper.py").write_text("ONE = 1\n")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text("TWO = 2\n")
    (folder / "settings.json").write_text("{}")
    imports = "import json, pathlib, helper, package.inner\njson.load(open('settings.json'))\n"
    (folder / "round.py").write_text(imports + ROUND)
    return folder


def test_a_module_in_machine_code_is_an_input(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = importlib.util.find_spec("_opcode")
    if known is None or known.origin is None or not os.path.isfile(known.origin):
        pytest.skip("this Python has the module built in")
    file = tmp_path / os.path.basename(known.origin)
    shutil.copyfile(known.origin, file)
    monkeypatch.setattr(inputs, "_read", None)
    inputs.begin()
    with inputs.remembering_opened():
        spec = importlib.util.spec_from_file_location(file.name.split(".")[0], file)
        assert spec is not None
        importlib.util.module_from_spec(spec)
    assert inputs.was_read(file)


@pytest.mark.slow
@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize(
    "file",
    ["helper.py", "package/__init__.py", "package/inner.py", "settings.json"],
)
def test_modules_are_inputs(helper: pathlib.Path, file: str, compiled_before: bool) -> None:
    if compiled_before:
        assert fresh(helper, "trace", "round.py", "-o", "p.pb").returncode == 0
    before = contents(helper)
    ran = fresh(helper, "trace", "round.py", "-o", file)
    assert (ran.returncode, "error[E863]" in ran.stderr) == (1, True), ran.stderr
    after = contents(helper)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
def test_standard_input_is_an_input(bundle: pathlib.Path, name: str) -> None:
    before = contents(bundle)
    with (bundle / "p.pb").open("rb") as stdin:
        ran = fresh(bundle, "explore", name, "-o", "p.pb", stdin=stdin)
    assert (ran.returncode, "error[E863]" in ran.stderr) == (1, True), ran.stderr
    assert contents(bundle) == before


@pytest.fixture
def data(folder: pathlib.Path) -> pathlib.Path:
    (folder / "data").mkdir()
    for file, number in (("s", 0), ("data/a", 1), ("data/b", 1)):
        arrays: dict[str, Any] = {"0": np.int32(number)}
        np.savez(folder / f"{file}.npz", **arrays)
    return folder


@pytest.mark.parametrize(
    "outputs",
    [
        ("--state-out", "b/manifest.json"),
        ("--state-out", "data/a.npz"),
        ("--state-out", "data/b.npz", "--clients-per-round", "1"),
        ("--state-out", "data/b.npz", "--clients-per-round", "1", "--skip-bad-clients"),
        ("--state-out", "data/a.npz", "--clients-per-round", "1", "--skip-bad-clients"),
        ("--data", "data", "--state-in", "data/a.npz", "--state-out", "data/a.npz"),
        ("--state-in", "s.npz", "--state-out", "also-s.npz"),
        ("--plot", "plot.svg"),
        ("--report", "report.html"),
    ],
    ids=" ".join,
)
def test_a_run_does_not_replace_its_inputs(
    run: Run, bundle: pathlib.Path, data: pathlib.Path, outputs: tuple[str, ...]
) -> None:
    words = ("run", "b", "--data", "data", "--rounds", "2")
    if "--state-in" not in outputs:
        words = (*words, "--state-in", "s.npz")
    os.link(data / "data" / "a.npz", data / "plot.svg")
    (data / "also-s.npz").symlink_to("s.npz")
    (data / "report.html").symlink_to("b/manifest.json")
    before = contents(data)
    ran = run(*words, *outputs)
    assert (ran.code, "error[E863]" in ran.stderr) == (1, True), ran
    assert contents(data) == before


def test_a_state_goes_on_in_its_file(run: Run, bundle: pathlib.Path, data: pathlib.Path) -> None:
    words = ("run", "b", "--data", "data", "--rounds", "1", "--state-out", "s.npz")
    for name in ("s.npz", "./s.npz"):
        before = (data / "s.npz").read_bytes()
        assert run(*words, "--state-in", name).code == 0
        assert (data / "s.npz").read_bytes() != before


def test_the_state_of_a_kept_run_is_an_input(
    run: Run, bundle: pathlib.Path, data: pathlib.Path
) -> None:
    words = ("run", "b", "--data", "data", "--rounds", "1")
    assert run(*words, "--state-in", "s.npz", "--out", "of").code == 0
    before = contents(data)
    ran = run(*words, "--state-in", "of", "--state-out", "of/state.npz")
    assert (ran.code, "error[E863]" in ran.stderr) == (1, True), ran
    assert contents(data) == before


def test_links_in_a_folder_are_not_searched(folder: pathlib.Path) -> None:
    for name in ("one", "two"):
        (folder / "golden" / "count").mkdir(parents=True, exist_ok=True)
        (folder / "golden" / "count" / name).symlink_to(folder / "golden" / "count")
    assert not inputs.was_read(folder / "golden")


def test_a_report_does_not_replace_the_run(
    run: Run, bundle: pathlib.Path, data: pathlib.Path
) -> None:
    words = ("run", "b", "--data", "data", "--rounds", "2", "--state-in", "s.npz")
    assert run(*words, "--out", "of").code == 0
    before = contents(data)
    for file in ("state.npz", "metrics.jsonl", "run.json"):
        ran = run("report", "of", "-o", f"of/{file}")
        assert (ran.code, "error[E863]" in ran.stderr) == (1, True), ran
    assert contents(data) == before
    for _ in range(2):
        assert run("report", "of", "-o", "of/report.html").code == 0


def test_an_output_may_have_the_inode_of_a_file_that_was_removed(folder: pathlib.Path) -> None:
    before = inputs._read
    try:
        inputs.begin()
        for number in range(50):
            path = folder / str(number)
            path.write_text("")
            inputs.remember(path)
            assert inputs.was_read(path)
            os.link(path, folder / f"link-{number}")
            assert inputs.was_read(folder / f"link-{number}")
            path.unlink()
            (folder / f"link-{number}").unlink()
            (folder / "output").write_text("")
            assert not inputs.was_read(folder / "output")
            (folder / "output").unlink()
    finally:
        inputs._read = before


@pytest.fixture
def with_section(folder: pathlib.Path) -> pathlib.Path:
    """The folder of a program that has a compiled section."""
    (folder / "p.pb").write_bytes(wire.to_bytes(hlo({1: "x", 2: "parameter"})))
    return folder


def test_steps_are_not_printed_over_the_program(run: Run, bundle: pathlib.Path) -> None:
    words = ("opt", "--passes", "call-dominant", "--print-after", "call-dominant")
    assert run(*words, "p.pb", "--print-dir", "steps").code == 0
    step = min((bundle / "steps").glob("*.sexpr"))
    before = contents(bundle)
    ran = run(*words, os.path.join("steps", step.name), "--print-dir", "steps")
    assert (ran.code, "error[E863]" in ran.stderr) == (1, True), ran
    assert contents(bundle) == before


def test_links_among_steps_and_sections_are_replaced(run: Run, with_section: pathlib.Path) -> None:
    bundle = with_section
    words = ("opt", "--passes", "call-dominant", "--print-after", "call-dominant")
    words = (*words, "p.pb", "--print-dir", "steps")
    assert run(*words).code == 0
    expected = contents(bundle / "steps")
    mine = bundle / "mine"
    for name in expected:
        mine.write_text("mine")
        (bundle / "steps" / name).unlink()
        (bundle / "steps" / name).symlink_to(mine)
    assert run(*words).code == 0
    assert mine.read_text() == "mine"
    assert contents(bundle / "steps") == expected
    assert not any(path.is_symlink() for path in (bundle / "steps").rglob("*"))


def test_sections_that_are_there_stay(run: Run, with_section: pathlib.Path) -> None:
    bundle = with_section
    printed = run("print", "p.pb", "--style", "typed", "--sections", "s").stdout
    (bundle / "p.sexpr").write_text(printed)
    (bundle / "s").rename(bundle / "sections")
    assert run("print", "p.pb", "--style", "typed", "--sections", "s").code == 0
    times = {path: path.stat().st_mtime_ns for path in (bundle / "sections").iterdir()}
    ran = run("print", "p.sexpr", "--style", "typed", "--sections", "sections")
    assert (ran.code, ran.stdout) == (0, printed)
    assert {path: path.stat().st_mtime_ns for path in times} == times


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
    source.write_text(ROUND.replace("int32", "int64"))
    before = contents(folder / "elsewhere") or {"": (folder / "elsewhere").read_bytes()}
    ran = run("golden", "update")
    after = contents(folder / "elsewhere") or {"": (folder / "elsewhere").read_bytes()}
    assert after == before
    assert (ran.code, "[E864]" in ran.stderr) == (1, True) or place != "count"


@pytest.mark.parametrize("place", ["round.py", "count/round.py", "programs/round.py"])
def test_golden_does_not_remove_programs(run: Run, folder: pathlib.Path, place: str) -> None:
    source = folder / "golden" / place
    source.parent.mkdir(parents=True)
    (folder / "round.py").rename(source)
    (folder / "golden" / "golden.yaml").write_text(LIST.replace("round.py", f"golden/{place}"))
    before = contents(folder)
    ran = run("golden", "update")
    assert source.read_text() == ROUND
    if place == "count/round.py":
        assert (ran.code, "error[E863]" in ran.stderr) == (1, True), ran
        assert contents(folder) == before
    else:
        assert ran.code == 0
        assert run("golden", "check").code == 0


@pytest.mark.parametrize("place", ["count", "count/mapreduce"])
def test_reviews_do_not_follow_links(run: Run, folder: pathlib.Path, place: str) -> None:
    (folder / "golden").mkdir()
    (folder / "golden" / "golden.yaml").write_text(LIST)
    assert run("golden", "update").code == 0
    (folder / "golden" / place).rename(folder / "elsewhere")
    (folder / "golden" / place).symlink_to(folder / "elsewhere")
    source = folder / "round.py"
    source.write_text(ROUND.replace("int32", "int64"))
    before = contents(folder / "elsewhere")
    ran = run("golden", "review", input=b"a\n" * 20)
    assert (ran.code, "[E864]" in ran.stderr) == (1, True), ran
    assert contents(folder / "elsewhere") == before


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
