"""`tffc opt`, and the options for passes that `tffc compile` shares."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from tests.cli.conftest import ROUND, Run
from tffc.language import Lambda, Node, wire
from tffc.language.nodes import Block
from tffc.passes import Pass
from tffc.passes.table import PASSES

SHADOWS = "(x: int32 -> (let x: <int32>=<x>,y: int32=x[0] in x))\n"
UNIQUE = "(x: int32 -> (let\n  x_1: <int32>=<\n    x\n  >,\n  y: int32=x_1[0]\n in x_1))\n"
NORMAL = "(x: int32 -> <\n  x\n>)\n"


@pytest.fixture(autouse=True)
def program(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.sexpr").write_text(SHADOWS)
    (tmp_path / "round.py").write_text(ROUND)


def test_text_in_text_out(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names")
    assert (ran.code, ran.stdout, ran.stderr) == (0, UNIQUE, "")


def test_output_is_input(run: Run) -> None:
    once = run("opt", "program.sexpr", "--passes", "unique-names").stdout
    again = run("opt", "-", "--passes", "call-dominant", input=once.encode())
    assert again.stdout == NORMAL


def test_without_passes_the_program_is_printed(run: Run) -> None:
    assert run("opt", "program.sexpr").stdout.startswith("(x: int32 -> (let\n")


def test_messages_in_and_out(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("trace", "round.py", "-o", "round.pb").code == 0
    ran = run("opt", "round.pb", "--passes", "unique-names{stem=v}", "-o", "out.pb")
    assert (ran.code, ran.stdout) == (0, "")
    found = wire.from_bytes((tmp_path / "out.pb").read_bytes())
    assert str(found) == "(v -> (let v_1=federated_sum(v[1]) in <v[0],v_1>))"


def test_pipeline_in_a_file(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\npasses: [unique-names, call-dominant]\n")
    assert run("opt", "program.sexpr", "--pipeline", "mine.yaml").stdout == NORMAL


def test_sections_are_found_and_written(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mean.sexpr").write_text(
        "(v: {float32}@CLIENTS -> federated_mean:({float32}@CLIENTS -> float32@SERVER)(v))"
    )
    args = ("--sections", "mine", "-o", "sums.sexpr")
    assert run("opt", "mean.sexpr", "--passes", "call-dominant,desugar-means", *args).code == 0
    assert len(list((tmp_path / "mine").glob("*.pb"))) == 2
    again = run("opt", "sums.sexpr", "--sections", "mine", "--passes", "call-dominant")
    assert again.stdout == (tmp_path / "sums.sexpr").read_text()
    assert run("opt", "sums.sexpr").stderr.startswith("error[E243]")


def test_sections_are_beside_the_text(run: Run, tmp_path: pathlib.Path) -> None:
    text = "(v: {float32}@CLIENTS -> federated_mean:({float32}@CLIENTS -> float32@SERVER)(v))"
    passes = ("--passes", "call-dominant,desugar-means")
    (tmp_path / "folder").mkdir()
    assert run("opt", "-", *passes, "-o", "folder/sums.sexpr", input=text.encode()).code == 0
    assert len(list((tmp_path / "folder" / "sections").glob("*.pb"))) == 2
    assert run("opt", "folder/sums.sexpr").stdout == (tmp_path / "folder/sums.sexpr").read_text()
    assert run("parse", "folder/sums.sexpr", "-o", "sums.pb").code == 0
    assert run("opt", "-", *passes, "-o", "sums.pb", input=text.encode()).code == 0
    assert not (tmp_path / "sections").exists()


def test_passes_are_read_before_the_program(run: Run) -> None:
    ran = run("opt", "no_such_module", "--passes", "unique-name")
    assert ran.stderr.startswith("error[E361]")


def test_a_name_that_is_not_bound(run: Run) -> None:
    ran = run("opt", "-", "--passes", "call-dominant", input=b"(x: int32 -> &y:int32)")
    assert ran.stderr.startswith("error[E141]: the name `y` of type `int32` is used but not bound")


def test_print_after_change(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names,drop-identity-maps",
              "--print-after", "change")  # fmt: skip
    assert ran.stderr == (
        "; after unique-names, step 1\n(x -> (let\n  x_1=<\n    x\n  >,\n  y=x_1[0]\n in x_1))\n"
    )


def test_print_after_all_and_by_name(run: Run) -> None:
    passes = ("--passes", "unique-names,drop-identity-maps,call-dominant")
    named = run("opt", "program.sexpr", *passes, "--print-after", "call-dominant")
    assert named.stderr == "; after call-dominant, step 3\n(x -> <\n  x\n>)\n"
    every = run("opt", "program.sexpr", *passes, "--print-after", "all")
    assert re.findall("; after .*", every.stderr) == [
        "; after unique-names, step 1",
        "; after drop-identity-maps, step 2",
        "; after call-dominant, step 3",
    ]


def test_print_after_a_pass_that_does_not_run(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names", "--print-after", "unique-name")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E385]: --print-after names 'unique-name', which is not among the passes that run\n"
        " = help: did you mean 'unique-names'?\n",
    )


def test_print_dir(run: Run, tmp_path: pathlib.Path) -> None:
    passes = ("--passes", "unique-names,drop-identity-maps,call-dominant")
    assert run("opt", "program.sexpr", *passes, "--print-dir", "steps").stderr == ""
    assert {p.name for p in (tmp_path / "steps").glob("*.sexpr")} == {
        "00-input.sexpr",
        "01-unique-names.sexpr",
        "02-drop-identity-maps.sexpr",
        "03-call-dominant.sexpr",
    }
    assert (tmp_path / "steps" / "01-unique-names.sexpr").read_text() == UNIQUE


def test_print_dir_that_cannot_be_written(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names", "--print-dir", "round.py")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E386]: cannot write to the folder round.py: File exists\n"
        " = help: give a writable folder, or a new path that can be created\n",
    )


def test_stop_after_and_start_from(run: Run) -> None:
    passes = ("--passes", "unique-names,call-dominant,share-equal-calls")
    assert run("opt", "program.sexpr", *passes, "--stop-after", "unique-names").stdout == UNIQUE
    begun = run("opt", "-", *passes, "--start-from", "share-equal-calls", input=NORMAL.encode())
    assert begun.stdout == NORMAL
    ran = run("opt", "program.sexpr", *passes, "--stop-after", "unique-name")
    assert ran.stderr == (
        "error[E361]: the pipeline '--passes' has no step 'unique-name'\n"
        " = help: did you mean 'unique-names'?\n"
    )


def test_times(run: Run) -> None:
    passes = ("--passes", "unique-names,call-dominant", "--time-passes")
    table = run("opt", "program.sexpr", *passes).stderr
    assert re.sub(r"\d+\.\d+", "0.000000", table) == (
        "pass            seconds  nodes before  nodes after\n"
        "unique-names   0.000000             7            7\n"
        "call-dominant  0.000000             7            3\n"
        "all            0.000000\n"
    )
    steps = json.loads(run("opt", "program.sexpr", *passes, "--timing-format", "json").stderr)
    assert [(s["pass"], s["nodes_before"], s["nodes_after"]) for s in steps] == [
        ("unique-names", 7, 7),
        ("call-dominant", 7, 3),
    ]
    assert all(step["seconds"] >= 0 for step in steps)


def test_what_holds_already_counts(run: Run) -> None:
    unready = run("opt", "program.sexpr", "--passes", "share-equal-calls")
    assert unready.stderr == (
        "error[E360]: in --passes, share-equal-calls requires call-dominant, which no pass before "
        "it ensures\n"
        " = note: in the text:\n"
        "             share-equal-calls\n"
        "             ^^^^^^^^^^^^^^^^^\n"
        " = help: put a pass that ensures it before; `tffc passes` lists what each ensures\n"
    )
    assert run("opt", "-", "--passes", "share-equal-calls", input=NORMAL.encode()).code == 0


def test_roundtrip(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "call-dominant", "--verify-roundtrip")
    assert (ran.code, ran.stdout) == (0, NORMAL)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "Error: give a program, or --reproduce with a file\n"),
        (("a.pb", "--reproduce", "b"), "Error: give a program, or --reproduce with a file\n"),
        (("--reproduce", "b", "--passes", "x"), "Error: a reproducer has its own passes\n"),
        (("program.sexpr", "--passes", "x", "--pipeline", "y"),
         "Error: --pipeline and --passes exclude each other\n"),
    ],
)  # fmt: skip
def test_usage(run: Run, args: tuple[str, ...], message: str) -> None:
    ran = run("opt", *args)
    assert ran.code == 2
    assert ran.stderr.endswith(message)


# Failures.


def drop_bindings(root: Node) -> Node:
    """Drop the bindings of a block."""
    assert isinstance(root, Lambda)
    assert isinstance(root.result, Block)
    return Lambda(root.parameter_name, root.parameter_type, root.result.result)


def swap_type(root: Node) -> Node:
    """Return another type."""
    assert isinstance(root, Lambda)
    return Lambda(root.parameter_name, root.parameter_type, root)


def divide(root: Node) -> Node:
    """Fail."""
    raise ZeroDivisionError("by nothing")


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in (drop_bindings, swap_type, divide):
        name = function.__name__.replace("_", "-")
        monkeypatch.setitem(PASSES, name, Pass(name, function))


@pytest.mark.usefixtures("wrong")
def test_a_pass_that_makes_an_unsound_program(run: Run, tmp_path: pathlib.Path) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names,drop-bindings,call-dominant")
    (path,) = tmp_path.glob("tffc-reproducer-*.txt")
    error = (
        "error[E141]: the name `x_1` of type `<int32>` is used but not bound\n"
        " = note: in the program:\n"
        "             (x -> x_1)\n"
        "                   ^^^\n"
        " = note: the pass drop-bindings, step {step}, has to keep closed\n"
        " = help: a computation has to receive every value it uses as its argument\n"
    )
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"wrote {path.name}; replay with `tffc opt --reproduce {path.name}`\n"
        + error.format(step=2)
    )
    text = path.read_text()
    head, body = text[: text.index("\n(")], text[text.index("\n(") + 1 :]
    assert body == UNIQUE
    assert head.splitlines()[0] == "; tffc reproducer 1"
    assert "; passes: drop-bindings,call-dominant" in head.splitlines()
    assert "; given: closed,unique-names" in head.splitlines()
    assert run("opt", "--reproduce", path.name).refusal == error.format(step=1)


@pytest.mark.unverified
@pytest.mark.usefixtures("wrong")
def test_a_pass_that_changes_the_type(run: Run) -> None:
    ran = run("opt", "program.sexpr", "--passes", "swap-type", "--reproducer", "mine.txt")
    assert ran.stderr == (
        "wrote mine.txt; replay with `tffc opt --reproduce mine.txt`\n"
        "error[E380]: the type of the program was `(int32 -> <int32>)` and now is "
        "`(int32 -> (int32 -> <int32>))`\n"
        " = note: after the pass swap-type, step 1\n"
    )
    unwatched = run("opt", "program.sexpr", "--passes", "swap-type", "--no-verify-each")
    assert unwatched.code == 0


@pytest.mark.usefixtures("wrong")
def test_a_pass_that_fails(run: Run, tmp_path: pathlib.Path) -> None:
    ran = run("opt", "program.sexpr", "--passes", "unique-names,divide")
    assert ran.code == 70
    (path,) = tmp_path.glob("tffc-reproducer-*.txt")
    assert "; failure: ZeroDivisionError: by nothing" in path.read_text().splitlines()
    assert run("opt", "--reproduce", path.name).code == 70


def test_a_failing_pass_of_a_package_that_is_not_installed(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PASSES, "divide", Pass("divide", divide, package="no-such-package"))
    ran = run("opt", "program.sexpr", "--passes", "divide", "--reproducer", "r.txt")
    assert "error[E376]: the pass divide of no-such-package failed with ZeroDivision" in ran.stderr
    assert '"no-such-package": "unknown"' in (tmp_path / "r.txt").read_text()


@pytest.mark.usefixtures("wrong")
def test_the_same_failure_writes_the_same_file(run: Run, tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        run("opt", "program.sexpr", "--passes", "divide")
    assert len(list(tmp_path.glob("tffc-reproducer-*.txt"))) == 1


@pytest.mark.usefixtures("wrong")
def test_sections_are_in_the_reproducer(run: Run, tmp_path: pathlib.Path) -> None:
    mean = "(v: {float32}@CLIENTS -> federated_mean:({float32}@CLIENTS -> float32@SERVER)(v))"
    (tmp_path / "mean.sexpr").write_text(mean)
    passes = "call-dominant,desugar-means,divide"
    run("opt", "mean.sexpr", "--passes", passes, "--reproducer", "r.txt")
    assert run("opt", "--reproduce", "r.txt").code == 70


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(x: int32 -> x)",
            "error[E383]: r.txt is not a reproducer of this version of tffc\n"
            " = note: its first line must be `; tffc reproducer 1`\n",
        ),
        (
            "; tffc reproducer 1\n; passes: x\n",
            "error[E383]: the header of the reproducer r.txt is damaged: 'given'\n",
        ),
    ],
)
def test_a_damaged_reproducer(run: Run, tmp_path: pathlib.Path, text: str, message: str) -> None:
    (tmp_path / "r.txt").write_text(text)
    assert run("opt", "--reproduce", "r.txt").refusal == message


# The same while compiling.


COMPILE = ("compile", "round.py", "--form", "mapreduce", "--out", "bundle")


def test_compile_prints_and_times(run: Run) -> None:
    ran = run(*COMPILE, "--print-after", "call-dominant", "--verify-each", "--time-passes")
    assert ran.code == 0
    assert ran.stderr.startswith("; after call-dominant, step 2\n(count_arg -> (let\n")
    assert "\ncall-dominant " in ran.stderr
    assert ran.stderr.endswith("\nwrote bundle: mapreduce, 10 components\n")


def test_compile_stops(run: Run, tmp_path: pathlib.Path) -> None:
    ran = run(*COMPILE[:-2], "--stop-after", "drop-identity-maps")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.startswith("(count_arg: <state=int32@SERVER,data={int32}@CLIENTS> -> (let\n")
    assert not (tmp_path / "bundle").exists()
    assert run(*COMPILE[:-2], "--stop-after", "call-dominant").code == 0


def test_compile_to_the_end_needs_a_folder(run: Run) -> None:
    ran = run(*COMPILE[:-2])
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith("Error: Missing option '-o' / '--out'.\n")


def test_compile_with_passes(run: Run) -> None:
    assert run(*COMPILE, "--passes", "call-dominant,share-equal-calls").code == 0
    ran = run(*COMPILE, "--force", "--passes", "unique-names")
    assert ran.stderr == (
        "error[E369]: the pipeline '--passes' does not lead to call-dominant form\n"
        " = help: add the pass call-dominant\n"
    )


@pytest.mark.usefixtures("wrong")
def test_compile_writes_a_reproducer(run: Run, tmp_path: pathlib.Path) -> None:
    passes = ("--passes", "call-dominant,drop-bindings,call-dominant")
    ran = run(*COMPILE, *passes, "--verify-each", "--reproducer", "r.txt")
    assert ran.code == 1
    assert not (tmp_path / "bundle").exists()
    assert run("opt", "--reproduce", "r.txt").code == 1


def test_what_no_pass_does_leaves_no_reproducer(run: Run, tmp_path: pathlib.Path) -> None:
    ran = run("compile", "round.py", "--form", "broadcast", "--out", "bundle")
    assert ran.code == 1
    assert not list(tmp_path.glob("tffc-reproducer-*.txt"))
