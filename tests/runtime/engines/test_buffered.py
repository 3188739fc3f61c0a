"""Buffered rounds: ages, discounts, steps and drops by hand, determinism, and refusals."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject

import tffc as tff
from tests.backends.test_equivalence import assert_same, with_inputs
from tests.processes import ENVIRONMENT, run_python
from tests.programs import rounds as generated_rounds
from tests.runtime.engines.sources import Values
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.discount import check_discountable
from tffc.language import Node
from tffc.language.nodes import Compiled
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.buffered import draw, run_buffered
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round, run_rounds
from tffc.runtime.engines.state import State
from tffc.support.errors import DataError, ExecutionError, FormError, LanguageValueError, TffcError

STATE, FLOATS = tff.types.at_server(np.float32), tff.types.at_clients(np.float32)


def halved(age: Any) -> Any:
    return tf.pow(0.5, tf.cast(age, tf.float32))


@tff.tf_computation(np.float32, np.float32)
def plus(a: Any, b: Any) -> Any:
    return a + b


@tff.tf_computation(np.float32)
def one(value: Any) -> Any:
    return tf.constant(1)


@tff.buffered(discount=halved)
@tff.federated_computation(STATE, FLOATS)
def summed(state: Any, data: Any) -> Any:
    """Adds what each client has of the state and its data, and counts the clients."""
    worked = tff.federated_map(plus, (data, tff.federated_broadcast(state)))
    total, mean = tff.federated_sum(worked), tff.federated_mean(data)
    output = (total, mean, tff.federated_sum(tff.federated_map(one, data)), tff.federated_max(data))
    return tff.federated_map(plus, (state, total)), tff.federated_zip(output)


@pytest.fixture(scope="module")
def process() -> Process:
    return Process(tff.compile(summed, "mergeable"), is_own=True)


def run(
    process: Process,
    values: Sequence[float],
    delays: Callable[[str, int], float] | str | None,
    rounds: int,
    *buffering: Any,
    workers: int = 1,
    **options: Any,
) -> list[Round]:
    first = State(np.float32(1), process.program, 0)
    source: ClientSource = Values([np.float32(value) for value in values])
    engine, model = LocalEngine(process, workers), Delays.of(delays)
    running = run_buffered(
        engine, first, source, rounds, Buffering(*buffering), delays=model, **options
    )
    return list(running)


def by_hand(
    values: dict[str, float],
    seconds: Callable[[str, int], float],
    rounds: int,
    size: int,
    in_flight: int,
    max_age: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    """The same in plain Python: clients, ages, dropped, seconds, the state and the output."""
    flying: list[tuple[float, int, str, int, float]] = []
    state, version, starts, now, stepped = 1.0, 0, 0, 0.0, 0.0
    merged: list[tuple[str, int, float]] = []
    dropped = 0
    while version < rounds:
        busy = {flight[2] for flight in flying} | {name for name, *_ in merged}
        while len(flying) < in_flight and len(busy) < len(values):
            starts += 1
            client = draw(list(values), busy, 0, starts)
            busy.add(client)
            flying.append((now + seconds(client, starts), starts, client, version, state))
        now = min(flying)[0]
        arrived = sorted(flight for flight in flying if flight[0] == now)
        flying = [flight for flight in flying if flight[0] != now]
        for _, _, client, begun, held in arrived:
            age = version - begun
            if max_age is not None and age > max_age:
                dropped += 1
                continue
            merged.append((client, age, values[client] + held))
            if len(merged) < size:
                continue
            total = sum(0.5**age * value for _, age, value in merged)
            weights = sum(0.5**age for _, age, _ in merged)
            mean = sum(0.5**age * values[client] for client, age, _ in merged) / weights
            state, version = state + total, version + 1
            most = max(values[client] for client, *_ in merged)
            names, ages = tuple(name for name, *_ in merged), tuple(age for _, age, _ in merged)
            yield names, ages, dropped, now - stepped, state, (total, mean, size, most)
            merged, dropped, stepped = [], 0, now
            if version == rounds:
                return


def check_by_record(
    rounds: Sequence[Round], values: Sequence[Any], size: int, max_age: int | None = None
) -> None:
    """Check the states and outputs of rounds by the clients and ages that these record."""
    states = [1.0]
    for number, finished in enumerate(rounds, 1):
        assert finished.number == number
        assert finished.contributions is not None
        ages = finished.contributions.ages
        assert len(set(finished.clients)) == len(finished.clients) == len(ages) == size
        assert max(ages) <= (number - 1 if max_age is None else min(max_age, number - 1))
        merged = list(zip(finished.clients, ages, strict=True))
        weights = {client: 0.5**age for client, age in merged}
        total = sum(
            weights[client] * (values[int(client)] + states[number - 1 - age])
            for client, age in merged
        )
        mean = sum(weights[client] * values[int(client)] for client in weights)
        states.append(states[-1] + total)
        np.testing.assert_allclose(finished.state.value, states[-1], rtol=1e-5)
        most = max(values[int(client)] for client in weights)
        expected = total, mean / sum(weights.values()), size, most
        np.testing.assert_allclose(finished.output, expected, rtol=1e-5)


def seconds(client: str, number: int) -> float:
    return float(1 + (int(client) * 7 + number * 3) % 5) + 20.0 * (int(client) == 3)


@pytest.mark.parametrize("buffering", [(2, 3), (3, 5), (1, 4), (2, 5, 1), (5, 5), (3, 1)], ids=str)
def test_steps_by_hand(process: Process, buffering: tuple[int, ...]) -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    expected = list(
        by_hand({f"{at:05}": value for at, value in enumerate(values)}, seconds, 6, *buffering)
    )
    for finished, wanted in zip(
        run(process, values, seconds, 6, *buffering), expected, strict=True
    ):
        names, ages, dropped, lasted, state, output = wanted
        merged = finished.contributions
        assert merged is not None
        assert (finished.clients, merged.ages, merged.dropped) == (names, ages, dropped)
        assert finished.simulated == pytest.approx(lasted)
        assert finished.state.value == pytest.approx(state, rel=1e-5)
        assert finished.output == pytest.approx(output, rel=1e-5)


def test_old_contributions_are_dropped(process: Process) -> None:
    dropped = 0
    for finished in run(process, range(5), seconds, 20, 2, 4, 0):
        assert finished.contributions is not None
        assert set(finished.contributions.ages) == {0}
        dropped += finished.contributions.dropped
    assert dropped > 0


def test_a_step_has_one_contribution_of_a_client(process: Process) -> None:
    for finished in run(process, range(4), lambda client, _: 1.0 + 9 * (int(client) == 0), 9, 3, 3):
        assert len(set(finished.clients)) == 3


def test_the_number_of_workers_does_not_matter(process: Process) -> None:
    model = "lognormal:10,0.7+stragglers:0.3,6"
    results = [run(process, range(9), model, 8, 3, 6, workers=workers) for workers in (1, 2, 5)]
    assert results[0] == results[1] == results[2]
    assert len({finished.contributions for finished in results[0]}) > 1


def test_the_seed_decides(process: Process) -> None:
    one, same, other = (run(process, range(9), None, 4, 3, 6, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert [each.clients for each in one] != [each.clients for each in other]


def test_bad_clients_are_left_out(process: Process) -> None:
    class Some(Values):
        def read(self, client: str) -> Any:
            if int(client) in (1, 3):
                raise DataError("E850", "gone")
            return super().read(client)

    source = Some([np.float32(value) for value in range(5)])
    first = State(np.float32(1), process.program, 0)

    def running(size: int, **options: Any) -> list[Round]:
        engine = LocalEngine(process, 1)
        return list(run_buffered(engine, first, source, 4, Buffering(size, 5), **options))

    done = running(2, skip_bad_clients=True)
    assert {name for each in done for name in each.skipped} == {"00001", "00003"}
    assert not {name for each in done for name in each.clients} & {"00001", "00003"}
    with pytest.raises(DataError, match="gone"):
        running(2)
    with pytest.raises(ExecutionError, match="round 1 is not released: it would aggregate 3"):
        running(4, skip_bad_clients=True)


def test_too_few_clients_are_refused(process: Process) -> None:
    with pytest.raises(DataError, match="cannot have 4 clients in flight or in the buffer, of 3"):
        run(process, range(3), None, 1, 2, 4)
    with pytest.raises(ExecutionError, match=r"aggregates 2 clients, and 3 are needed") as caught:
        run(process, range(3), None, 1, 2, 2, least_clients=3)
    assert caught.value.code == "E746"


@pytest.mark.parametrize(
    "weight", [lambda age: -1.0, lambda age: float("nan")], ids=["negative", "nan"]
)
def test_a_discount_is_a_weight(weight: Callable[[Any], float]) -> None:
    program = tff.buffered(discount=weight)(summed)
    with pytest.raises(ExecutionError, match=r"discount of a buffered round is .* for the age 0"):
        run(Process(tff.compile(program, "mergeable"), is_own=True), range(3), None, 1, 2, 2)


def constant() -> Compiled:
    weight = tff.tf_computation(lambda age: tf.constant(1.0), np.int32).node
    assert isinstance(weight, Compiled)
    return weight


@pytest.mark.slow
@given(with_inputs(generated_rounds()))
def test_all_clients_without_age_are_a_round(case: tuple[Node, Any, list[Any]]) -> None:
    program, state, clients = case
    try:
        check_discountable(program)
        bundle = compile_bundle(program, "mergeable", discount=constant())
    except FormError:
        reject()
    process = Process(bundle, is_own=True)
    first = process.state_from_python(state)
    source = Values([to_value(client, process.data_type) for client in clients])
    engine, count = LocalEngine(process, 1), len(clients)
    whole = list(run_rounds(engine, first, source, 2))
    steps = list(run_buffered(engine, first, source, 2, Buffering(count, count)))
    for one, other in zip(whole, steps, strict=True):
        assert sorted(other.clients) == sorted(one.clients)
        for type, found, expected in (
            (process.state_type, other.state.value, one.state.value),
            (process.output_type, other.output, one.output),
        ):
            assert_same(type, to_python(found, type), to_python(expected, type))


def test_delays() -> None:
    model = Delays.parse("lognormal:10,0.5+stragglers:0.25,8")
    names = [str(number) for number in range(2000)]
    slow = {name for name in names if model.is_straggler(name)}
    assert 0.2 < len(slow) / len(names) < 0.3
    drawn = [model.seconds(0, 1, name) / (8 if name in slow else 1) for name in names]
    assert np.median(drawn) == pytest.approx(10, rel=0.1)
    assert np.std(np.log(drawn)) == pytest.approx(0.5, rel=0.1)
    assert model.seconds(0, 1, "a") == Delays.parse(model.text).seconds(0, 1, "a")
    assert model.seconds(0, 1, "a") != model.seconds(0, 2, "a")
    assert Delays.parse("constant:3").of_round(0, 1, names) == 3
    assert Delays.parse("constant:2+stragglers:1,4").of_round(0, 1, names) == 8


@pytest.mark.parametrize(
    "text",
    ["", "constant", "constant:-1", "constant:1,2", "lognormal:0,1", "lognormal:1", "constant:inf",
     "constant:1+fast:1,2", "constant:1+stragglers:2,2", "normal:1,1",
     "constant:1+stragglers:0.1,2+stragglers:0.1,2"],
)  # fmt: skip
def test_no_models_of_delays(text: str) -> None:
    with pytest.raises(LanguageValueError, match="is no model of delays"):
        Delays.parse(text)


def test_a_function_of_delays_gives_seconds() -> None:
    model = Delays.of(lambda client, number: -1)
    assert model is not None
    with pytest.raises(TffcError, match="the delay of client a at start 3 is -1"):
        model.seconds(0, 3, "a")


RUN = """
import sys
import numpy as np
import tffc
from tests.runtime.engines.test_buffered import summed

