"""Functions of Python in TensorFlow computations: they live as long as their process, in which they
run, and no computation leaves the process with one."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.backends.bundle.bundle import write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.language import wire
from tffc.language.notation import write_sections
from tffc.language.wire.python_functions import FUNCTIONS
from tffc.runtime.engines.shipment import bundle_to_bytes
from tffc.support.errors import LanguageValueError

INT = np.int32


def doubled(x: Any) -> Any:
    return INT(2 * x)


def shaped(x: Any) -> Any:
    return tf.ensure_shape(x, [])


def by_numpy(x: Any) -> Any:
    return shaped(tf.numpy_function(doubled, [x], tf.int32))  # here: numpy


def by_eager(x: Any) -> Any:
    return shaped(tf.py_function(lambda y: 2 * y, [x], tf.int32))  # here: eager


def without_state(x: Any) -> Any:
    return shaped(tf.numpy_function(doubled, [x], tf.int32, stateful=False))  # here: stateless


def from_generator(x: Any) -> Any:
    def numbers() -> Any:
        yield from (1, 1)

    spec = tf.TensorSpec((), tf.int32)
    read = tf.data.Dataset.from_generator(numbers, output_signature=spec)  # here: generator
    return x * read.reduce(0, lambda one, other: one + other)


def in_a_map(x: Any) -> Any:
    return tf.data.Dataset.from_tensors(x).map(by_numpy).get_single_element()


def in_a_branch(x: Any) -> Any:
    return tf.cond(x > 0, lambda: by_numpy(x), lambda: by_numpy(x))


def in_a_loop(x: Any) -> Any:
    return tf.while_loop(lambda at, _: at < 1, lambda at, _: (at + 1, by_eager(x)), (0, x))[1]


def by_a_token(x: Any) -> Any:
    # As an extension that has its own way to make the operation would do it.
    registry = __import__("tensorflow.python.ops.script_ops", fromlist=["_py_funcs"])._py_funcs
    kept.append(doubled)
    token = registry.insert(doubled)  # here: token
    return shaped(tf.raw_ops.PyFunc(input=[x], token=token, Tout=[tf.int32])[0])


kept: list[Any] = []

CASES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "numpy_function": ("numpy", by_numpy),
    "py_function": ("eager", by_eager),
    "a function without state": ("stateless", without_state),
    "from_generator": ("generator", from_generator),
    "in a tf.function": ("numpy", tf.function(by_numpy)),
    "in a map of a dataset": ("numpy", in_a_map),
    "in a branch": ("numpy", in_a_branch),
    "in a loop": ("eager", in_a_loop),
    "a token": ("token", by_a_token),
}


def line_of(place: str) -> int:
    lines = pathlib.Path(__file__).read_text().splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"# here: {place}"))
    return number


def check_refused(use: Callable[[], Any], place: str) -> None:
    with pytest.raises(LanguageValueError) as caught:
        use()
    assert (caught.value.code, caught.value.message) == (
        "E907",
        "the program calls a function of Python, which cannot leave the process that traced it",
    )
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (__file__, line_of(place))


def round_of(function: Callable[[Any], Any]) -> Any:
    each = tff.tf_computation(INT)(function)

    @tff.federated_computation(tff.types.at_server(INT), tff.types.at_clients(INT))
    def round(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(each, data))

    return round


@pytest.fixture(scope="module")
def computations() -> dict[str, Any]:
    programs = {case: round_of(function) for case, (_, function) in CASES.items()}
    # TensorFlow forgets the functions of graphs that are gone.
    gc.collect()
    return programs


@pytest.mark.parametrize("case", CASES)
def test_it_runs_whenever_the_process_does(case: str, computations: dict[str, Any]) -> None:
    assert computations[case](INT(0), [INT(1), INT(2)]) == (0, 6)


@pytest.mark.parametrize("case", CASES)
def test_it_does_not_leave(case: str, computations: dict[str, Any], tmp_path: pathlib.Path) -> None:
    place, computation = CASES[case][0], computations[case]
    bundle = compile_bundle(computation.node, "mapreduce")
    check_refused(lambda: tff.serialize_computation(computation), place)
    check_refused(lambda: write_bundle(bundle, tmp_path / "bundle"), place)
    # What engines send to their workers.
    check_refused(lambda: bundle_to_bytes(bundle), place)
    check_refused(lambda: write_sections(computation.node, tmp_path / "sections"), place)
    assert list(tmp_path.iterdir()) == []
    # The linked components call it too.
    check_refused(lambda: [wire.to_bytes(each) for each in bundle.components.values()], place)
    assert wire.to_bytes(computation.node, leaves=False)


def test_a_function_that_does_not_exist_is_refused() -> None:
    def called(x: Any) -> Any:
        return tf.raw_ops.PyFunc(input=[x], token="nobody", Tout=[tf.int32])[0]

    with pytest.raises(LanguageValueError, match="that does not exist: b'nobody'") as caught:
        tff.tf_computation(INT)(called)
    assert caught.value.code == "E909"


def test_a_computation_that_another_one_calls() -> None:
    inner = tff.tf_computation(INT)(by_numpy)
    outer = tff.tf_computation(INT)(lambda x: inner(x) + 1)
    assert outer(1) == 3
    check_refused(lambda: tff.serialize_computation(outer), "numpy")


def test_what_is_named_like_one_may_leave() -> None:
    tff.tf_computation(INT)(by_numpy)
    assert FUNCTIONS
    named = tff.tf_computation(INT)(lambda x: tf.identity(x, name="PyFunc"))
    assert tff.deserialize_computation(tff.serialize_computation(named))(3) == 3


def test_no_trace_of_it_stays_in_tensorflow() -> None:
    registry: Any = __import__("tensorflow.python.ops.script_ops", fromlist=["x"])._py_funcs
    assert "insert" not in vars(registry)
