"""Names of channels: of variables, and of keys where one line makes several channels."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Protocol

import pytest

from tests.cli.conftest import Run

MODULE = """\
import collections
import numpy as np
import tffc as tff

KEYS = {keys}
ROWS = collections.OrderedDict((key, np.int32) for key in KEYS)


def total_of(value):
    return tff.federated_sum(value)


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(ROWS))
def round(state, data):
{body}
"""

BODIES = {
    "a comprehension": (
        "totals = {key: tff.federated_secure_sum(data[key], 9) for key in KEYS}\n"
        "return state, tff.federated_zip(totals)",
        "totals.{}",
    ),
    "a comprehension of several lines": (
        "totals = [\n    tff.federated_secure_sum_bitwidth(data[key], bitwidth=10)\n"
        "    for key in KEYS\n]\nreturn state, tff.federated_zip(totals)",
        "totals.{}",
    ),
    "a loop": (
        "totals = collections.OrderedDict()\nfor key in KEYS:\n"
        "    totals[key] = tff.federated_sum(data[key])\nreturn state, tff.federated_zip(totals)",
        "sum.{}",
    ),
    "a loop that assigns": (
        "totals = collections.OrderedDict()\nfor key in KEYS:\n"
        "    total = tff.federated_sum(data[key])\n    totals[key] = total\n"
        "return state, tff.federated_zip(totals)",
        "total.{}",
    ),
    "a while loop": (
        "totals, left = {}, list(KEYS)\nwhile left:\n    key = left.pop()\n"
        "    totals[key] = tff.federated_max(data[key])\n"
        "return state, tff.federated_zip(collections.OrderedDict(sorted(totals.items())))",
        "max.{}",
    ),
    "a lambda": (
        "add = lambda key: tff.federated_sum(data[key])\n"
        "return state, tff.federated_zip(collections.OrderedDict((k, add(k)) for k in KEYS))",
        "add.{}",
    ),
    "keys of the result": (
        "whole = [tff.federated_sum(data) for key in KEYS]\n"
        "return state, tff.federated_zip(collections.OrderedDict(zip(KEYS, whole)))",
        "whole.{}",
    ),
}


class Names(Protocol):
    """Names the channels of a round."""

    def __call__(self, body: str, keys: Sequence[str], *, from_file: bool = False) -> list[str]: ...


@pytest.fixture
def names(run: Run, tmp_path: pathlib.Path) -> Names:
    """Returns the names of the channels of a round with some keys."""

    def of(body: str, keys: Sequence[str], *, from_file: bool = False) -> list[str]:
        indented = "".join(f"    {line}\n" for line in body.splitlines())
        (tmp_path / "module.py").write_text(MODULE.format(keys=tuple(keys), body=indented))
        source = "module.py:round"
        if from_file:
            assert run("trace", source, "-o", "round.pb").code == 0
            source = "round.pb"
        ran = run("audit", source, "--form", "distribute-aggregate")
        assert ran.code == 0, ran.stderr
        return re.findall(r"^channel (.*)$", ran.stdout, re.MULTILINE)

    return of


@pytest.mark.parametrize("name", BODIES)
def test_another_key_does_not_rename_the_others(names: Names, name: str) -> None:
    body, pattern = BODIES[name]
    for keys in (["clicks"], ["clicks", "views"], ["added", "clicks", "more", "views"]):
        expected = [pattern.format(key) for key in keys]
        assert sorted(names(body, keys)) == expected


def test_a_function_that_is_called_for_each_key(names: Names) -> None:
    body = (
        "totals = collections.OrderedDict((key, total_of(data[key])) for key in KEYS)\n"
        "return state, tff.federated_zip(totals)"
    )
    assert names(body, ["a", "b"]) == ["sum.a", "sum.b"]
    assert names(body, ["a", "b", "c"]) == ["sum.a", "sum.b", "sum.c"]


def test_a_program_without_lines_has_the_keys(names: Names) -> None:
    body, _ = BODIES["a loop"]
    assert names(body, ["a", "b"], from_file=True) == ["sum.a", "sum.b"]


def test_a_variable_is_a_name_by_itself(names: Names) -> None:
    body = (
        "first = tff.federated_sum(data.a)\nsecond: object = tff.federated_sum(data.b)\n"
        "return state, tff.federated_zip((first, second, tff.federated_max(data.a)))"
    )
    assert names(body, ["a", "b"]) == ["first", "second", "max.a"]


def test_what_has_no_key_has_a_part_of_its_content(names: Names) -> None:
    body = (
        "result = tff.federated_sum(data), tff.federated_max(data)\n"
        "return state, tff.federated_zip((result[1],) + result[:1])"
    )
    one, other = names(body, ["a"])
    assert {one, other} == {"result[1]", "result[0]"}
    body = "both = total_of(data), total_of(data)\nreturn state, tff.federated_zip(both)"
    assert len(set(names(body, ["a"]))) == len(names(body, ["a"]))
