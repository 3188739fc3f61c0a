"""Passes and forms with wrong draws, or a wrong order of aggregation: verification finds each, on
numbers that round and for every number of shards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.validation.parts import inline
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.backends import compile_form
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.language import (
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
    at_clients,
    at_server,
    to_array,
)
from tffc.language.traverse import rewrite
from tffc.language.types import FederatedType
from tffc.linking.builder import GraphBuilder
from tffc.passes import Pipeline
from tffc.passes.pipeline import Pass, PassStep
from tffc.passes.table import default_pipeline
from tffc.support.errors import ValidationError

pytestmark = pytest.mark.slow

STATE, DATA = tff.types.at_server(np.float32), tff.types.at_clients(np.float32)
NUMBERS = [np.float32(number) for number in (0.1, 0.2, 0.3, 0.7, 1e-8)]
CASES = [ArgumentCase((np.float32(0.7), NUMBERS[:count]), may_reorder=True) for count in (5, 4, 3)]


def section(function: Callable[..., Any], *types: Any) -> Any:
    return tff.tf_computation(*types)(function)


FLOAT = np.float32
add = section(lambda x, y: x + y, FLOAT, FLOAT)
product_less = section(lambda x, y: x - 2 * y, FLOAT, FLOAT)
same = section(lambda x: tf.identity(x), FLOAT)
draw = section(lambda: tf.random.normal([]))
draw_evenly = section(lambda: tf.random.uniform([]))
noisy = section(lambda x: x + tf.random.normal([]), FLOAT)
noisier = section(lambda x: x + 2 * tf.random.normal([]), FLOAT)
noisy_add = section(lambda x, y: x + y + tf.random.normal([]), FLOAT, FLOAT)


@tff.federated_computation(STATE, DATA)
def noise_everywhere(state: Any, data: Any) -> Any:
    sent = tff.federated_broadcast(tff.federated_map(noisy, state))
    own = tff.federated_map(noisy, tff.federated_map(add, (data, sent)))
    total = tff.federated_aggregate(own, np.float32(0), noisy_add, noisy_add, noisy)
    return state, tff.federated_map(noisy, total)


@tff.federated_computation(STATE, DATA)
def two_draws(state: Any, data: Any) -> Any:
    one, other = tff.federated_eval(draw, tff.SERVER), tff.federated_eval(draw, tff.SERVER)
    return state, [one, other, tff.federated_map(add, (one, other)), tff.federated_sum(data)]


@tff.federated_computation(STATE, DATA)
def draws_at_clients(state: Any, data: Any) -> Any:
    own = tff.federated_eval(draw, tff.CLIENTS)
    even = tff.federated_eval(draw_evenly, tff.CLIENTS)
    kept = tff.federated_map(product_less, (data, own))
    return state, [tff.federated_sum(kept), tff.federated_max(even)]


@tff.federated_computation(STATE, DATA)
def own_order(state: Any, data: Any) -> Any:
    return state, tff.federated_aggregate(data, np.float32(0), product_less, product_less, same)


Change = Callable[[Node], Node]


def replaced(one: Any, other: Any) -> Change:
    """Replace one section with another, everywhere."""
    return lambda root: rewrite(root, lambda node: other.node if node == one.node else None)


def exchanged(one: Any, other: Any) -> Change:
    """Exchange two sections."""
    instead = {one.node: other.node, other.node: one.node}
    return lambda root: rewrite(
        root, lambda node: instead.get(node) if isinstance(node, Compiled) else None
    )


def in_block(change: Callable[[Block], Node | None]) -> Change:
    return lambda root: rewrite(
        root, lambda node: change(node) if isinstance(node, Block) else None
    )


def share(block: Block) -> Node | None:
    """Bind equal calls once, even those that draw."""
    first: dict[Node, Node] = {}
    bindings = []
    for binding in block.locals:
        name = first.setdefault(binding.value, Reference(binding.name, binding.value.type))
        is_first = isinstance(name, Reference) and name.name == binding.name
        bindings.append(binding if is_first else dataclasses.replace(binding, value=name))
    return Block(tuple(bindings), block.result)


def use_one_for_the_other(block: Block) -> Node | None:
    """Use the first of two added draws in place of the second."""

    def rule(node: Node) -> Node | None:
        if (
            isinstance(node, StructNode)
            and len(node.values) == 2
            and node.values[0] != node.values[1]
        ):
            if all(isinstance(v, Reference) and v.name in drawn for v in node.values):
                return StructNode((node.values[0], node.values[0]), node.names)
        return None

    drawn = [b.name for b in block.locals if "eval_at_server" in str(b.value)]
    return rewrite(block, rule) if len(drawn) > 1 else None


def draw_for_all(root: Node) -> Node:
    """Draw once at the server instead of at each client."""

    def rule(node: Node) -> Node | None:
        match node:
            case Call(Intrinsic(uri="federated_eval_at_clients"), function) if function is not None:
                assert isinstance(node.type, FederatedType)
                member = node.type.member
                made = _call("federated_eval_at_server", function, at_server(member))
                sent = _call("federated_broadcast", made, at_clients(member, all_equal=True))
                itself = Lambda("x", member, Reference("x", member))
                taken = StructType([itself.type, at_clients(member)])
                each = Intrinsic("federated_map", FunctionType(taken, at_clients(member)))
                return Call(each, StructNode((itself, sent)))
        return None

    return rewrite(root, rule)


def _call(uri: str, argument: Node, result: Any) -> Call:
    return Call(Intrinsic(uri, FunctionType(argument.type, result)), argument)


def with_operand(position: int, change: Callable[[Node], Node]) -> Change:
    """Change an operand of `federated_aggregate`."""

    def rule(node: Node) -> Node | None:
        match node:
            case Call(Intrinsic(uri="federated_aggregate") as operator, StructNode(values, names)):
                operands = list(values)
                operands[position] = change(operands[position])
                return Call(operator, StructNode(tuple(operands), names))
        return None

    return lambda root: rewrite(root, rule)


def turned(function: Node) -> Node:
    """A function with its two operands exchanged."""
    assert isinstance(function.type, FunctionType)
    pair = function.type.parameter
    assert isinstance(pair, StructType)
    first, second = (Selection(Reference("t", pair), index) for index in (1, 0))
    return Lambda("t", pair, Call(function, StructNode((first, second), pair.names)))


def one_more(zero: Node) -> Node:
    assert isinstance(zero.type, TensorType)
    return Literal(to_array(np.float32(1)), zero.type)


PASSES: dict[str, tuple[Any, Change]] = {
    "duplicated": (two_draws, in_block(inline)),
    "shared": (two_draws, in_block(share)),
    "one for the other": (two_draws, in_block(use_one_for_the_other)),
    "exchanged": (draws_at_clients, exchanged(draw, draw_evenly)),
    "one for all clients": (draws_at_clients, draw_for_all),
    "noise dropped": (noise_everywhere, replaced(noisy, same)),
    "noise scale": (noise_everywhere, replaced(noisy, noisier)),
    "noise while merging dropped": (noise_everywhere, with_operand(3, lambda _: add.node)),
    "noise while accumulating dropped": (noise_everywhere, with_operand(2, lambda _: add.node)),
    "zero": (noise_everywhere, with_operand(1, one_more)),
    "accumulate turned": (own_order, with_operand(2, turned)),
    "merge turned": (own_order, with_operand(3, turned)),
}


def names(faults: Mapping[str, tuple[Any, Any]]) -> list[Any]:
    """Return the names of faults; those of the largest program are slow."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (program is noise_everywhere))
        for name, (program, _) in faults.items()
    ]


