"""Refusals of parts that need a package that is not installed say which parts these are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.runtime.engines.paths import lowering
from tests.runtime.engines.programs import NONE, process_of
from tests.runtime.engines.recorded import run_round
from tffc.backends.compiler import compile_bundle
from tffc.runtime.engines import sections
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shipment import bundle_to_bytes, load_bundle
from tffc.support.errors import TffcError

INTS = tff.types.at_clients(np.int32)


@tff.tf_computation(np.int32)
def digits(x: Any) -> Any:
    """Strings in between, which only TensorFlow computes with."""
    return tf.strings.length(tf.strings.as_string(x))


@tff.tf_computation(np.int32, np.int32)
def add_digits(total: Any, x: Any) -> Any:
    return total + tf.strings.length(tf.strings.as_string(x))


@tff.tf_computation(np.int32, np.int32)
def add(x: Any, y: Any) -> Any:
    return x + y


@tff.tf_computation(np.int32)
def same(x: Any) -> Any:
    return x


@tff.tf_computation(np.str_)
def length(text: Any) -> Any:
    return tf.strings.length(text)


@tff.federated_computation(NONE, tff.types.at_clients(np.str_))
def of_texts(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(tff.federated_map(length, data))


@tff.federated_computation(NONE, INTS)
def at_clients(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(tff.federated_map(digits, data))


@tff.federated_computation(NONE, INTS)
def on_the_way(state: Any, data: Any) -> Any:
    total = tff.federated_aggregate(data, np.int32(0), add_digits, add, same)
    return state, total


@tff.federated_computation(NONE, INTS)
def at_the_server(state: Any, data: Any) -> Any:
    return state, tff.federated_map(digits, tff.federated_sum(data))


@tff.federated_computation(NONE, INTS)
def at_both(state: Any, data: Any) -> Any:
    total = tff.federated_sum(tff.federated_map(digits, data))
    return state, tff.federated_map(digits, total)


STRINGS, AS_STRING = "it takes or gives strings", "it has the operation AsString"
AT_WORK = "it was at work on the data of client 00000"

REFUSED = [
    ("mapreduce", of_texts, b"text", STRINGS, "`work`", True),
    ("mapreduce", at_clients, 7, AS_STRING, "`work`", True),
    ("mapreduce", on_the_way, 7, AS_STRING, "`accumulate`", True),
    ("mapreduce", at_the_server, 7, AS_STRING, "`update`", False),
    ("distribute-aggregate", of_texts, b"text", STRINGS, "`client_work`", True),
    ("distribute-aggregate", on_the_way, 7, AS_STRING, "`client_to_server_aggregation`", True),
    ("distribute-aggregate", at_the_server, 7, AS_STRING, "`server_result`", False),
    ("distribute-aggregate", at_both, 7, AS_STRING, "`client_work` and `server_result`", True),
    ("mergeable", at_clients, 7, AS_STRING, "`up_to_merge`", True),
    ("mergeable", at_the_server, 7, AS_STRING, "`after_merge`", False),
]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("form", "program", "data", "reason", "names", "is_client"), REFUSED)
def test_names_of_components(
    form: str, program: Any, data: Any, reason: str, names: str, is_client: bool, size: int
) -> None:
    engine = LocalEngine(process_of(program, form), 1, Batching(size))
    held = data if isinstance(data, bytes) else np.int32(data)
    with lowering(), pytest.raises(TffcError) as caught:
        run_round(engine, (), [held])
    error = caught.value
    assert error.code == "E701"
    assert error.message == "TensorFlow is not installed, and a part of the program needs it"
    assert error.notes == (
        f"it cannot be compiled without TensorFlow: {reason}",
        f"it is in the bundle's {names}",
        *([AT_WORK] if is_client else []),
    )


def test_the_first_state() -> None:
    @tff.federated_computation
    def begin() -> Any:
        return tff.federated_eval(
            tff.tf_computation(
                lambda: tf.strings.length(tf.strings.as_string(tf.random.uniform([])))
            ),
            tff.SERVER,
        )

    @tff.federated_computation(tff.types.at_server(np.int32), INTS)
    def following(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(data)

    bundle = compile_bundle(following.node, "mapreduce", initialize=begin.node)
    with lowering(), pytest.raises(TffcError) as caught:
        Process(bundle).first_state()
    assert caught.value.notes[1:] == ("it is in the bundle's `initialize`",)


def test_masked_sums() -> None:
    engine = LocalEngine(process_of(at_clients), 1, masks_sums=True)
    with lowering(), pytest.raises(TffcError) as caught:
        run_round(engine, (), [np.int32(7)])
    assert caught.value.notes[1:] == ("it is in the bundle's `work`", AT_WORK)


def test_workers_in_other_processes() -> None:
    data = bundle_to_bytes(compile_bundle(of_texts.node, "mapreduce"))
    with lowering(), pytest.raises(TffcError) as caught:
        load_bundle(data)
    assert caught.value.notes[1:] == ("it is in the bundle's `work`",)


def test_parts_that_need_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    @tff.federated_computation(NONE, INTS)
    def squares(state: Any, data: Any) -> Any:
        square = tff.jax_computation(np.int32)(lambda x: x * x)
        return state, tff.federated_sum(tff.federated_map(square, data))

    engine = LocalEngine(process_of(squares, "distribute-aggregate"), 1)
    sections.sections.load_section.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)
    with lowering(), pytest.raises(TffcError) as caught:
        run_round(engine, (), [np.int32(7)])
    error = caught.value
    assert error.code == "E701"
    assert error.message == "a JAX computation needs JAX, which cannot be imported"
    assert error.notes[1:] == ("it is in the bundle's `client_work`",)
