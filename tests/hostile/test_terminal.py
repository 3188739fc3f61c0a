"""What leaves tffc shows what is there: nothing in a name acts on a terminal or hides in it."""

from __future__ import annotations

import io
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.cli.terminal import open_terminal
from tests.processes import ENVIRONMENT, run_python
from tests.refusals import refusal
from tffc.backends import compile_form
from tffc.cli.annotations import annotation
from tffc.cli.diagnostics import render
from tffc.cli.round_table import RoundTable
from tffc.language import (
    Binding,
    Block,
    Call,
    Compiled,
    FunctionType,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
    StructType,
    TensorType,
    to_array,
    wire,
)
from tffc.language.invariants import CLOSED, UNIQUE_NAMES
from tffc.language.notation import compact, formatted, parse, sections, structural, typed
from tffc.language.types import AbstractType
from tffc.language.verify import verify
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.state import State
from tffc.runtime.runs.metrics import CsvStream, MetricsRow
from tffc.runtime.runs.plot import plot
from tffc.support.errors import (
    BundleError,
    FormError,
    LoadError,
    Span,
    TffcError,
    VerificationError,
)
from tffc.support.printable import printable, printable_lines

HOSTILE = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\rover\x08",
    "a\r\nerror[E000]: forged",
    "\x00\x7f\x9b",
    "\u202ereversed\u202c\u2066\u2069",
    "\u200e\u200f\u061c",
    "\u200b\u200d\ufeff\u00ad\u2060\U000e0041",
    "\u2028\u2029\x85\x0b\x0c",
    "\u3164\u115f\uffa0\ufe0f\u2800",
    "\u00a0\u3000\u2003",
    "\ue000\U0010ffff",
)
VISIBLE = (
    "plain",
    "<lambda>_arg",
    "a b",
    "größe",
    "日本語",
    "имя",
    "😀",
    "a\\x1b",
    "[red]",
    ":smile:",
    "'\"`",
)
INT = TensorType(np.int32)


def is_seen(text: str) -> bool:
    """Whether all of a text can be seen, but for line breaks."""
    return all(line == printable(line) for line in text.split("\n"))


def program(name: str) -> Node:
    """A program in which all that can have a name has this one."""
    made = StructType.of((name,), (INT,))
    one = Literal(to_array(np.int32(1)), INT)
    bound = Reference(name, made, context=name)
    unknown = Intrinsic(name, FunctionType(INT, INT))
    section = Compiled("xla", b"", FunctionType(made, INT), name)
    chosen = Selection.by_name(Reference(name, made), name)
    pairs = [(name, Call(unknown, chosen)), (None, Call(section, bound))]
    inner = Block(
        (Binding(name, StructNode.from_pairs([(name, one)])),), StructNode.from_pairs(pairs)
    )
    return Lambda(name, made, inner)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("style", [compact, formatted, structural, typed])
def test_no_name_in_a_program_acts(style: Callable[[Node], str], name: str) -> None:
    text = style(program(name))
    assert is_seen(text)
    assert len(text.split("\n")) == len(style(program("name")).split("\n"))


@pytest.mark.parametrize("name", VISIBLE)
def test_names_that_can_be_seen_stay(name: str) -> None:
    assert printable(name) == name
    assert compact(Reference(name, INT)) == name
    assert str(StructType.of((name,), (INT,))) == f"<{name}=int32>"


@pytest.mark.parametrize("name", [*HOSTILE, *VISIBLE])
def test_typed_text_keeps_every_name(name: str) -> None:
    node = program(name)
    assert parse(typed(node), sections(node)) == node


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_in_a_type_acts(name: str) -> None:
    for found in (StructType.of((name,), (INT,)), AbstractType(name)):
        assert is_seen(str(found))
        assert "\n" not in str(found)
        assert is_seen(found.formatted_representation())


def test_every_character_is_shown_or_escaped() -> None:
    for number in (*range(0x20000), *range(0xE0000, 0xE0200), sys.maxunicode):
        letter = chr(number)
        seen = printable(letter)
        assert seen.isprintable()
        assert seen == letter or (seen.isascii() and seen[0] == "\\")
        assert printable(seen) == seen


def test_lines_keep_what_lays_them_out() -> None:
    assert printable_lines("a\n\tb\r\n\x1bc\u2028") == "a\n\tb\\r\n\\x1bc\\u2028"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_in_a_refusal_acts(name: str) -> None:
    free = Reference(name, StructType.of((name,), (INT,)))
    lambda_ = Lambda(name, INT, Reference(name, INT))
    twice = StructNode((lambda_, lambda_), (None, None))
    for node, invariant in ((free, CLOSED), (twice, UNIQUE_NAMES)):
        with pytest.raises(TffcError) as refused:
            verify(node, {invariant})
        forged = [line for line in str(refused.value).split("\n") if line.startswith("error[")]
        assert is_seen(str(refused.value))
        assert is_seen(render(refused.value).replace("\x1b[", ""))
        assert forged == []