bundle = tffc.compile(summed, "mergeable")
options = dict(buffer=2, in_flight=4, delays="lognormal:5,1", out=sys.argv[1], workers=2)
tffc.run(bundle, [np.float32(n) for n in range(7)], 5, state=np.float32(1), **options).finish()
"""


@pytest.mark.slow
def test_runs_are_the_same_to_the_byte(tmp_path: pathlib.Path) -> None:
    for name in "12":
        run_python("-c", RUN, str(tmp_path / name), env={**ENVIRONMENT, "PYTHONHASHSEED": name})
    for file in ("state.npz", "metrics.jsonl", "run.json", "outputs/round-5.npz"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


def test_in_python(tmp_path: pathlib.Path) -> None:
    data = [np.float32(value) for value in range(5)]
    bundle = tff.compile(summed, "mergeable")
    options: Any = {"state": np.float32(1), "buffer": 2, "in_flight": 3}
    rounds = list(tff.run(bundle, data, 3, delays="constant:2", out=tmp_path / "run", **options))
    assert [each.simulated for each in rounds] == [2.0, 2.0, 0.0]
    assert rounds[2].contributions is not None
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert '"simulated": 2.0, "ages": [' in lines[0]
    whole = list(tff.run(bundle, data, 2, delays="constant:2", state=np.float32(1)))
    assert [each.simulated for each in whole] == [2.0, 2.0]
    assert whole[0].contributions is None
    loaded = tff.compile(summed, "mergeable")
    loaded.save(tmp_path / "bundle")
    again = list(tff.run(tff.load(tmp_path / "bundle"), data, 3, delays="constant:2", **options))
    assert [each.state for each in again] == [each.state for each in rounds]


def test_an_interrupted_run_is_begun_again() -> None:
    data = [np.float32(value) for value in range(5)]
    bundle = tff.compile(summed, "mergeable")
    options: Any = {"buffer": 2, "in_flight": 3}
    running = tff.run(bundle, data, 3, state=np.float32(1), **options)
    next(running)
    running._running = None
    with pytest.raises(TffcError, match="its clients in flight are lost"):
        next(running)
    assert next(tff.run(bundle, data, 2, state=running, **options)).number == 2


def test_proofs_and_bytes_of_other_bundles_stay() -> None:
    bundle = tff.compile(summed, "mergeable")
    plain = dataclasses.replace(bundle, discount=None)
    assert "discount" not in plain.encode()["manifest.json"].decode()
    assert set(bundle.encode()) - set(plain.encode()) == {"discount.pb", "discount.sexpr"}
    assert tff.compile(summed, "mapreduce").discount is None
    assert tff.prove(bundle).is_proved
