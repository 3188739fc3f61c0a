"""JAX computations in every form: linked graphs compute what JAX does, without JAX."""

from __future__ import annotations

import collections
import functools
import importlib.util
import pathlib
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tffc as tff
from tests.backends.test_equivalence import (
    check_broadcast_form,
    check_map_reduce_form,
    result_of,
    with_inputs,
)
from tests.forms import run_broadcast
from tests.local_programs import BINARY, binary_section
from tests.programs import broadcast_rounds, rounds
from tests.runtime.engines.sources import Values
from tffc.backends import compile_form
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.deploy.export.saved_model import FILE, saved_model
from tffc.language import Compiled, FunctionType, Node, StructType, TensorType, Type
from tffc.language.traverse import rewrite, walk
from tffc.language.type_parts import leaves
from tffc.language.values.concrete import to_python
from tffc.linking.inspect import inspect, is_pure
from tffc.runtime.effects.outside import outside_uses
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.sections import run_section
from tffc.runtime.frameworks.sections import load_section
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import GraphError, LanguageTypeError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install '.[jax]'"
)

VECTOR = tff.TensorType(np.float32, [3])
STATE, DATA = tff.types.at_server(VECTOR), tff.types.at_clients(VECTOR)
CLIENTS = [
    np.array([1, 2, 3], np.float32),
    np.array([-1, 0, 5], np.float32),
    np.array([2, 2, 2], np.float32),
]
ONES = np.ones(3, np.float32)


def jax(function: Any, *types: Any) -> Any:
    return tff.jax.computation(function, *types)


def numpy() -> Any:
    import jax.numpy  # pyright: ignore[reportMissingImports]  # only where it is installed

    return jax.numpy


def parts(weight: Any, x: Any) -> Any:
    """Parts of many kinds, in an order that is not that of JAX."""
    jnp = numpy()
    return collections.OrderedDict(
        scaled=weight * x,
        count=jnp.int32(1),
        half=x.astype(jnp.bfloat16),
        empty=jnp.zeros((0, 2)),
        nothing=(),
        weight=abs(x).sum() + 1,
    )


@functools.cache
def every_operator() -> Node:
    """A round that mixes sections of both kinds: at the server, at clients, in aggregations."""
    add = jax(lambda x, y: x + y, VECTOR, VECTOR)
    zero = jax(lambda: numpy().zeros(3))
    halve = jax(lambda x: x / 2, VECTOR)
    shifted = tff.tf_computation(lambda x: x + 1, VECTOR)
    named = jax(parts, VECTOR, VECTOR)

    def body(state: Any, data: Any) -> Any:
        weight = tff.federated_broadcast(tff.federated_map(shifted, state))
        made = tff.federated_map(named, (weight, tff.federated_map(shifted, data)))
        folded = tff.federated_aggregate(made.scaled, zero(), add, add, halve)
        mean = tff.federated_mean(made.scaled, weight=made.weight)
        sums = [tff.federated_sum(made[name]) for name in ("count", "half", "empty", "nothing")]
        zipped = tff.federated_zip((folded, mean))
        return tff.federated_map(add, zipped), [mean, tff.federated_map(halve, state), *sums]

    return tff.federated_computation(body, STATE, DATA).node


def played(program: Node, form: str, state: Any, clients: list[Any]) -> Any:
    """A round of a form, as the local engine runs it."""
    engine = LocalEngine(Process(compile_bundle(program, form)))
    source = Values(clients)
    outcome = engine.run_round(state, Cohort(source, source.clients))
    return to_python((outcome.state, outcome.output), result_of(program))


