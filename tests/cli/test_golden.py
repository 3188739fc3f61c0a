"""Golden files, on a small project of the test's own."""

from __future__ import annotations

import pathlib
import shutil
import sys

import pytest

from tests.cli.conftest import ROUND, Ran, Run
from tffc.language.notation import parse
from tffc.passes import Pass
from tffc.passes.table import PASSES

LIST = "count:\n  target: round.py\n  forms: [mapreduce]\n"


@pytest.fixture(autouse=True)
def project(tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project whose golden files are up to date."""
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
        "count/mapreduce/passes/01-drop-identity-maps.sexpr",
        "count/mapreduce/passes/02-call-dominant.sexpr",
        "count/mapreduce/passes/03-lower-select.sexpr",
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
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "1 example as before\n")


def test_what_has_changed_is_shown_as_a_diff(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "count" / "program.sexpr").write_text("(count_arg -> count_arg)\n")
    ran = run("golden", "check")
    assert ran.code == 1
    assert ran.stdout == (
        "--- golden/count/program.sexpr\n"
        "+++ golden/count/program.sexpr (printed now)\n"
        "@@ -1 +1,6 @@\n"
        "-(count_arg -> count_arg)\n"
        "+(count_arg -> (let\n"
        "+  fc_count_symbol_0=federated_sum(count_arg[1])\n"
        "+ in <\n"
        "+  count_arg[0],\n"
        "+  fc_count_symbol_0\n"
        "+>))\n"
    )
    assert ran.stderr == "1 change; review them with `tffc golden review`\n"


def test_new_and_old_files_differ_too(run: Run, project: pathlib.Path) -> None:
    folder = project / "golden" / "count"
    (folder / "program.sexpr").rename(folder / "old.sexpr")
    lines = run("golden", "check").stdout.splitlines()
    assert [line for line in lines if line.startswith(("---", "+++"))] == [
        "--- /dev/null",
        "+++ golden/count/program.sexpr (printed now)",
        "--- golden/count/old.sexpr",
        "+++ /dev/null",
    ]


def test_update_accepts(run: Run, project: pathlib.Path) -> None:
    before = files(project)
    (project / "golden" / "count" / "program.sexpr").write_text("")
    (project / "golden" / "count" / "old.sexpr").write_text("")
    ran = run("golden", "update")
    assert ran.stderr == (
        "golden/count/program.sexpr written\ngolden/count/old.sexpr removed\n2 changes\n"
    )
    assert files(project) == before
    assert run("golden", "check").code == 0


def test_what_belongs_to_no_example_is_found_and_removed(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "forgotten").mkdir()
    ran = run("golden", "check")
    assert (ran.code, ran.stdout) == (1, "golden/forgotten belongs to no example\n")
    assert run("golden", "check", "count").code == 0
    assert run("golden", "update").stderr == "golden/forgotten removed\n1 change\n"
    assert not (project / "golden" / "forgotten").exists()


def test_what_people_keep_beside_the_examples_stays(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "README.md").write_text("What these are.")
    (project / "golden" / ".gitattributes").write_text("*.sexpr linguist-generated")
    assert run("golden", "check").code == 0
    assert run("golden", "update").stderr == "0 changes\n"
    assert (project / "golden" / ".gitattributes").exists()


def test_the_end_of_the_last_line_counts(run: Run, project: pathlib.Path) -> None:
    path = project / "golden" / "count" / "program.sexpr"
    path.write_text(path.read_text().rstrip("\n"))
    lines = run("golden", "check").stdout.splitlines()
    assert lines[-2:] == [" >))", "-\\ No newline at end of file"]


@pytest.mark.parametrize("command", ["update", "review"])
def test_no_update_where_ci_is_set(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CI", "true")
    assert run("golden", command).refusal == (
        "error[E805]: golden files are not updated where CI is set\n"
        " = help: update them on your machine, review the change and commit it\n"
    )


BROKEN = """
@tff.federated_computation(tff.types.at_server(np.int32))
def total(state):
    return state
"""


@pytest.fixture
def broken(project: pathlib.Path) -> pathlib.Path:
    """The project with a changed example, and one that is not a round and so has no form."""
    (project / "total.py").write_text(f"import numpy as np\nimport tffc as tff\n{BROKEN}")
    (project / "round.py").write_text(ROUND.replace("state, tff", "state + 1, tff"))
    (project / "round.py").write_text(ROUND.replace("count", "number"))
    entries = "total:\n  target: total.py\n  forms: [mapreduce]\n"
    (project / "golden" / "golden.yaml").write_text(entries + LIST)
    return project


@pytest.mark.usefixtures("broken")
def test_an_example_that_fails_does_not_hide_the_others(run: Run) -> None:
    ran = run("golden", "check")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E510]: ")
    assert " = note: in the golden example 'total'\n" in ran.stderr
    assert "--- golden/count/program.sexpr\n" in ran.stdout


def test_an_update_is_whole_or_not_at_all(run: Run, broken: pathlib.Path) -> None:
    path = broken / "golden" / "count" / "program.sexpr"
    before = path.read_text()
    assert run("golden", "update").refusal.endswith("no golden file was changed\n")
    assert path.read_text() == before
    assert run("golden", "update", "count").code == 0
    assert path.read_text() == before.replace("count", "number")


def test_a_folder_that_cannot_be_written_is_left_as_it_was(
    run: Run, project: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "round.py").write_text(ROUND.replace("count", "number"))
    (project / "golden" / "golden.yaml").write_text(LIST + LIST.replace("count", "more"))
    before = {name: (project / "golden" / name).read_bytes() for name in files(project)}

    rename = pathlib.Path.rename

    def fail_for_the_second(path: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        if target.name == "more":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(pathlib.Path, "rename", fail_for_the_second)
    assert run("golden", "update").refusal == (
        "error[E851]: cannot write to golden: No space left on device\n"
        " = note: no golden file was changed\n"
        " = help: make space on the disk, or let the folder be written\n"
    )
    assert {name: (project / "golden" / name).read_bytes() for name in files(project)} == before
    assert sorted(path.name for path in (project / "golden").iterdir()) == ["count", "golden.yaml"]


def test_a_target_is_found_from_the_folder_of_the_project(
    run: Run, project: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "golden" / "golden.yaml").write_text(LIST.replace("round.py", "round:count"))
    monkeypatch.delitem(sys.modules, "round", raising=False)
    monkeypatch.chdir(project.parent)
    ran = run("golden", "check", "--folder", f"{project.name}/golden")
    assert (ran.code, ran.stderr) == (0, "1 example as before\n")


def test_a_pipeline_of_ones_own(run: Run, project: pathlib.Path) -> None:
    (project / "mine.yaml").write_text(
        "name: mine\npasses: [call-dominant, {unique-names: {stem: v}}]\n"
    )
    (project / "golden" / "golden.yaml").write_text(f"{LIST}  pipeline: mine.yaml\n")
    assert run("golden", "update").code == 0
    folder = project / "golden" / "count" / "mapreduce" / "passes"
    printed = {path.name: path.read_text() for path in folder.iterdir()}
    assert printed == {
        "01-call-dominant.sexpr": "; as before\n",
        "02-unique-names.sexpr": (
            "(v -> (let\n  v_1=federated_sum(v[1])\n in <\n  v[0],\n  v_1\n>))\n"
        ),
    }


@pytest.mark.unverified
def test_what_each_pass_makes_is_verified(
    run: Run, project: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Pass("wrong", lambda program: parse("1"))
    monkeypatch.setitem(PASSES, "wrong", wrong)
    (project / "mine.yaml").write_text("name: mine\npasses: [wrong, call-dominant]\n")
    (project / "golden" / "golden.yaml").write_text(f"{LIST}  pipeline: mine.yaml\n")
    assert "after the pass wrong, step 1\n" in run("golden", "update").stderr


def test_annotations_for_github(run: Run, broken: pathlib.Path) -> None:
    (broken / "golden" / "old,er").mkdir()
    ran = run("golden", "check", "--format", "github")
    assert ran.code == 1
    found = [line for line in ran.stdout.splitlines() if line.startswith("::")]
    assert found[0].startswith(
        "::error file=golden/count/program.sexpr,line=1,title=the golden file differs::"
        "--- golden/count/program.sexpr%0A+++ golden/count/program.sexpr (printed now)%0A@@ -1"
    )
    assert found[-2:] == [
        "::error file=golden/old%2Cer,line=1,title=the golden file differs::"
        "golden/old,er belongs to no example",
        "::error file=total.py,line=5,title=E510::a round takes two arguments, the server state "
        "and the clients' data; found `(int32@SERVER -> int32@SERVER)`",
    ]


CHANGED = ROUND.replace("count", "number")


def review(run: Run, answers: str) -> Ran:
    return run("golden", "review", input=answers.encode())


def test_review_accepts_rejects_and_skips(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "count" / "old.sexpr").write_text("old\n")
    (project / "golden" / "count" / "program.sexpr").write_text("mine\n")
    (project / "golden" / "count" / "mapreduce" / "summary.txt").write_text("other\n")
    (project / "golden" / "forgotten").mkdir()
    ran = review(run, "r\ns\na\na\n")
    assert ran.code == 1
    assert ran.stdout.count("+++ ") == 3
    assert ran.stderr == (
        "change 1 of 4: [a]ccept, accept [e]xample, [r]eject, [s]kip or [q]uit: r\n"
        "change 2 of 4: [a]ccept, accept [e]xample, [r]eject, [s]kip or [q]uit: s\n"
        "change 3 of 4: [a]ccept, accept [e]xample, [r]eject, [s]kip or [q]uit: a\n"
        "change 4 of 4: [a]ccept, accept [e]xample, [r]eject, [s]kip or [q]uit: a\n"
        "golden/count/program.sexpr needs a fix in the program\n"
        "2 accepted, 1 rejected, 1 left\n"
    )
    assert (project / "golden" / "count" / "mapreduce" / "summary.txt").read_text() == "other\n"
    assert (project / "golden" / "count" / "program.sexpr").read_text() == "mine\n"
    assert not (project / "golden" / "count" / "old.sexpr").exists()
    assert not (project / "golden" / "forgotten").exists()


def test_review_of_everything_leaves_nothing(run: Run, project: pathlib.Path) -> None:
    shutil.rmtree(project / "golden" / "count")
    ran = review(run, "a\n" * 7)
    assert (ran.code, ran.stderr.splitlines()[-1]) == (0, "7 accepted, 0 rejected, 0 left")
    assert run("golden", "check").code == 0


def test_review_of_a_whole_example(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "golden.yaml").write_text(LIST + LIST.replace("count", "more"))
    shutil.rmtree(project / "golden" / "count")
    ran = review(run, "s\ne\nq\n")
    count = len(list((project / "golden" / "count").rglob("*.*")))
    assert ran.stderr.splitlines()[-1] == f"{count} accepted, 0 rejected, {count + 2} left"
    assert not (project / "golden" / "more").exists()
    assert not (project / "golden" / "count" / "program.sexpr").exists()


def test_review_can_be_left(run: Run, project: pathlib.Path) -> None:
    shutil.rmtree(project / "golden" / "count")
    ran = review(run, "a\nperhaps\nq\n")
    assert (ran.code, ran.stderr.splitlines()[-1]) == (0, "1 accepted, 0 rejected, 6 left")
    assert "'perhaps' is not one of" in ran.stderr
    assert files(project) == ["count/program.sexpr", "golden.yaml"]


def test_review_of_nothing(run: Run) -> None:
    assert review(run, "") == Ran(0, "", "0 accepted, 0 rejected, 0 left\n")


def test_a_folder_without_a_list_is_refused(run: Run) -> None:
    assert run("golden", "check", "--folder", "elsewhere").refusal == (
        "error[E800]: cannot read elsewhere/golden.yaml: No such file or directory\n"
        " = help: write one, or give its folder; `tffc golden --help` shows one, and --folder "
        "names its folder\n"
    )


def test_a_name_that_is_not_listed_is_refused(run: Run) -> None:
    assert run("golden", "check", "cuont").refusal == (
        "error[E803]: golden/golden.yaml lists no example 'cuont'\n = help: did you mean 'count'?\n"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a: [",
            "error[E800]: golden/golden.yaml is not YAML\n"
            " = note: while parsing a flow node\n"
            "         expected the node content, but found '<stream end>'\n"
            '           in "<unicode string>", line 1, column 5:\n'
            "             a: [\n"
            "                 ^\n",
        ),
        ("[a]", "error[E800]: golden/golden.yaml must be a mapping of names to examples\n"),
        (
            "a: {forms: [mapreduce]}",
            "error[E800]: in golden/golden.yaml, the example 'a' has no target\n"
            " = help: give it a target, such as examples/round.py:NAME, and perhaps a list of "
            "forms\n",
        ),
        (
            "a: {target: round.py, form: mapreduce}",
            "error[E800]: in golden/golden.yaml, the example 'a' has the key 'form', but there are "
            "only target, forms, pipeline, allow-impure-duplicates, audit\n"
            " = help: write a list: forms: [mapreduce]\n",
        ),
        (
            "a: {target: round.py, forms: mapreduce}",
            "error[E800]: in golden/golden.yaml, the example 'a' cannot have 'mapreduce' as "
            "forms\n"
            " = help: write a list: forms: [mapreduce]\n",
        ),
        (
            "a: {target: round.py, pipelin: mine.yaml}",
            "error[E800]: in golden/golden.yaml, the example 'a' has the key 'pipelin', but there "
            "are only target, forms, pipeline, allow-impure-duplicates, audit\n"
            " = help: did you mean 'pipeline'?\n",
        ),
        (
            "a: round.py",
            "error[E800]: in golden/golden.yaml, the example 'a' is not a mapping\n"
            " = help: give it a target, such as examples/round.py:NAME, and perhaps a list of "
            "forms\n",
        ),
        (
            "../a: {target: round.py}",
            "error[E800]: in golden/golden.yaml, '../a' cannot be the name of an example\n"
            " = help: use letters, digits, '_', '-' and '.': it names a folder\n",
        ),
        (
            "golden.yaml: {target: round.py}",
            "error[E800]: in golden/golden.yaml, 'golden.yaml' cannot be the name of an example\n"
            " = help: use letters, digits, '_', '-' and '.': it names a folder\n",
        ),
    ],
)
def test_a_list_that_is_none_is_refused(
    run: Run, project: pathlib.Path, text: str, error: str
) -> None:
    (project / "golden" / "golden.yaml").write_text(text)
    assert run("golden", "check").refusal == error


NOISY = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation(np.float32)
def scale(x):
    return x * 0.3


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def count(state, data):
    moved = tff.federated_map(scale, data)
    return state, tff.federated_sum(moved)
"""


@pytest.fixture
def scaled(project: pathlib.Path, run: Run) -> pathlib.Path:
    """The project with a changed constant in a section of its program."""
    (project / "round.py").write_text(NOISY)
    (project / "golden" / "golden.yaml").write_text(LIST.replace("round.py", "round.py:count"))
    assert run("golden", "update").code == 0
    (project / "round.py").write_text(NOISY.replace("0.3", "0.6"))
    return project


def test_the_constant_in_a_section_is_shown(run: Run, scaled: pathlib.Path) -> None:
    ran = run("golden", "review", input=b"a\na\na\n")
    assert (
        "   Identity(Mul) T=float32\n"
        "-  Mul(argument.0, float32 0.3) T=float32\n"
        "+  Mul(argument.0, float32 0.6) T=float32\n"
        "   result: Identity\n"
    ) in ran.stdout
    assert " is called at round.py:13: moved = tff.federated_map(scale, data)\n" in ran.stdout
    assert run("golden", "check").code == 0


def test_golden_files_without_a_list_of_sections_are_as_before(
    run: Run, scaled: pathlib.Path
) -> None:
    (scaled / "round.py").write_text(NOISY)
    sections = scaled / "golden" / "count" / "sections.txt"
    sections.unlink()
    assert run("golden", "check").code == 0
    assert run("golden", "update").stderr == f"{sections.relative_to(scaled)} written\n1 change\n"


def test_a_list_of_sections_that_is_left_over_differs(run: Run, scaled: pathlib.Path) -> None:
    (scaled / "round.py").write_text(ROUND)
    assert "+++ /dev/null" in run("golden", "check").stdout


UNSTEADY = """\
import os
import random
import time

import numpy as np
import tensorflow as tf
import tffc as tff

drawn = random.getrandbits(30), int(np.random.randint(2**30))

def made(number):
    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def program(state, data):
        steady = tff.federated_value(drawn, tff.SERVER)
        return state, tff.federated_value(number(), tff.SERVER)
    return program

steady = made(lambda: random.getrandbits(30))
clock = made(lambda: time.time_ns() % 2**30)
entropy = made(lambda: int(np.random.default_rng().integers(2**30)))
hashed = made(lambda: int("".join(str(ord(letter) - 97) for letter in set("abcdefghi"))))
steady_buffered = tff.buffered(discount=lambda age: tf.exp(-tf.cast(age, tf.float32)))(steady)
"""


def test_an_example_without_golden_files_is_one_line(run: Run, project: pathlib.Path) -> None:
    shutil.rmtree(project / "golden" / "count")
    ran = run("golden", "check")
    said = "no golden files yet: count; `tffc golden update` writes them\n"
    assert (ran.code, ran.stdout, ran.stderr) == (1, "", said)
    ran = run("golden", "check", "--format", "github")
    assert ran.stdout.count("::error ") == 1
    assert "file=golden/golden.yaml" in ran.stdout


@pytest.mark.slow
def test_programs_that_no_golden_file_holds_are_named(run: Run, project: pathlib.Path) -> None:
    names = ["clock", "entropy", "hashed", "steady", "steady_buffered"]
    (project / "unsteady.py").write_text(UNSTEADY)
    listed = "".join(f"{name}:\n  target: unsteady.py:{name}\n" for name in names)
    (project / "golden" / "golden.yaml").write_text(LIST + listed)
    run("golden", "update")
    for name in ["count", *names]:
        (project / "golden" / name / "program.sexpr").write_text("(x -> x)\n")
    ran = run("golden", "check")
    assert ran.code == 1
    line = "unsteady.py:15: return state, tff.federated_value(number(), tff.SERVER)"
    assert ran.stderr.splitlines() == [
        "6 changes; review them with `tffc golden review`",
        *(f"{name} is a different program each time it is traced: {line}" for name in names[:3]),
    ]


def test_a_program_that_cannot_be_traced_again(run: Run, project: pathlib.Path) -> None:
    (project / "golden" / "count" / "program.sexpr").write_text("(x -> x)\n")
    fails = "import os\nassert os.environ.get('PYTHONHASHSEED') not in ('1', '2')\n"
    (project / "round.py").write_text(fails + ROUND)
    assert run("golden", "check").stderr == "1 change; review them with `tffc golden review`\n"
