"""TensorFlow computations among federated ones: the printed examples, and calls."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.language.notation import compact, formatted, structural
from tffc.tff.backends import mapreduce

fc, tfc = tff.federated_computation, tff.tf_computation
Clients, Server = tff.types.at_clients, tff.types.at_server

PRINTED_FORMS = pathlib.Path(__file__).parents[1] / "language" / "printed_forms.txt"


def simple() -> Any:
    @tfc(np.int32)
    def add_one(value: Any) -> Any:
        return value + 1

    @fc(Server(np.int32))
    def simple(server_value: Any) -> Any:
        client_values = tff.federated_broadcast(server_value)
        client_values = tff.federated_map(add_one, client_values)
        return tff.federated_sum(client_values)

    return simple


def combine() -> Any:
    @fc(np.int32, np.int32)
    def combine(a: Any, b: Any) -> Any:
        return (a, b)

    return combine


def attrs3() -> Any:
    @fc(Clients([("a", np.int32), ("b", np.float32)]))
    def attrs3(x: Any) -> Any:
        return [x.a, x[1], x[:1]]

    return attrs3


def agg() -> Any:
    add = fc(lambda a, b: a, np.int32, np.int32)
    ident = fc(lambda a: a, np.int32)

    @fc(Clients(np.int32))
    def agg(x: Any) -> Any:
        return tff.federated_aggregate(x, 0, add, add, ident)

    return agg


def red() -> Any:
    add = fc(lambda a, b: a, np.int32, np.int32)

    @fc(Clients(tff.SequenceType(np.int32)))
    def red(x: Any) -> Any:
        return tff.sequence_reduce(x, tff.federated_value(0, tff.CLIENTS), add)

    return red


def example(number: int) -> dict[str, str]:
    """One of the printed examples: its type and its three forms."""
    text = PRINTED_FORMS.read_text()
    block = re.search(rf"^=== P{number} .*?\n(.*?)(?=^=== |\Z)", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    first, *forms = re.split(r"^--- (\w+)\n", block.group(1), flags=re.MULTILINE)
    found = dict(zip(forms[::2], (form.rstrip("\n") for form in forms[1::2]), strict=True))
    return {"type": first.strip(), **found}


@pytest.mark.parametrize(
    ("number", "program"), [(34, simple), (35, combine), (36, attrs3), (37, agg), (38, red)]
)
def test_printed_examples(number: int, program: Any) -> None:
    expected = example(number)
    computation = program()
    node = computation.to_building_block()
    name = re.search(r"comp#([0-9a-f]{8})", compact(node))
    ours = name.group(1) if name else ""
    assert str(computation.type_signature) == expected["type"]
    for style, printer in {
        "compact": compact,
        "formatted": formatted,
        "structural": structural,
    }.items():
        text = printer(node).replace(ours, "95175ae7") if ours else printer(node)
        assert text == expected[style]


def test_calls_into_a_trace_of_another_kind() -> None:
    federated = fc(lambda y: y, np.int32)
    with pytest.raises(ValueError, match="E430") as caught:
        tfc(lambda x: federated(x), np.int32)
    caught.value.span = None  # type: ignore[attr-defined]  # TffcError has a span
    assert str(caught.value) == (
        "a computation of type `(int32 -> int32)` is called inside a tensorflow.computation, but "
        "only TensorFlow computations can be called, and only by one another [E430]\n"
        "  help: call it in a federated computation and pass on what it gives"
    )


def test_operators_in_a_trace_of_another_kind() -> None:
    with pytest.raises(RuntimeError, match=r"used inside a tensorflow.computation \[E430\]"):
        tfc(lambda x: tff.federated_sum(x), np.int32)


def test_federated_computations_made_in_a_trace_of_another_kind() -> None:
    made: list[Any] = []

    def outer(x: Any) -> Any:
        def outer(y: Any) -> Any:
            return y

        made.append(fc(outer, np.int32))
        return x

    tfc(outer, np.int32)
    assert str(made[0].node) == "(outer_arg -> outer_arg)"


def test_modular_sums_need_a_modulus_like_the_value() -> None:
    modular_sum = mapreduce.federated_secure_modular_sum
    with pytest.raises(TypeError) as caught:
        fc(lambda x: modular_sum(x, np.array([4], np.int32)), Clients(np.int32))
    caught.value.span = None  # type: ignore[attr-defined]  # TffcError has a span
    assert str(caught.value) == (
        "a value of type `int32` cannot be reduced modulo one of `int32[1]` [E478]"
        "\n  help: give one number for all elements, or one for each"
    )


def test_parameters_may_have_the_names_of_our_own() -> None:
    @tff.tf_computation(np.int32, np.int32, np.int32)
    def total(context, function, self):
        return context + function + self

    assert total(context=1, function=2, self=3) == 6