def without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make loading JAX fail, and forget all loaded sections."""
    load_section.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_every_operator(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = every_operator()
    expected = run(program, (ONES, CLIENTS))
    assert str(expected[1][3].dtype) == "bfloat16"
    assert expected[1][4].shape == (0, 2)
    without_jax(monkeypatch)
    assert_close(played(program, form, ONES, CLIENTS), expected)


def assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        expected, found = list(expected.values()), list(found.values())
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        one, other = np.asarray(found), np.asarray(expected)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype(float), other.astype(float), rtol=1e-5)


def test_a_map_reduce_form_holds_graphs_alone_and_they_only_compute() -> None:
    components = compile_form(every_operator(), "mapreduce").components()
    for section in components.values():
        assert isinstance(section, Compiled)
        assert section.kind == "tensorflow"
        assert outside_uses(section) == ()
        assert is_pure(section)
    assert inspect(components["work"]).operations["XlaCallModule"] == 1
    assert inspect(components["update"]).operations["XlaCallModule"] == 2


def test_a_broadcast_form(monkeypatch: pytest.MonkeyPatch) -> None:
    double = jax(lambda x: x * 2, VECTOR)
    add = jax(lambda b, a: a - b, collections.OrderedDict(b=VECTOR, a=VECTOR))

    def body(state: Any, data: Any) -> Any:
        weight = tff.federated_broadcast(tff.federated_map(double, state))
        return tff.federated_map(add, (data, tff.federated_map(double, weight)))

    program = tff.federated_computation(body, STATE, DATA).node
    form = compile_form(program, "broadcast")
    without_jax(monkeypatch)
    assert isinstance(form, BroadcastForm)
    found = [each.tolist() for each in run_broadcast(form, ONES, CLIENTS)]
    assert found == [[3, 2, 1], [5, 4, -1], [2, 2, 2]]


def test_in_the_elements_of_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    double = jax(lambda x: x * 2, VECTOR)
    add = jax(lambda x, y: x + y, VECTOR, VECTOR)

    @tff.federated_computation(tff.SequenceType(VECTOR), VECTOR)
    def total(elements: Any, start: Any) -> Any:
        return tff.sequence_reduce(tff.sequence_map(double, elements), start, add)

    def body(state: Any, data: Any) -> Any:
        pair = (data, tff.federated_broadcast(state))
        return state, tff.federated_sum(tff.federated_map(total, pair))

    sequences = tff.types.at_clients(tff.SequenceType(VECTOR))
    program = tff.federated_computation(body, STATE, sequences).node
    without_jax(monkeypatch)
    _, found = played(program, "mapreduce", ONES, [CLIENTS, [], CLIENTS[:1]])
    assert found.tolist() == [9, 15, 29]


def test_what_only_jax_can_do_is_run_by_jax() -> None:
    square = tff.TensorType(np.float32, [2, 2])
    root = jax(lambda x: numpy().linalg.cholesky(x), square)

    def body(state: Any, data: Any) -> Any:
        return (state, tff.federated_sum(tff.federated_map(root, data)))

    program = tff.federated_computation(body, STATE, tff.types.at_clients(square)).node
    with pytest.raises(GraphError, match="E325") as caught:
        compile_form(program, "mapreduce")
    assert caught.value.notes == ("it needs lapack_spotrf_ffi",)
    matrix = np.array([[4, 0], [0, 9]], np.float32)
    _, found = played(program, "distribute-aggregate", ONES, [matrix, matrix])
    assert found.tolist() == [[4, 0], [0, 6]]


def test_a_draw_without_a_seed_is_refused() -> None:
    import jax.lax  # pyright: ignore[reportMissingImports]  # only where it is installed

    drawn = tff.jax.computation(lambda x: x + jax.lax.rng_uniform(0.0, 1.0, (3,)), VECTOR)

    def body(state: Any, data: Any) -> Any:
        return (state, tff.federated_sum(tff.federated_map(drawn, data)))

    with pytest.raises(GraphError, match="E325") as caught:
        compile_form(tff.federated_computation(body, STATE, DATA).node, "mapreduce")
    assert caught.value.notes == ("it needs vhlo.rng",)


def test_a_shape_that_is_not_known() -> None:
    partial = tff.TensorType(np.float32, [None])
    cut = tff.tf_computation(lambda x: x[1:], partial)

    def body(data: Any) -> Any:
        return tff.federated_map(double, tff.federated_map(cut, data))

    double = jax(lambda x: x * 2, VECTOR)
    with pytest.raises(LanguageTypeError) as caught:
        tff.federated_computation(body, tff.types.at_clients(partial))
    assert str(caught.value).startswith(
        "Type `float32[?]` is not assignable to expected type `float32[3]` [E101]"
    )
    double = jax(lambda x: x * 2)
    with pytest.raises(LanguageTypeError, match="E419"):
        tff.federated_computation(body, tff.types.at_clients(partial))


def test_sixty_four_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax as jax_  # pyright: ignore[reportMissingImports]  # only where it is installed

    with jax_.enable_x64(True):
        section = jax(lambda x, y: (x + 1, y * 2), np.int64, np.float64).node
    without_jax(monkeypatch)
    assert run_section(section, (np.int64(2**40), np.float64(1.5))) == (2**40 + 1, 3.0)


def test_a_saved_model(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tff.federated_computation(
        lambda state, data: (
            state,
            tff.federated_sum(tff.federated_map(jax(lambda x: x * 2 + 1, VECTOR), data)),
        ),
        STATE,
        DATA,
    )
    components = compile_form(program.node, "mapreduce").components()
    without_jax(monkeypatch)
    target = tmp_path / "model"
    target.mkdir()
    (target / FILE).write_bytes(saved_model(components)[0])
    work = tf.saved_model.load(str(target)).signatures["work"]  # pyright: ignore  # not in TensorFlow's annotations
    (given,) = work.structured_input_signature[1]
    (found,) = work(**{given: tf.constant(CLIENTS[0])}).values()
    assert found.numpy().tolist() == [3, 5, 7]


@functools.cache
def traced(operation: str, type_: Type) -> Compiled:
    import jax as jax_  # pyright: ignore[reportMissingImports]  # only where it is installed

    jnp = jax_.numpy
    of_two = {
        "plus": jnp.add,
        "multiply": jnp.multiply,
        "minimum": jnp.minimum,
        "maximum": jnp.maximum,
    }[operation]
    node = jax(lambda pair: jax_.tree.map(of_two, pair[0], pair[1]), (type_, type_)).node
    section = binary_section(operation, type_)
    assert isinstance(node, Compiled)
    assert isinstance(section.type, FunctionType)
    return Compiled("xla", node.payload, section.type)


@st.composite
def mixed(draw: Any, programs: st.SearchStrategy[Node]) -> Node:
    """Generated rounds, some of whose sections are JAX computations."""
    program = draw(programs)
    chosen = draw(st.sets(st.sampled_from(sorted(BINARY))).filter(bool))
    sections = {s: n for n in chosen for s in _sections(program) if s == _same(n, s)}
    return rewrite(program, lambda node: _replaced(node, sections))


def _sections(program: Node) -> set[Compiled]:
    return {node for node in walk(program) if isinstance(node, Compiled)}


def _same(operation: str, section: Compiled) -> Compiled | None:
    """The section of an operation on the types of another, if JAX has that."""
    assert isinstance(section.type, FunctionType)
    match section.type.parameter:
        case StructType(types=(first, second)) if first == second and _is_static(first):
            return binary_section(operation, first)
    return None


def _is_static(type_: Type) -> bool:
    return all(
        isinstance(leaf, TensorType) and leaf.is_fully_defined() and leaf.element_type.kind != "str"
        for leaf in leaves(type_)
    )


def _replaced(node: Node, sections: dict[Compiled, str]) -> Node | None:
    if not isinstance(node, Compiled) or node not in sections:
        return None
    assert isinstance(node.type, FunctionType)
    return traced(sections[node], node.type.result)


@pytest.mark.slow
@settings(max_examples=25)
@given(with_inputs(mixed(rounds())))
def test_generated_map_reduce_forms(case: tuple[Node, Any, list[Any]]) -> None:
    check_map_reduce_form(case)


@pytest.mark.slow
@settings(max_examples=25)
@given(with_inputs(mixed(broadcast_rounds())))
def test_generated_broadcast_forms(case: tuple[Node, Any, list[Any]]) -> None:
    check_broadcast_form(case)
