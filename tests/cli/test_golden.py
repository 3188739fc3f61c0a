"""Golden files, on a small project of the test's own."""

from __future__ import annotations

import pathlib

import pytest

from tests.cli.conftest import ROUND, Run

LIST = "count:\n  target: round.py\n  forms: [mapreduce]\n"


@pytest.fixture(autouse=True)
def project(tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project whose golden files are as they should be."""
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "golden.yaml").write_text(LIST)
    assert run("golden", "update").code == 0
    return tmp_path


def files(project: pathlib.Path) -> list[str]:
    folder = project / "golden"
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_a_folder_an_example(project: pathlib.Path) -> None:
    assert files(project) == [
        "count/mapreduce/components.sexpr",
        "count/mapreduce/manifest.json",
        "count/mapreduce/summary.txt",
        "count/program.sexpr",
        "golden.yaml",
    ]
    manifest = (project / "golden" / "count" / "mapreduce" / "manifest.json").read_text()
    assert '"form": "mapreduce"' in manifest
    assert "versions" not in manifest
    assert "sha256" not in manifest


def test_what_is_as_it_was_passes(run: Run) -> None:
    ran = run("golden", "check")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "1 examples are as they were\n")


def test_what_has_changed_is_shown_as_a_diff(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "count" / "program.sexpr").write_text("(count_arg -> count_arg)\n")
    ran = run("golden", "check")
    assert ran.code == 1
    assert ran.stdout == (
        "--- golden/count/program.sexpr\n"
        "+++ printed/count/program.sexpr\n"
        "@@ -1 +1,6 @@\n"
        "-(count_arg -> count_arg)\n"
        "+(count_arg -> (let\n"
        "+  fc_count_symbol_0=federated_sum(count_arg[1])\n"
        "+ in <\n"
        "+  count_arg[0],\n"
        "+  fc_count_symbol_0\n"
        "+>))\n"
    )
    assert ran.stderr == ("1 files differ, 0 are left over; accept with `tffc golden update`\n")


def test_new_and_old_files_differ_too(run: Run, project: pathlib.Path) -> None:
    folder = project / "golden" / "count"
    (folder / "program.sexpr").rename(folder / "old.sexpr")
    lines = run("golden", "check").stdout.splitlines()
    assert [line for line in lines if line.startswith(("---", "+++"))] == [
        "--- golden/count/old.sexpr",
        "+++ /dev/null",
        "--- /dev/null",
        "+++ printed/count/program.sexpr",
    ]


def test_update_accepts(run: Run, project: pathlib.Path) -> None:
    before = files(project)
    (project / "golden" / "count" / "program.sexpr").write_text("")
    (project / "golden" / "count" / "old.sexpr").write_text("")
    ran = run("golden", "update")
    assert ran.stderr == "golden/count/old.sexpr\ngolden/count/program.sexpr\n2 changes\n"
    assert files(project) == before
    assert run("golden", "check").code == 0


def test_what_belongs_to_no_example_is_found_and_removed(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "forgotten").mkdir()
    ran = run("golden", "check")
    assert (ran.code, ran.stdout) == (1, "golden/forgotten belongs to no example\n")
    assert run("golden", "check", "count").code == 0
    assert run("golden", "update").stderr == "golden/forgotten removed\n1 changes\n"
    assert not (project / "golden" / "forgotten").exists()


def test_no_update_where_ci_is_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    ran = run("golden", "update")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E805]: golden files are not updated where CI is set\n"
        " = help: update them on your machine, review the change and commit it\n",
    )


def test_a_folder_without_a_list_is_refused(run: Run) -> None:
    ran = run("golden", "check", "--folder", "elsewhere")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E800]: can not read elsewhere/golden.yaml: No such file or directory\n"
        " = help: give the folder of the golden files with --folder\n",
    )


def test_a_name_that_is_not_listed_is_refused(run: Run) -> None:
    ran = run("golden", "check", "cuont")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E803]: golden/golden.yaml lists no example 'cuont'\n"
        " = help: did you mean 'count'?\n",
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a: [",
            "error[E801]: golden/golden.yaml is not YAML\n"
            " = note: while parsing a flow node\n"
            "         expected the node content, but found '<stream end>'\n"
            '           in "<unicode string>", line 1, column 5:\n'
            "             a: [\n"
            "                 ^\n",
        ),
        ("[a]", "error[E802]: golden/golden.yaml has to be a mapping of names to examples\n"),
        (
            "a: {forms: [mapreduce]}",
            "error[E804]: in golden/golden.yaml, the example 'a' is not right\n"
            " = help: give it a target, such as examples/round.py:NAME, and perhaps a list of "
            "forms\n",
        ),
    ],
)
def test_a_list_that_is_none_is_refused(
    run: Run, project: pathlib.Path, text: str, error: str
) -> None:
    (project / "golden" / "golden.yaml").write_text(text)
    ran = run("golden", "check")
    assert (ran.code, ran.stderr) == (1, error)
