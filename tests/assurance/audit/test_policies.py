"""Rules of policies: what they let pass, and what they do not."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.audit.rounds import (
    AS_FLOAT,
    CHANCE,
    COUNT,
    FROM_FILE,
    IS_SEVEN,
    LENGTH,
    NEGATIVE,
    PLUS,
    ROWS,
    SAME,
    TODAY,
    TOTAL,
    audited,
    broken,
    channel_of,
    joined,
    round_of,
)
from tffc.assurance.audit.audit import Depends, Effect, audit, size_of
from tffc.assurance.audit.breaking import changes
from tffc.assurance.audit.patterns import Pattern
from tffc.assurance.audit.places import without_line
from tffc.assurance.audit.policy import Policy, Waiver, violations
from tffc.assurance.audit.text import audit_text
from tffc.language import TensorType, Type
from tffc.language.notation.type_parser import parse_type
from tffc.support.errors import PolicyError

Aggregate = Callable[[Any], Any]

# Sizes.


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("float32", 4),
        ("float32[3,2]", 24),
        ("float32[0]", 0),
        ("bool[5]", 5),
        ("<a=int64,b=<float16,float16>>", 12),
        ("float32[?]", None),
        ("float32[2,?]", None),
        ("float32[0,?]", None),
        ("float32(unknown rank)", None),
        ("str", None),
        ("str[0]", None),
        ("int32*", None),
        ("<int32,float32[?]>", None),
        ("<int32,<int32*>>", None),
    ],
)
def test_a_size_that_is_not_fixed_is_not_a_number(text: str, size: int | None) -> None:
    if "unknown" in text:
        kind: Type = TensorType(np.float32, None)
    else:
        kind = parse_type(text)
    assert size_of(kind) == size


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_variable_size_is_larger_than_any(form: str) -> None:
    report = audit(round_of(lambda data: joined(data.vector)).node, form)
    (violation,) = broken(report, Policy(largest_bytes=2**62))
    assert (violation.rule, violation.message) == ("largest-bytes", "has no fixed size")


# Single clients.

WHOLE: dict[str, Aggregate] = {
    "sum": lambda data: tff.federated_sum(data.age),
    "mean": lambda data: tff.federated_mean(tff.federated_map(AS_FLOAT, data.age)),
    "secure sum": lambda data: tff.federated_secure_sum(data.age, 9),
    "secure bits": lambda data: tff.federated_secure_sum_bitwidth(data.age, 9),
    "constant weight": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_value(1.0, tff.CLIENTS)
    ),
}

SINGLE: dict[str, Aggregate] = {
    "max": lambda data: tff.federated_max(data.age),
    "min": lambda data: tff.federated_min(data.age),
    "own functions": lambda data: joined(data.vector),
    "own sum": lambda data: tff.federated_aggregate(data.age, 0, PLUS, PLUS, SAME),
    "weight": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_map(IS_SEVEN, data.user.id)
    ),
    "weight by itself": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_map(AS_FLOAT, data.age)
    ),
    "weight by chance": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_eval(CHANCE, tff.CLIENTS)
    ),
    "weight from a file": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_eval(FROM_FILE, tff.CLIENTS)
    ),
    "weight by shape": lambda data: tff.federated_mean(
        tff.federated_map(AS_FLOAT, data.age), tff.federated_map(LENGTH, data.vector)
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_sums_and_means_are_of_all_clients(name: str) -> None:
    assert channel_of(WHOLE[name]).single is None
    assert broken(audited(WHOLE[name]), Policy(single_client=False)) == []


@pytest.mark.parametrize("name", SINGLE)
def test_what_may_be_the_value_of_one_client(name: str) -> None:
    report = audited(SINGLE[name])
    (violation,) = broken(report, Policy(single_client=False))
    assert violation.rule == "single-client"
    assert violation.message.startswith("may release one client's value: ")
    assert broken(report, Policy(single_client=True)) == []


def test_a_weight_of_one_client_is_named() -> None:
    assert channel_of(SINGLE["weight"]).single == (
        "a client's weight may depend on data.user.id, and may be 0 for all others"
    )


def test_weights_that_count_examples_are_no_choice_of_a_client() -> None:
    def mean(weight: Any) -> Aggregate:
        return lambda data: tff.federated_mean(
            tff.federated_map(TOTAL, data), tff.federated_map(weight, data)
        )

    counted, weighed = (channel_of(mean(weight), ROWS) for weight in (COUNT, TOTAL))
    assert counted.single is None
    assert weighed.single is not None


def test_what_clients_keep_is_of_one_client() -> None:
    program = tff.federated_computation(
        lambda state, data: data, tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
    )
    report = audit(program.node, "broadcast")
    (violation,) = broken(report, Policy(single_client=False))
    assert violation.message == (
        "may release one client's value: clients' outputs are not aggregated"
    )


def test_a_change_to_one_clients_value_is_told() -> None:
    before, after = (round_of(WHOLE["sum"]).node, round_of(SINGLE["max"]).node)
    told = [each.message for each in changes(before, after, "distribute-aggregate")]
    assert "may release one client's value: the greatest value is that of one client" in told


# Effects.

SHOWN = Effect("clients", "shown", "PrintV2", None, Depends(("data.user.id",)), "1" * 32)
WRITTEN = Effect("clients", "files", "WriteFile", None, Depends((), ("data",)), "2" * 32)
MEASURED = Effect("clients", "shown", "Assert", None, Depends(shapes=("data.vector",)), "3" * 32)
CALLED = Effect("clients", "python", "PyFunc", None, Depends(("data.age",)), "4" * 32)
ODD = Effect("server", "unknown", "Odd", None, Depends(("somewhere.else",)), "5" * 32)


@pytest.mark.parametrize(
    ("effect", "pattern"),
    [
        (SHOWN, "data.user"),
        (MEASURED, "shape of data.vector"),
        (CALLED, "data.age"),
        (CALLED, "shape of data.age"),
        (ODD, "data.age"),
    ],
)
def test_what_an_effect_shows_leaves_too(effect: Effect, pattern: str) -> None:
    report = dataclasses.replace(
        audited(lambda data: tff.federated_sum(data.username)), effects=(effect,)
    )
    policy = Policy(never_leave=(Pattern(pattern),))
    (violation,) = broken(report, policy)
    assert (violation.rule, violation.subject) == ("never-leave", effect.operation)
    waiver = Waiver(effect.operation, effect.content, "never-leave", "reviewed", TODAY)
    assert broken(report, dataclasses.replace(policy, exceptions=(waiver,))) == []


def test_a_count_in_a_file_leaves() -> None:
    total = audited(lambda data: tff.federated_sum(tff.federated_map(TOTAL, data)), ROWS)
    report = dataclasses.replace(total, effects=(WRITTEN,))
    policy = Policy(never_leave=(Pattern("how many data"),))
    assert "WriteFile" in [each.subject for each in broken(report, policy)]


def test_what_only_an_effect_shows_is_not_kept_quiet() -> None:
    report = audited(lambda data: tff.federated_sum(data.username))
    report = dataclasses.replace(report, effects=(SHOWN, WRITTEN))
    assert "data.user.id" in report.in_no_channel
    assert report.only_in_effects == ["data.user.id"]
    line = "  of these, in effects at the clients: data.user.id\n"
    assert line in audit_text(report, without_line)


def test_effects_of_every_kind_can_be_forbidden() -> None:
    report = audited(lambda data: tff.federated_sum(data.username))
    report = dataclasses.replace(report, effects=(SHOWN, WRITTEN))
    policy = Policy(effects={"clients": ("files",)})
    assert [each.subject for each in broken(report, policy)] == ["PrintV2"]
    assert [each.subject for each in broken(report, Policy(effects={"clients": ()}))] == [
        "PrintV2",
        "WriteFile",
    ]


# Exceptions.


def waived(content: str, **changes: Any) -> Policy:
    """Return a policy that allows only secure sums, with an exception for a content."""
    waiver = Waiver("total", content, "operators", "reviewed", TODAY, **changes)
    return Policy(operators=("federated_secure_sum",), exceptions=(waiver,))


def total_of_ages(data: Any) -> Any:
    return tff.federated_sum(data.age)


OTHERS: dict[str, Aggregate] = {
    "another element": lambda data: tff.federated_sum(data.username),
    "another operator": lambda data: tff.federated_max(data.age),
    "a map before it": lambda data: tff.federated_sum(tff.federated_map(NEGATIVE, data.age)),
    "two elements": lambda data: tff.federated_sum((data.age, data.username)),
    "own functions": lambda data: tff.federated_aggregate(data.age, 0, PLUS, PLUS, SAME),
    "a broadcast": lambda data: tff.federated_sum(
        tff.federated_map(PLUS, (data.age, tff.federated_value(1, tff.CLIENTS)))
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_exception_ends_with_what_it_is_about(name: str) -> None:
    content = channel_of(total_of_ages).content
    assert broken(audited(total_of_ages), waived(content)) == []
    changed = channel_of(OTHERS[name])
    assert changed.content != content
    with pytest.raises(PolicyError) as refused:
        broken(audited(OTHERS[name]), waived(content))
    assert refused.value.code == "E977"


def test_a_bound_is_part_of_the_content() -> None:
    contents = {
        channel_of(lambda data, bound=bound: tff.federated_secure_sum(data.age, bound)).content
        for bound in (1, 2, 1000)
    }
    assert len(contents) == 3


def test_functions_of_an_aggregation_are_part_of_the_content() -> None:
    def total(zero: int, accumulate: Any, merge: Any, report: Any) -> str:
        return channel_of(
            lambda data: tff.federated_aggregate(data.age, zero, accumulate, merge, report)
        ).content

    other = tff.tf_computation(lambda a, b: a - b, np.int32, np.int32)
    double = tff.tf_computation(lambda a: a + a, np.int32)
    contents = {
        total(0, PLUS, PLUS, SAME),
        total(1, PLUS, PLUS, SAME),
        total(0, other, PLUS, SAME),
        total(0, PLUS, other, SAME),
        total(0, PLUS, PLUS, double),
    }
    assert len(contents) == 5


def test_a_weight_is_part_of_the_content() -> None:
    assert channel_of(SINGLE["weight"]).content != channel_of(SINGLE["weight by itself"]).content


def test_names_and_other_channels_do_not_change_a_content() -> None:
    def renamed(people: Any) -> Any:
        added = tff.federated_max(people.username)
        another = tff.federated_sum(people.age)
        return another, added

    contents = {channel.name: channel.content for channel in audited(renamed).channels}
    assert contents["another"] == channel_of(total_of_ages).content
    assert broken(audited(renamed), waived(contents["another"]))[0].subject == "added"


def test_a_changed_channel_is_named_with_its_new_content() -> None:
    def total_of(data: Any) -> Any:
        total = tff.federated_sum(data.age)
        return total  # noqa: RET504  (the channel gets the variable's name)

    (channel,) = audited(total_of).channels
    assert channel.name == "total"
    with pytest.raises(PolicyError) as refused:
        broken(audited(total_of), waived("0" * 32))
    assert "has ended, because the channel has changed" in refused.value.message
    assert channel.content in refused.value.notes[0]


def test_an_exception_is_for_one_rule_and_one_content() -> None:
    content = channel_of(total_of_ages).content
    policy = dataclasses.replace(waived(content), largest_bytes=1)
    assert [each.rule for each in broken(audited(total_of_ages), policy)] == ["largest-bytes"]


def test_an_exception_that_a_program_need_not_have() -> None:
    policy = waived("0" * 32, is_optional=True)
    assert [each.rule for each in broken(audited(total_of_ages), policy)] == ["operators"]


def test_a_later_exception_takes_over() -> None:
    content = channel_of(total_of_ages).content
    ended = Waiver("total", content, "operators", "before", TODAY - datetime.timedelta(1))
    policy = dataclasses.replace(waived(content), exceptions=(ended,))
    (violation,) = violations(audited(total_of_ages), policy, TODAY)
    assert (violation.excepted, violation.expired) == (None, ended.expires)
    policy = dataclasses.replace(policy, exceptions=(ended, *waived(content).exceptions))
    (violation,) = violations(audited(total_of_ages), policy, TODAY)
    assert (violation.excepted, violation.expired) == ("reviewed", None)


def test_every_path_of_the_data_can_be_a_pattern() -> None:
    report = audited(total_of_ages)
    for path in report.data:
        expected = ["never-leave"] if path == "data.age" else []
        policy = Policy(never_leave=(Pattern(path),))
        assert [each.rule for each in broken(report, policy)] == expected


def split(first: Any, second: Any) -> list[str]:
    """Return the contents of two channels whose contributions one section computes."""
    work = tff.tf_computation(lambda a, b: (first(a, b), second(a, b)), np.int32, np.int32)

    def totals(data: Any) -> Any:
        worked = tff.federated_map(work, (data.age, data.username))
        return tff.federated_zip((tff.federated_sum(worked[0]), tff.federated_max(worked[1])))

    return [channel.content for channel in audited(totals).channels]


def by_variable(value: Any) -> Any:
    """Return a value by way of a variable."""
    variable = tf.Variable(tf.constant(0))
    with tf.control_dependencies([variable.assign(value)]):
        return variable.read_value()


def test_what_another_result_of_a_section_needs_is_not_part_of_the_content() -> None:
    one = split(lambda a, b: a + 1, lambda a, b: b)
    other = split(lambda a, b: a + 1, lambda a, b: b * 2)
    assert one[0] == other[0]
    assert one[1] != other[1]


@pytest.mark.parametrize(
    "changed",
    [
        lambda a, b: a + 2,
        lambda a, b: 1 + a,
        lambda a, b: a + 1 + 0 * b,
        lambda a, b: b + 1,
        lambda a, b: tf.cond(b > 0, lambda: a + 1, lambda: a),
        lambda a, b: tf.where(b == 7, a, 0),
    ],
)
def test_what_a_result_of_a_section_needs_is_part_of_the_content(changed: Any) -> None:
    assert split(lambda a, b: a + 1, lambda a, b: b)[0] != split(changed, lambda a, b: b)[0]


def by_file(value: Any) -> Any:
    """Return a value after it was written to a file."""
    with tf.control_dependencies([tf.io.write_file("kept", tf.strings.as_string(value))]):
        return tf.identity(value)


@pytest.mark.parametrize("through", [by_variable, by_file])
def test_results_that_may_share_state_are_one_content(through: Any) -> None:
    one = split(lambda a, b: a, lambda a, b: through(b))
    other = split(lambda a, b: a, lambda a, b: through(b + 1))
    assert one[0] != other[0]
