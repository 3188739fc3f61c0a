"""Faults in how engines rewrite sections: verification finds each, because the interpreter runs
sections unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.graphs.rewrites import inlining
from tffc.passes.table import default_pipeline
from tffc.runtime.frameworks.sections import load_section
from tffc.runtime.reductions import loops, slices, steps
from tffc.support.errors import ValidationError

INTS = tff.SequenceType(np.int64)
STATE, DATA = tff.types.at_server(np.int64), tff.types.at_clients(INTS)
CASES = [ArgumentCase((np.int64(3), [[1, 2, 3, 4, 5], [7, 8]]), may_reorder=True)]


def digits(data: Any, by: Any) -> Any:
    """A number that depends on all elements, their order and their number."""
    zero = tf.constant(0, tf.int64)
    return data.reduce((zero, by), lambda s, x: (s[0] * 10 + tf.reduce_sum(x), s[1] + s[0]))


def running(data: Any) -> Any:
    return data.scan(tf.constant(1, tf.int64), lambda s, x: (s + x, s * x))


@tff.tf_computation(INTS, np.int64)
def read_in_every_way(data: Any, by: Any) -> Any:
    doubled = data.map(lambda x: x * 2)
    gathered = digits(data.repeat(2).skip(1).take(7).batch(2), by)
    mapped = digits(running(doubled).map(lambda x: x + 1), by)
    iterated = digits(doubled.batch(2), by)
    in_function = tf.function(digits)(data.take(3), by)
    of_function = tf.function(lambda by: digits(tf.data.Dataset.range(4), by))(by)
    return [*gathered, *mapped, *iterated, *in_function, *of_function]


@tff.federated_computation(STATE, DATA)
def program(state: Any, data: Any) -> Any:
    read = tff.federated_map(read_in_every_way, (data, tff.federated_broadcast(state)))
    return state, tff.federated_sum(read)


def an_element_too_few(wrapped: Any) -> Any:
    return lambda self, index, *given: wrapped(self, index + 1, *given)


def elements_from_behind(wrapped: Any) -> Any:
    return lambda self, index, begins, *given: wrapped(self, index, begins[::-1], *given)


def one_less(wrapped: Any) -> Any:
    return lambda order, steps, tile: wrapped(order, [(op, n - 1) for op, n in steps], tile)


def no_smaller_batch(wrapped: Any) -> Any:
    def order(self: Any, column: Any) -> Any:
        self.whole = True
        return wrapped(self, column)

    return order


def an_element_skipped(wrapped: Any) -> Any:
    def begin(self: Any) -> Any:
        first, handle = wrapped(self)
        given = [handle, f"^{first.partition(':')[0]}"]
        second = self._add_next(self._loop.place.nodes, f"{self._loop.node.name}/second", given)
        return [self._loop.output(second, "optional"), handle]

    return begin


def the_last_step_left_out(wrapped: Any) -> Any:
    def found(node: Any, nodes: Any, signatures: Any) -> Any:
        source, all_steps = wrapped(node, nodes, signatures)
        return source, [all_steps[0], *all_steps[2:]]

    return found


def steps_in_the_wrong_order(wrapped: Any) -> Any:
    def found(node: Any, nodes: Any, signatures: Any) -> Any:
        source, all_steps = wrapped(node, nodes, signatures)
        return source, [all_steps[0], *reversed(all_steps[1:])]

    return found


def states_exchanged(wrapped: Any) -> Any:
    def step(*given: Any) -> Any:
        made = wrapped(*given)
        made.states.reverse()
        return made

    return step


def arguments_exchanged(wrapped: Any) -> Any:
    def renaming(called: Any, name: str, arguments: Any) -> Any:
        return wrapped(called, name, list(reversed(arguments)))

    return renaming


def results_exchanged(wrapped: Any) -> Any:
    return lambda *given: list(reversed(wrapped(*given)))


def outputs_keep_their_names(wrapped: Any) -> Any:
    return lambda function, op, old: None


FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "a loop that ends early": (slices.Slices, "more", an_element_too_few),
    "slices from behind": (slices.Slices, "element", elements_from_behind),
    "slices off by one": (slices, "arranged", one_less),
    "no smaller batch in the end": (slices.Slices, "order", no_smaller_batch),
    "an iterator that is asked twice": (loops._Iterator, "begin", an_element_skipped),
    "states of a loop exchanged": (steps, "_step", states_exchanged),
    "a step left out": (loops, "find_steps", the_last_step_left_out),
    "steps in the wrong order": (loops, "find_steps", steps_in_the_wrong_order),
    "outputs of a loop by their old names": (loops, "rename_outputs", outputs_keep_their_names),
    "arguments of a call exchanged": (inlining, "_renaming", arguments_exchanged),
    "results of a call exchanged": (inlining, "_copy", results_exchanged),
}


@pytest.fixture(autouse=True)
def _nothing_stays_loaded() -> Iterator[None]:
    load_section.cache_clear()
    yield
    load_section.cache_clear()


def check(form: str) -> None:
    validate(program.node, CASES, default_pipeline(), form)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_rewriting_computes_the_same(form: str) -> None:
    check(form)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_rewriter_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    with pytest.raises(ValidationError, match="the form mapreduce computes something else"):
        check("mapreduce")


@pytest.mark.slow
def test_a_wrong_rewriter_is_seen_in_parts_that_are_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices.Slices, "more", an_element_too_few(slices.Slices.more))
    with pytest.raises(ValidationError, match="the form distribute-aggregate computes something"):
        check("distribute-aggregate")