def test_the_text_of_an_unbound_name() -> None:
    assert refusal(VerificationError, verify, Reference("a\x1b[2J\nb\u202e", INT), {CLOSED}) == (
        "the name `a\\x1b[2J\\nb\\u202e` of type `int32` is used but not bound [E141]\n"
        "  note: in the program:\n"
        "    a\\x1b[2J\\nb\\u202e\n"
        "    ^^^^^^^^^^^^^^^^^\n"
        "  help: a computation has to receive every value it uses as its argument"
    )


def test_an_operator_that_is_not_known() -> None:
    name = "\x1b[31mred\n"
    call = Call(Intrinsic(name, FunctionType(INT, INT)), Reference("x", INT))
    assert is_seen(refusal(FormError, compile_form, Lambda("x", INT, call), "mapreduce"))


def test_a_place_in_a_program_with_a_zero_in_its_text() -> None:
    zero = Literal(to_array(b"\0"), TensorType(np.str_))
    body = StructNode((zero, Reference("\0", INT), Reference("y", INT)), ("\0", None, None))
    with pytest.raises(TffcError) as refused:
        verify(Lambda("\0", INT, body), {CLOSED})
    (note,) = refused.value.notes
    first, line, carets = note.split("\n")
    assert (first, line) == ("in the program:", "    (\\x00 -> <\\x00=b'\\x00',\\x00,y>)")
    assert carets == " " * line.index("y") + "^"


def test_paths_are_of_one_line() -> None:
    for error in (
        BundleError("E600", "a\nb"),
        LoadError("E850", "a\nb", notes=("c\nd",), help="e\n"),
    ):
        assert len(str(error).split("\n")) == 1 + len(error.notes) + (error.help is not None)


def test_a_line_of_source_is_shown_above_its_caret() -> None:
    span = Span("a\nb.py", 1, 2, 1, 3, text="\x1b\u202ex")
    lines = render(TffcError("E000", "m", span=span)).split("\n")
    assert lines[1].endswith(" a\\nb.py:1:2")
    assert lines[3].endswith(" \\x1b\\u202ex")
    assert is_seen("".join(lines).replace("\x1b[", ""))


def test_columns_of_a_table() -> None:
    type = StructType.of(("a\x1b[8m\n", "b"), (INT, TensorType(np.str_)))
    output = (np.int32(1), "\x1b[8m\u202e".encode())
    finished = Round(1, (), State(None, "", 1), output)
    lines = list(RoundTable(1, type).lines(finished))
    assert all(line == printable(line) for line in lines)
    assert "a\\x1b[8m\\n" in lines[0]


def test_annotations_begin_no_other_command() -> None:
    line = annotation("a\n::error::b", 1, "t\x1b", "m\n::set-env::\u202e")
    assert "\n" not in line
    assert is_seen(line)


def test_a_picture_is_xml_whatever_names_it_has() -> None:
    assert "a\\x00&lt;\\ufffe" in plot([MetricsRow(1, 1, 0, {"a\x00<\ufffe": 1.0})])


def test_the_names_of_columns_of_csv() -> None:
    stream = io.StringIO()
    CsvStream(stream).add(MetricsRow(1, 3, 0, {"a\x1b\n": 2}))
    assert stream.getvalue() == "round,clients,skipped,metrics.a\\x1b\\n\n1,3,0,2\n"


def write_hostile(folder: pathlib.Path) -> None:
    """A program with names that act on a terminal, as a message."""
    name = "\x1b[31m\u202e\r\x9b"
    made = StructNode.from_pairs(
        [(name, Call(Intrinsic(name, FunctionType(INT, INT)), Reference("x", INT)))]
    )
    (folder / "hostile.pb").write_bytes(wire.to_bytes(Lambda("x", INT, made)))


@pytest.mark.parametrize("command", ["print hostile.pb", "check hostile.pb --form mapreduce"])
def test_the_same_with_and_without_a_terminal(tmp_path: pathlib.Path, command: str) -> None:
    write_hostile(tmp_path)
    words = [sys.executable, "-m", "tffc", *command.split()]
    environment = {**ENVIRONMENT, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}
    piped = subprocess.run(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    ours, theirs = open_terminal(columns=1000)
    shown = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 4096):
            text += chunk
    except OSError:
        pass  # The terminal's way to say that nobody writes any more.
    os.close(ours)
    assert shown.wait() == piped.returncode
    # The terminal itself returns the carriage at the end of each line.
    assert text.replace(b"\r\n", b"\n") == piped.stdout
    assert is_seen(piped.stdout.decode())
    assert b"\\x1b[31m\\u202e\\r\\x9b" in piped.stdout


def test_what_is_wrong_with_the_command_line(tmp_path: pathlib.Path) -> None:
    ran = run_python("-m", "tffc", "print", "--style", "\x1b[31m", "a\nb", cwd=tmp_path)
    assert ran.returncode == 2
    assert is_seen(ran.stderr)
