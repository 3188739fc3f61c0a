"""Patterns are paths, as reports print them."""

from __future__ import annotations

from typing import Any

import pytest

import tffc as tff
from tests.assurance.audit.rounds import audited, broken, joined
from tffc.assurance.audit.patterns import Aspect, Pattern
from tffc.assurance.audit.policy import Policy
from tffc.support.errors import PolicyError

PATHS = (
    "data.user.id",
    "data.user.name",
    "data.username",
    "data[0].zip",
    "data[12]",
    "data.rows.zip",
    "data.x*y",
    "data.a[b]",
    "data.a\u202eb",
    "other.user.id",
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("data.user", ("data.user.id", "data.user.name")),
        ("data.user.id", ("data.user.id",)),
        ("data[0]", ("data[0].zip",)),
        ("data[1]", ()),
        ("data[12]", ("data[12]",)),
        ("data[*]", ("data[0].zip", "data[12]")),
        ("data[*].zip", ("data[0].zip",)),
        ("data.*.zip", ("data[0].zip", "data.rows.zip")),
        ("*.user", ("data.user.id", "data.user.name", "other.user.id")),
        ("*", PATHS),
        ("**", PATHS),
        ("**.zip", ("data[0].zip", "data.rows.zip")),
        ("data.**.zip", ("data[0].zip", "data.rows.zip")),
        ("data.user*", ("data.user.id", "data.user.name", "data.username")),
        ("data.us?rname", ()),
        ("data.[ux]sername", ()),
        ("data.user.*.id", ()),
        ("data.x*y", ("data.x*y",)),
        ("data.a[b]", ("data.a[b]",)),
        ("data.a\\u202eb", ("data.a\u202eb",)),
        ("dat", ()),
        ("data.use", ()),
        ("user", ()),
        ("", ()),
    ],
)
def test_what_a_pattern_covers(pattern: str, expected: tuple[str, ...]) -> None:
    assert tuple(Pattern(pattern).covered(PATHS)) == expected


@pytest.mark.parametrize("path", PATHS)
def test_a_path_covers_itself_whatever_its_names_are(path: str) -> None:
    assert path in Pattern(path).covered(PATHS)


@pytest.mark.parametrize(
    ("text", "aspect", "path"),
    [
        ("data.user", Aspect.DATA, "data.user"),
        ("how many data", Aspect.COUNT, "data"),
        ("shape of data.x", Aspect.SHAPE, "data.x"),
        ("how many  data", Aspect.COUNT, "data"),
    ],
)
def test_words_before_a_path(text: str, aspect: Aspect, path: str) -> None:
    assert (Pattern(text).aspect, Pattern(text).path) == (aspect, path)


@pytest.mark.parametrize(
    ("pattern", "leaves"),
    [
        ("data.user", "user.id"),
        ("data.pair[0]", "pair.0"),
        ("data.pair", "pair.1"),
        ("data.pair[*]", "pair.1"),
        ("data.vector", "vector"),
        ("*.age", "age"),
    ],
)
def test_a_pattern_forbids_what_it_covers(pattern: str, leaves: str) -> None:
    def taken(data: Any) -> Any:
        for step in leaves.split("."):
            data = data[int(step)] if step.isdigit() else getattr(data, step)
        return joined(data) if leaves == "vector" else tff.federated_sum(data)

    policy = Policy(never_leave=(Pattern(pattern),))
    assert [each.rule for each in broken(audited(taken), policy)] == ["never-leave"]
    assert broken(audited(lambda data: tff.federated_sum(data.username)), policy) == []


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("data.usr", "did you mean 'data.user'?"),
        ("data.pair[2]", "did you mean 'data.pair[1]'?"),
        ("date.user", "did you mean 'data.user'?"),
        ("user", "For a policy of several programs"),
        ("data.age.*", "did you mean 'data.age'?"),
        ("how many data", "For a policy of several programs"),
        ("shape of data.vectr", "did you mean 'shape of data.vector'?"),
        ("data.[ua]ge", "For a policy of several programs"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(pattern: str, near: str) -> None:
    report = audited(lambda data: tff.federated_sum(data.age))
    with pytest.raises(PolicyError) as refused:
        broken(report, Policy(never_leave=(Pattern(pattern),)))
    assert refused.value.code == "E977"
    assert near in str(refused.value.help)
    optional = Policy(never_leave=(Pattern(pattern, is_optional=True),))
    assert broken(report, optional) == []


def test_the_shape_is_known_to_whoever_knows_the_element() -> None:
    report = audited(lambda data: joined(data.vector))
    policy = Policy(never_leave=(Pattern("shape of data.vector"),))
    assert [each.message for each in broken(report, policy)] == [
        "may depend on shape of data.vector"
    ]
