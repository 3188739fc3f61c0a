"""Readers of a stranger's text take time in proportion to it, whatever stands in it."""

from __future__ import annotations

import random
import re

import pytest

from tests.hostile import reading_times
from tests.refusals import refusal
from tffc.assurance.audit.patterns import TOKEN, Pattern
from tffc.graphs.operations.effects import calls_python
from tffc.graphs.proto import GraphDef
from tffc.language.notation import parse
from tffc.language.notation.pygments_lexer import NotationLexer
from tffc.passes.pipeline_text import parse_passes
from tffc.passes.table import PASSES
from tffc.runtime.frameworks.tensorflow.runner import _failed_node, _first_line
from tffc.support.errors import NotationError, PipelineError

EXPRESSIONS = {
    "first_steps": r"(?:.*\.)?",
    "steps": r"(?:[.\[].*)?",
    "first": r"[^.\[\]]+",
    "step": r"(?:\.[^.\[\]]+|\[[0-9]+\])",
    "index": r"\[[0-9]+\]",
    "any": r"[^.\[\]]*",
}
"""What the tokens of a pattern say, as regular expressions, which take very long for some."""


def is_covered(pattern: str, path: str) -> bool:
    """Whether a pattern covers a path, by trying all ways that its wildcards may match."""
    tokens = TOKEN.finditer(pattern)
    parts = (EXPRESSIONS.get(each.lastgroup or "") or re.escape(each[0]) for each in tokens)
    return re.match("".join(parts) + r"(?=[.\[]|\Z)", path, re.DOTALL) is not None


def test_patterns_cover_what_their_expressions_match() -> None:
    draw = random.Random(7)
    steps = ["a", "b", ".", "*", "**", ".*", ".**", "[*]", "[0]", "["]
    letters = ["a", "b", ".", "[0]", "[12]", "ab", "[", "]", "\n"]
    answers: list[bool] = []
    for _ in range(500):
        pattern = "".join(draw.choices(steps, k=draw.randint(1, 6)))
        path = "".join(draw.choices(letters, k=draw.randint(0, 6)))
        answers.append(bool(Pattern(pattern).covered([path])))
        is_same = path == pattern or path.startswith((f"{pattern}.", f"{pattern}["))
        assert answers[-1] == (is_same or is_covered(pattern, path)), (pattern, path)
    assert 20 < sum(answers) < 480


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 40 + "b", "a" * 400),
        ("**.a" + ".**.a" * 40 + ".b", "a" + ".a" * 200),
        (".*" * 40 + ".b", ".a" * 300),
        ("[*]" * 40 + "b", "[1]" * 200),
    ],
)
def test_wildcards_that_match_in_many_ways(pattern: str, path: str, hang: None) -> None:
    assert Pattern(pattern).covered([path]) == []


@pytest.mark.slow
def test_many_passes(hang: None) -> None:
    name = next(iter(PASSES))
    assert len(parse_passes(f"{name} , " * 50_000 + name, PASSES).steps) == 50_001


def test_a_number_of_very_many_digits() -> None:
    text = f"unique-names{{prefix={'9' * 5000}}}"
    assert refusal(PipelineError, parse_passes, text, PASSES)


def test_a_string_without_an_end(hang: None) -> None:
    """The text after it is not searched for others, from each of its characters."""
    text = '"' + '\\"' * 50_000
    assert "[E236]" in refusal(NotationError, parse, text, {})
    assert len(list(NotationLexer().get_tokens(text))) < 10


def test_names_of_callbacks(hang: None) -> None:
    assert not calls_python("python" * 300_000)
    assert calls_python("xla_ffi_python_cpu_callback")
    assert calls_python("a callback, python_gpu_callback")
    assert not calls_python("python a callback")
    assert not calls_python("callback_python")


def test_messages_with_many_names_of_nodes(hang: None) -> None:
    """A message may quote what clients have."""
    message = "{{node " * 200_000
    assert list(_failed_node(message, GraphDef())) == []
    assert _first_line(message) == message.strip()
    assert _first_line("{{node a/b}} is bad {{function_node c}}\nmore") == "is bad"


QUICK = ("typed text", "messages", "passes", "paths of patterns", "names of callbacks")
"""Readers that take a moment for all pieces."""


@pytest.mark.long
@pytest.mark.parametrize("reader", QUICK)
def test_no_reader_takes_longer_and_longer(reader: str) -> None:
    assert list(reading_times.slow_texts(2**14, reader)) == []


@pytest.mark.long
@pytest.mark.parametrize("reader", sorted(reading_times.READERS.keys() - set(QUICK)))
def test_none_of_the_others(reader: str) -> None:
    assert list(reading_times.slow_texts(2**14, reader)) == []