@pytest.mark.parametrize("fault", names(PASSES))
def test_wrong_pass(fault: str) -> None:
    program, change = PASSES[fault]
    wrong = Pipeline("planted", (PassStep(Pass("wrong", change)),))
    # Each trial takes another number of shards; any one of them is enough.
    for only in range(len(CASES)):
        trials = [ArgumentCase((FLOAT(0), []), may_reorder=True)] * only + [CASES[only]]
        with pytest.raises(ValidationError) as error:
            validate(program.node, trials, wrong)
        message = "the pass wrong, step 1 computes something else than the program"
        assert error.value.message == message


def test_right_passes() -> None:
    """Draws that no result needs may be omitted, and equal draws may be exchanged."""

    def turn(block: Block) -> Node | None:
        first, second, *rest = block.locals
        return Block((second, first, *rest), block.result)

    flat = default_pipeline()
    right = Pipeline("right", (*flat.steps, PassStep(Pass("turn", in_block(turn)))))
    assert validate(two_draws.node, CASES, right, "mapreduce").trials == len(CASES)


# Faults of forms.


def turned_section(part: Compiled) -> Compiled:
    builder = GraphBuilder()
    assert isinstance(part.type, FunctionType)
    pair = part.type.parameter
    assert isinstance(pair, StructType)
    given = builder.parameter(pair)
    assert isinstance(given, tuple)
    return builder.finish(builder.call(part, given[::-1]), part.type.result)


def run_twice(part: Compiled) -> Compiled:
    """Run a component, and take the state from another run of it."""
    builder = GraphBuilder()
    assert isinstance(part.type, FunctionType)
    assert part.type.parameter is not None
    given = builder.parameter(part.type.parameter)
    first, second = builder.call(part, given), builder.call(part, given)
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    return builder.finish((first[0], second[1]), part.type.result)


def without_noise(part: str, program: Any, change: Change) -> Callable[[MapReduceForm], Any]:
    """Take a component from the form of the program without some of its noise."""

    def tamper(form: MapReduceForm) -> MapReduceForm:
        other = compile_form(change(program.node), "mapreduce")
        return dataclasses.replace(form, **{part: getattr(other, part)})

    return tamper


FORMS: dict[str, tuple[Any, Callable[[MapReduceForm], Any]]] = {
    "merge turned": (own_order, lambda f: dataclasses.replace(f, merge=turned_section(f.merge))),
    "accumulate turned": (
        own_order,
        lambda f: dataclasses.replace(f, accumulate=turned_section(f.accumulate)),
    ),
    "zero": (own_order, without_noise("zero", own_order, with_operand(1, one_more))),
    **{
        f"{part} without noise": (
            noise_everywhere,
            without_noise(part, noise_everywhere, replaced(noisy, same)),
        )
        for part in ("prepare", "work", "report", "update")
    },
    **{
        f"noise in {part} changed": (
            noise_everywhere,
            without_noise(part, noise_everywhere, replaced(noisy, noisier)),
        )
        for part in ("prepare", "work", "report", "update")
    },
}


@pytest.mark.parametrize("fault", names(FORMS))
def test_wrong_form(fault: str) -> None:
    program, tamper = FORMS[fault]

    def compile_wrongly(*arguments: Any, **options: Any) -> Any:
        form = compile_form(*arguments, **options)
        assert isinstance(form, MapReduceForm)
        return tamper(form)

    with pytest.raises(ValidationError) as error:
        validate(program.node, CASES, default_pipeline(), "mapreduce", compile=compile_wrongly)
    assert error.value.message == "the form mapreduce computes something else than the program"
