"""What is not translated is refused, and then called as it is; loops that might not end are too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tffc as tff
from tests.runtime.lowering.modules.comparison import (
    Module,
    computed,
    module_of,
    module_of_text,
)
from tests.runtime.lowering.modules.samples import SAMPLES, Sample, collatz, drawn
from tests.runtime.lowering.modules.texts import Text
from tffc.graphs.operations.effects import MODULE
from tffc.graphs.proto import AttrValue, NodeDef
from tffc.linking.attributes import shapes_attribute, types_attribute
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.jax_modules import call_module

X = np.array([-1.5, 0, 0.25, 2], np.float32)

REFUSED_TEXTS = {
    "stablehlo.compare is in a total order": """
        %1 = stablehlo.compare LT, %0, %0, TOTALORDER
          : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
        %2 = stablehlo.select %1, %0, %0 : tensor<4xi1>, tensor<4xf32>
        %2
        """,
    "stablehlo.sort is in an order that JAX does not have": """
        %c = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %b, %c : tensor<f32>
          %l = stablehlo.compare LT, %s, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %l : tensor<i1>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %1
        """,
    "stablehlo.scatter combines elements by stablehlo.divide": """
        %c = stablehlo.constant dense<[[1], [9]]> : tensor<2x1xi32>
        %d = stablehlo.constant dense<[4.0, 4.0]> : tensor<2xf32>
        %1 = "stablehlo.scatter"(%0, %c, %d) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.divide %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
        %1
        """,
    "stablehlo.reduce begins with values that are no constants": """
        %1 = stablehlo.slice %0 [3:4] : (tensor<4xf32>) -> tensor<1xf32>
        %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
        %3 = stablehlo.reduce(%0 init: %2) applies stablehlo.add across dimensions = [0]
          : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4xf32>
        %4
        """,
    "stablehlo.exponential has an accuracy of its own": """
        %1 = "stablehlo.exponential"(%0) {result_accuracy = #stablehlo.result_accuracy<
          atol = 0.0, rtol = 0.0, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}
          : (tensor<4xf32>) -> tensor<4xf32>
        %1
        """,
    "stablehlo.map has no translation": """
        %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
          ^bb0(%a: tensor<f32>):
          %s = stablehlo.add %a, %a : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %1
        """,
}


def repeated(function: Callable[[Any], Any], times: int) -> Callable[[Any], Any]:
    """Return a function in so many branches, one inside of the other."""
    if not times:
        return function
    inner = repeated(function, times - 1)
    return lambda x: lax.cond(x[0] > times, inner, lambda x: x, x)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "stablehlo.dot_general is computed by an algorithm that not every device has": lambda x: (
        lax.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32) + x
    ),
    "a module has more than 40 nested calls or regions": repeated(jnp.sin, 39),
}


def node_of(module: Module, arguments: Sequence[Any]) -> Any:
    """Return the node of a graph that runs a module."""
    kinds = [
        [tff.TensorType(each.dtype.type, each.shape) for each in arrays]
        for arrays in (arguments, module.outputs)
    ]
    node = NodeDef(name="module", op=MODULE)
    node.attr["Tin"].CopyFrom(types_attribute(kinds[0]))
    node.attr["Tout"].CopyFrom(types_attribute(kinds[1]))
    node.attr["Sout"].CopyFrom(shapes_attribute(kinds[1]))
    node.attr["module"].CopyFrom(AttrValue(s=module.artifact))
    return node


def calling(module: Module, arguments: Sequence[Any], *, is_portable: bool) -> Any:
    """Return the function of a node that runs a module, as a step of a client calls it."""
    how = {"selects": False, "is_shared": False, "is_portable": is_portable}
    node = node_of(module, arguments)
    return lambda *inputs: tuple(call_module(node, inputs, **how))


def check_refused(module: Module, arguments: Sequence[Any], reason: str) -> None:
    """Check that a module is not translated, and called as it is where that is possible."""
    with pytest.raises(NotLoweredError) as caught:
        computed(calling(module, arguments, is_portable=True), arguments)
    assert str(caught.value) == reason
    ours = computed(calling(module, arguments, is_portable=False), arguments)
    theirs = computed(module.called(), arguments)
    assert [each.tobytes() for each in ours] == [each.tobytes() for each in theirs]


@pytest.mark.parametrize("reason", REFUSED_TEXTS)
def test_written_modules_that_are_not_translated_are_called(reason: str) -> None:
    check_refused(module_of_text(Text(REFUSED_TEXTS[reason], (X,), (X,))), [X], reason)


@pytest.mark.slow
@pytest.mark.parametrize("reason", REFUSED)
def test_functions_that_are_not_translated_are_called(reason: str) -> None:
    check_refused(module_of(Sample(REFUSED[reason], (X,))), [X], reason)


def test_a_module_of_other_arrays_is_refused() -> None:
    module = module_of(Sample(jnp.sin, (X,)))
    for arguments, outputs, reason in (
        ([X[:2]], [X], "a module calls main with other arrays than it takes"),
        ([X], [X[:2]], "a module gives other arrays than its graph says"),
        ([X], [], "a module gives other arrays than its graph says"),
    ):
        with pytest.raises(NotLoweredError) as caught:
            computed(module._replace(outputs=outputs).translated(), arguments)
        assert str(caught.value) == reason


def test_bytes_that_are_no_module_are_refused() -> None:
    module = Module(b"no module", [X])
    with pytest.raises(NotLoweredError, match="a module cannot be translated"):
        computed(module.translated(), [X])


MIGHT_NOT_END = "a module has a loop that might not end for clients not in it"
NUMBER = np.int32(27)

UNCOUNTED: dict[str, Callable[[Any], Any]] = {
    "another condition": collatz,
    "a number of steps known when it runs": lambda n: lax.fori_loop(0, n, lambda i, s: s + i, n),
    "a start known when it runs": lambda n: lax.fori_loop(n, 30, lambda i, s: s + i, n),
    "another step": lambda n: lax.while_loop(
        lambda s: s[0] < 30, lambda s: (s[0] + 2, s[1] * 2), (np.int32(0), n)
    )[1],
    "a step back": lambda n: lax.while_loop(
        lambda s: s[0] < 30, lambda s: (s[0] - 1, s[1] * 2), (np.int32(0), n)
    )[1],
    "another number": lambda n: lax.while_loop(
        lambda s: s[1] < 30, lambda s: (s[0] + 1, s[1] + n), (np.int32(0), n)
    )[1],
    "an end that changes": lambda n: lax.while_loop(
        lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1] * 0), (np.int32(0), n)
    )[1],
}


@pytest.mark.parametrize("name", UNCOUNTED)
def test_a_loop_that_might_not_end_is_refused_where_clients_share_it(name: str) -> None:
    module = module_of(Sample(UNCOUNTED[name], (NUMBER,)))
    with pytest.raises(NotLoweredError) as caught:
        jax.eval_shape(module.translated(selects=True, is_shared=True), NUMBER)
    assert str(caught.value) == MIGHT_NOT_END


@pytest.mark.parametrize("name", ["scan", "scans in a scan", "scan in a branch"])
def test_loops_of_so_many_steps_are_shared(name: str) -> None:
    sample = SAMPLES[name]
    module = module_of(sample)
    function = module.translated(selects=True, is_shared=True)
    for one, other in zip(
        computed(function, sample.arguments),
        computed(module.called(), sample.arguments),
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()


def nested(number: Any) -> Any:
    """A loop that ends for no client but those in it."""

    def step(state: Any) -> Any:
        target = lax.while_loop(lambda n: n != 0, lambda n: n - 1, state[0] + 1)
        return state[0] - 1, state[1] + target + 1

    return lax.while_loop(lambda state: state[0] >= 0, step, (number, np.int32(0)))[1]


INSIDE: dict[str, Callable[[Any], Any]] = {
    "a loop": nested,
    "a branch": lambda n: lax.cond(n > 10, lambda n: collatz(n)[1], lambda n: n, n),
    "one of several branches": lambda n: lax.switch(
        n % 3, [lambda n: n, lambda n: -n, lambda n: collatz(n)[1]], n
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_loop_inside_of(name: str) -> None:
    module = module_of(Sample(INSIDE[name], (NUMBER,)))
    with pytest.raises(NotLoweredError) as caught:
        jax.eval_shape(module.translated(selects=True), NUMBER)
    assert str(caught.value) == MIGHT_NOT_END


def test_one_client_is_in_every_loop() -> None:
    for function in INSIDE.values():
        module = module_of(Sample(function, (NUMBER,)))
        (ours,), (theirs,) = (
            computed(each, [NUMBER]) for each in (module.translated(), module.called())
        )
        assert ours == theirs


def test_the_caller_says_how_precise_products_are() -> None:
    module = module_of(Sample(lambda a, b: a @ b, (drawn(3, 4), drawn(4, 3))))
    arguments = [drawn(3, 4), drawn(4, 3)]
    for precision, expected in (("highest", "[HIGHEST, HIGHEST]"), (None, "[DEFAULT, DEFAULT]")):
        with jax.default_matmul_precision(precision):
            text = jax.jit(module.translated()).lower(*arguments).as_text()
        assert f"precision = {expected}" in text


def test_a_product_with_a_precision_keeps_it() -> None:
    arguments = (drawn(3, 4), drawn(4, 3))
    module = module_of(Sample(lambda a, b: lax.dot(a, b, precision="high"), arguments))
    with jax.default_matmul_precision("highest"):
        text = jax.jit(module.translated()).lower(*arguments).as_text()
    assert "precision = [HIGH, HIGH]" in text


def test_large_constants_of_equal_elements_stay_small() -> None:
    module = module_of(Sample(lambda x: x + np.ones((300, 400), np.float32), (np.float32(1),)))
    assert len(jax.jit(module.translated()).lower(np.float32(1)).as_text()) < 2000
