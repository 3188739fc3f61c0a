"""Faults in linking, in the passes and in forms, one at a time: verification finds each.

Each is planted in the code itself, so the reference side must not share that code.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.validation.parts import section
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.backends.forms import map_reduce
from tffc.backends.forms.component import ComponentBuilder, SideBySide
from tffc.backends.forms.map_reduce import MapReduceSteps
from tffc.backends.forms.stages import StagedRound
from tffc.linking import sequences, template, xla
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.linking.emit import Emitter
from tffc.linking.function_builder import FunctionBuilder
from tffc.linking.xla import tensorflow_section
from tffc.passes.call_dominant import _Normalizer
from tffc.passes.table import default_pipeline
from tffc.runtime.frameworks.sections import load_section
from tffc.support.errors import ValidationError

INT, FLOAT = np.int32, np.float32
ROW = collections.OrderedDict(zip=INT, age=INT, sex=INT)
STATE = tff.types.at_server(INT)
DATA = tff.types.at_clients([("x", INT), ("rows", tff.SequenceType(ROW))])


def least_age(rows: Any) -> Any:
    return rows.reduce(99, lambda least, row: tf.minimum(least, row["age"] - 2 * row["zip"]))


def counted(x: Any) -> Any:
    """Counts with a variable and in a table, which are new in each call."""
    count = tf.Variable(tf.constant(5))
    keys = tf.constant(["a", "b"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, [3, 4]), -1)
    with tf.control_dependencies([count.assign_add(x)]):
        return count.read_value() + table.lookup(tf.constant("b"))


@tf.function
def inner(x: Any, y: Any) -> Any:
    return 3 * x - y


@tf.function
def other_inner(x: Any, y: Any) -> Any:
    return x + 7 * y


difference = section(lambda x, y: x - 2 * y, INT, INT)
parts = section(lambda x: (x + 1, 3 * x), INT)
of_rows = section(least_age, tff.SequenceType(ROW))
stateful = section(counted, INT)
called = section(lambda x: inner(x, 4) + other_inner(x, 9), INT)
turned = section(lambda row: collections.OrderedDict(b=row["zip"] - row["age"], a=row["sex"]), ROW)
folded = section(lambda total, row: 2 * total - row["b"] + row["a"], INT, [("b", INT), ("a", INT)])
halved = section(lambda x: tf.cast(x, tf.float32) / 2, INT)
merged = section(lambda one, other: one - other, INT, INT)
shown = section(lambda total: total - 1, INT)


@tff.federated_computation(STATE, DATA)
def program(state: Any, data: Any) -> Any:
    twice = tff.federated_map(parts, state)
    sent = tff.federated_broadcast(twice[0])
    again = tff.federated_broadcast(twice[1])
    own = tff.federated_map(difference, (data.x, sent))
    own_again = tff.federated_map(difference, (again, data.x))

    @tff.federated_computation(tff.SequenceType(ROW))
    def in_rows(rows: Any) -> Any:
        return tff.sequence_reduce(tff.sequence_map(turned, rows), 1, folded)

    summed = tff.federated_map(
        tff.federated_computation(tff.sequence_sum, tff.SequenceType(ROW)), data.rows
    )
    weight = tff.federated_map(halved, own)
    total = tff.federated_sum(own)
    return tff.federated_map(difference, (state, total)), (
        tff.federated_sum(summed),
        tff.federated_sum(tff.federated_map(of_rows, data.rows)),
        tff.federated_sum(tff.federated_map(in_rows, data.rows)),
        tff.federated_sum(tff.federated_map(stateful, own)),
        tff.federated_max(tff.federated_map(called, own_again)),
        tff.federated_min(own_again),
        tff.federated_sum(tff.federated_map(stateful, own_again)),
        tff.federated_mean(weight, weight=data.x),
        tff.federated_aggregate(own, INT(3), difference, merged, shown),
        tff.federated_secure_sum(data.x, 100),
    )


def rows(*numbers: int) -> list[Any]:
    return [
        collections.OrderedDict(zip=INT(n), age=INT(3 * n + 1), sex=INT(n % 2)) for n in numbers
    ]


CLIENTS = [
    {"x": INT(7), "rows": rows(2, 5)},
    {"x": INT(3), "rows": rows()},
    {"x": INT(4), "rows": rows(1)},
]
CASES = [ArgumentCase((INT(5), CLIENTS), may_reorder=True)]
FORMS = ("mapreduce", "distribute-aggregate")


def check(form: str) -> None:
    validate(program.node, CASES, default_pipeline(), form)


def _forget() -> None:
    for cached in (load_section, tensorflow_section):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _nothing_stays_linked() -> Iterator[None]:
    _forget()
    yield
    _forget()


@pytest.mark.parametrize("form", FORMS)
def test_they_agree(form: str) -> None:
    check(form)


# The faults: where each is planted, and how.


def declared_order(wrapped: Any) -> Any:
    return lambda element, leaves: list(leaves)


def order_from_behind(wrapped: Any) -> Any:
    return lambda element, leaves: wrapped(element, leaves)[::-1]


def turned_parameter(wrapped: Any) -> Any:
    def read(each: Any) -> Any:
        content = wrapped(each)
        return content._replace(parameter=content.parameter[::-1])

    return read


def turned_result(wrapped: Any) -> Any:
    def read(each: Any) -> Any:
        content = wrapped(each)
        return content._replace(result=content.result[::-1])

    return read


def zero_dropped(wrapped: Any) -> Any:
    def reduce(built: Any, function: Any, sequence: Any, zero: Any, accumulator: Any) -> Any:
        zeros = GraphArithmetic(built).zeros(accumulator)
        return wrapped(built, function, sequence, zeros, accumulator)

    return reduce


def the_first(wrapped: Any) -> Any:
    return lambda self, first, second: first


def one_more(wrapped: Any) -> Any:
    return lambda self, kind, number: wrapped(self, kind, number + int(number == 0))


def other_end(wrapped: Any) -> Any:
    return lambda self, kind, largest: wrapped(self, kind, not largest)


def results_turned(wrapped: Any) -> Any:
    return lambda self, parameter, result: wrapped(self, parameter, list(result)[::-1])


def one_function_for_all(wrapped: Any) -> Any:
    def link(self: Any, prefix: str) -> Any:
        functions = wrapped(self, prefix)
        first = next(iter(functions.values()), None)
        return dict.fromkeys(functions, first)

    return link


def all_constants_are_ones(wrapped: Any) -> Any:
    return lambda self, array: wrapped(self, array) if array.shape else self.filled(array.type, 1)


def state_shared(wrapped: Any) -> Any:
    return lambda message, prefix: None


def sent_turned(wrapped: Any) -> Any:
    return property(lambda self: wrapped.fget(self)[::-1])


def by_accumulating(wrapped: Any) -> Any:
    def merge(self: Any, by: Any, first: Any, second: Any) -> Any:
        return self.accumulate(by, first, second)

    return merge


def other_element(wrapped: Any) -> Any:
    def select(self: Any, node: Any) -> Any:
        source = yield self._evaluate(node.source)
        return source[last_alike(node.source.type, node.index)]

    return select


def last_alike(type: Any, index: int) -> int:
    """The last element of a struct that is of the same type."""
    return max(i for i, each in enumerate(type) if each == type[index])


def other_selection(wrapped: Any) -> Any:
    return lambda self, value, index: wrapped(self, value, last_alike(value.node.type, index))


def values_turned(wrapped: Any) -> Any:
    def give(self: Any, calls: Any, values: Any) -> None:
        turned = list(values)
        numbers = [i for i, value in enumerate(turned) if getattr(value, "type", None) == INTEGER]
        for place, other in zip(numbers, reversed(numbers), strict=True):
            turned[place] = values[other]
        wrapped(self, calls, tuple(turned))

    return give


INTEGER = tff.to_type(INT)


def merge_dropped(wrapped: Any) -> Any:
    return lambda self, first, second, carried: first


def no_new_state(wrapped: Any) -> Any:
    def finish(self: Any, carried: Any, reports: Any) -> Any:
        return carried, wrapped(self, carried, reports)[1]

    return finish


def nothing_sent(wrapped: Any) -> Any:
    def prepare(self: Any, state: Any) -> Any:
        carried, sent = wrapped(self, state)
        return carried, sent[::-1]

    return prepare


FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "components in the declared order": (sequences, "in_component_order", declared_order),
    "components from behind": (sequences, "in_component_order", order_from_behind),
    "a section's parameter from behind": (template, "read_section", turned_parameter),
    "a section's result from behind": (template, "read_section", turned_result),
    "a reduction from zero": (sequences, "sequence_reduce", zero_dropped),
    "no sum": (GraphArithmetic, "plus", the_first),
    "no product": (GraphArithmetic, "multiply", the_first),
    "no quotient": (GraphArithmetic, "divide", the_first),
    "no minimum": (GraphArithmetic, "minimum", the_first),
    "no maximum": (GraphArithmetic, "maximum", the_first),
    "the other end of a type": (GraphArithmetic, "dtype_limits", other_end),
    "constants of one more": (GraphBuilder, "filled", one_more),
    "constants that are ones": (GraphBuilder, "constant", all_constants_are_ones),
    "a function's results from behind": (FunctionBuilder, "define", results_turned),
    "one function for all": (template.LinkedLibrary, "link", one_function_for_all),
    "another element of a struct": (Emitter, "_select", other_element),
    "merging by accumulating": (SideBySide, "merge", by_accumulating),
    "values of other calls": (ComponentBuilder, "give", values_turned),
    "what is sent from behind": (StagedRound, "sent", sent_turned),
    "another element in a pass": (_Normalizer, "select", other_selection),
    "state of two calls in common": (template, "scope_state", state_shared),
    "the second part dropped": (map_reduce._GraphAggregation, "merge", merge_dropped),
    "no new state": (MapReduceSteps, "finish", no_new_state),
    "what was sent in another order": (MapReduceSteps, "prepare", nothing_sent),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    with pytest.raises(ValidationError, match="computes something else") as caught:
        check("mapreduce")
    assert caught.value.code == "E902"


@tff.federated_computation(STATE, tff.types.at_clients(tff.SequenceType(ROW)))
def zips(state: Any, data: Any) -> Any:
    @tff.federated_computation(tff.SequenceType(ROW))
    def only_zips(rows: Any) -> Any:
        zip_of = tff.federated_computation(lambda row: row.zip, ROW)
        return tff.sequence_sum(tff.sequence_map(zip_of, rows))

    return state, tff.federated_sum(tff.federated_map(only_zips, data))


@pytest.mark.parametrize("wrong", [declared_order, order_from_behind])
def test_a_wrong_order_of_components_is_seen(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    form = "mapreduce"  # the other forms have the interpreter map sequences
    cases = [ArgumentCase((INT(5), [rows(2, 5), rows(1)]), may_reorder=True)]
    assert validate(zips.node, cases, default_pipeline(), form).coverage.compared == 1
    _forget()
    wrapped = sequences.in_component_order
    monkeypatch.setattr(sequences, "in_component_order", wrong(wrapped))
    with pytest.raises(ValidationError, match=f"the form {form} computes something else"):
        validate(zips.node, cases, default_pipeline(), form)


def test_wrong_places_of_an_xla_module_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="needs tffc[jax]")
    each = tff.jax.computation(INT, INT)(lambda x, y: x - 2 * y)

    @tff.federated_computation(STATE, tff.types.at_clients(INT))
    def differences(state: Any, data: Any) -> Any:
        sent = tff.federated_broadcast(state)
        return state, tff.federated_sum(tff.federated_map(each, (data, sent)))

    cases = [ArgumentCase((INT(5), [INT(1), INT(2)]), may_reorder=True)]
    validate(differences.node, cases, default_pipeline(), "mapreduce")
    _forget()
    places = xla.bound_places
    monkeypatch.setattr(xla, "bound_places", lambda *arguments: places(*arguments)[::-1])
    with pytest.raises(ValidationError, match="the form mapreduce computes something else"):
        validate(differences.node, cases, default_pipeline(), "mapreduce")
