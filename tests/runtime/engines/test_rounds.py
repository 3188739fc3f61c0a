"""Rounds on the local engine: workers, cohorts of nobody, forms, what is opened, and Python."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.processes import run_python
from tests.refusals import error_without_place
from tests.runtime.engines.programs import NONE, every_aggregation, process_of, scaled
from tests.runtime.engines.sources import Values, numbers
from tffc.backends.bundle.bundle import write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import FORMS
from tffc.backends.forms.queries import as_round
from tffc.deploy.engines import ENGINES
from tffc.language.notation import parse
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.support.errors import ExecutionError

FLOATS = tff.types.at_clients(np.float32)


class Parsed:
    """A program in the notation, which need not be one that can be traced."""

    def __init__(self, text: str) -> None:
        self.node = parse(text)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_the_number_of_workers_does_not_matter(form: str) -> None:
    source = numbers(0, 75)
    process = process_of(every_aggregation, form)
    cohort = Cohort(source, source.clients)
    found = [LocalEngine(process, workers).run_round((), cohort).output for workers in (1, 2, 5)]
    assert found[0] == found[1] == found[2]
    assert found[0][2:4] == (sum(range(75)), 0)
    assert found[0][5:] == (sum(range(75)), sum(range(75)))
    np.testing.assert_allclose(found[0][0], np.mean([v for v, _ in source.values]), rtol=1e-6)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_rounds_without_clients(form: str) -> None:
    process = process_of(every_aggregation, form)
    outcome = LocalEngine(process).run_round((), Cohort(Values([]), ()))
    mean, weighted, *rest = outcome.output
    assert np.isnan([mean, weighted]).all()
    assert rest[0] == 0
    assert rest[1] == np.iinfo(np.int32).max
    assert rest[2] == np.finfo(np.float32).min
    assert rest[3:] == [0, 0]


def test_a_client_above_a_bound_is_named() -> None:
    source = Values([(np.float32(0), np.int32(n)) for n in (5, 2000)])
    engine = LocalEngine(process_of(every_aggregation, "distribute-aggregate"))
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E663"
    assert caught.value.notes == ("it was at work on the data of client 00001",)


@tff.tf_computation
def seven() -> Any:
    return np.int32(7)


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def puts_out_what_is_nowhere(state: Any, data: Any) -> Any:
    return state, (tff.federated_sum(data), seven())


def test_an_output_without_a_placement() -> None:
    source = Values([np.int32(1), np.int32(2)])
    engine = LocalEngine(process_of(puts_out_what_is_nowhere, "distribute-aggregate"))
    assert engine.run_round((), Cohort(source, source.clients)).output == (3, 7)


def test_clients_of_a_broadcast_form_keep_what_they_have() -> None:
    delivered: dict[str, Any] = {}
    process = process_of(scaled, "broadcast")
    source = Values([np.int32(n) for n in range(3)])
    cohort = Cohort(source, source.clients, deliver=delivered.__setitem__)
    outcome = LocalEngine(process).run_round(np.int32(7), cohort)
    assert outcome.state == 7
    assert delivered == {"00000": 0, "00001": 7, "00002": 14}


def test_running_from_python(tmp_path: pathlib.Path) -> None:
    @tff.federated_computation(NONE, FLOATS)
    def mean(state: Any, data: Any) -> Any:
        return state, tff.federated_mean(data)

    process = process_of(mean, "mapreduce")
    write_bundle(process.bundle, tmp_path / "bundle")
    loaded = tff.load(tmp_path / "bundle")
    values = [np.float32(1), np.float32(3)]
    assert [each.output for each in tff.run(loaded, values, 2)] == [2.0, 2.0]
    (only,) = tff.run(str(tmp_path / "bundle"), values, 1, clients_per_round=1, seed=3)
    assert only.clients in (("0",), ("1",))


AUDITED = """\
import os, sys
import encodings.cp437  # for the names in zip files
from tffc.cli.application import application

def run(bundle, out, *more):
    options = ["--data", "data", "--rounds", "2", "--log", "jsonl", "--out", out, *more]
    application.main(["run", bundle, *options], standalone_mode=False)

opened, imported = [], []
hook = {"open": lambda a: opened.append(a[0]), "import": lambda a: imported.append(a[0]),
        "exec": lambda a: opened.append(a[0].co_filename)}
sys.addaudithook(lambda event, args: hook.get(event, lambda a: None)(args))
for form in sys.argv[1:]:
    os.chdir(form)
    run("warm", "warm-out")
    opened.clear()
    imported.clear()
    run("bundle", "out")
    # The null device and streams that are open already are where what TensorFlow says is sent.
    names = {os.path.relpath(n) for n in opened if n != os.devnull and not isinstance(n, int)}
    own = ("bundle/", "data/", "out/")
    strange = [name for name in names if name.endswith(".py") or not name.startswith(own)]
    print("read:", form, len(names) > 10, strange, imported)
    os.chdir("..")
"""


REFUSED = {
    "an engine": (
        {"engine": "spark"},
        ValueError,
        f"there is no engine 'spark' [E706]\n  help: there are {', '.join(sorted(ENGINES))}",
    ),
    "a sample": (
        {"clients_per_round": 0},
        ValueError,
        "cannot sample 0 clients for a round [E706]\n"
        "  help: give a positive number, or None for all clients",
    ),
    "data": (
        {"data": np.zeros([2])},
        TypeError,
        "clients' data cannot be an object of class 'ndarray' [E714]\n"
        "  help: give a path, a list with the value of each client, a ClientData, or a source",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_from_python(case: str) -> None:
    options, kind, text = REFUSED[case]
    process = process_of(every_aggregation, "mapreduce")
    data = [(np.float32(1), np.int32(1))]
    error = error_without_place(kind, lambda: tff.run(process, **{"data": data, **options}))
    assert str(error) == text


@pytest.mark.slow
def test_a_bundle_is_never_run_as_python(tmp_path: pathlib.Path) -> None:
    @tff.tf_computation(np.float32)
    def double(x: Any) -> Any:
        return x * 2

    @tff.federated_computation(NONE, FLOATS)
    def mapped(state: Any, data: Any) -> Any:
        return tff.federated_map(double, data)

    @tff.federated_computation(NONE, FLOATS)
    def mean(state: Any, data: Any) -> Any:
        return state, tff.federated_mean(tff.federated_map(double, data))

    @tff.federated_computation(NONE, FLOATS, FLOATS)
    def keeping(state: Any, data: Any, own: Any) -> Any:
        return state, tff.federated_map(double, data), tff.federated_sum(own)

    others = {"broadcast": mapped.node, "client-state": as_round(keeping.node)}
    for form in FORMS:
        folder = tmp_path / form
        for name in ("warm", "bundle"):
            process = Process(compile_bundle(others.get(form, mean.node), form))
            write_bundle(process.bundle, folder / name)
            for module in ("__init__", "numpy", "sitecustomize", "components"):
                (folder / name / f"{module}.py").write_text("raise SystemExit('run as Python')")
        (folder / "data").mkdir()
        np.savez(folder / "data" / "ann.npz", np.float32(2))
    ran = run_python("-c", AUDITED, *FORMS, cwd=tmp_path)
    read = [line for line in ran.stdout.splitlines() if line.startswith("read: ")]
    assert read == [f"read: {form} True [] []" for form in FORMS], ran.stderr


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def of_too_many_bits(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum_bitwidth(data, 63)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_secure_sum_of_too_many_bits(form: str) -> None:
    source = Values([np.int32(1)])
    with pytest.raises(ExecutionError) as caught:
        LocalEngine(process_of(of_too_many_bits, form)).run_round((), Cohort(source, ("00000",)))
    assert caught.value.code == "E734"


MODULAR = (
    "(s:<int32@SERVER,{int32}@CLIENTS> -> <s[0],"
    "federated_secure_modular_sum:(<{int32}@CLIENTS,int32> -> int32@SERVER)(<s[1],%s>)>)"
)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_secure_modular_sums_do_not_wrap_around(form: str) -> None:
    values = [np.int32(2**31 - 2)] * 5
    source = Values(values)
    outcome = LocalEngine(process_of(Parsed(MODULAR % (2**31 - 1)), form)).run_round(
        np.int32(0), Cohort(source, source.clients)
    )
    assert outcome.output == sum(map(int, values)) % (2**31 - 1)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_modulus_of_zero(form: str) -> None:
    source = Values([np.int32(1)])
    with pytest.raises(ExecutionError) as caught:
        LocalEngine(process_of(Parsed(MODULAR % 0), form)).run_round(
            np.int32(0), Cohort(source, source.clients)
        )
    assert caught.value.code == "E722"


@pytest.mark.parametrize(
    ("aggregation", "values", "message"),
    [
        (
            "federated_mean:({int32}@CLIENTS -> int32@SERVER)",
            [np.int32(1)],
            "a mean of integers is not an integer, so there is none of type `int32` [E731]",
        ),
        (
            "federated_sum:({bool}@CLIENTS -> bool@SERVER)",
            [np.True_],
            "there is no arithmetic on values of type `bool` [E731]",
        ),
        (
            "federated_sum:({int32[?]}@CLIENTS -> int32[?]@SERVER)",
            [],
            "there is no value of type `int32[?]` to start from, because the shape of `int32[?]` "
            "is not known [E731]",
        ),
    ],
)
def test_what_cannot_be_aggregated(aggregation: str, values: list[Any], message: str) -> None:
    member = aggregation.partition("({")[2].partition("}")[0]
    program = Parsed(f"(s:<int32@SERVER,{{{member}}}@CLIENTS> -> <s[0],{aggregation}(s[1])>)")
    source = Values(values)
    with pytest.raises(ExecutionError) as caught:
        LocalEngine(process_of(program, "distribute-aggregate")).run_round(
            np.int32(0), Cohort(source, source.clients)
        )
    assert str(caught.value).startswith(message)


def test_a_sum_of_values_whose_shape_is_not_known() -> None:
    total = "federated_sum:({int32[?]}@CLIENTS -> int32[?]@SERVER)"
    program = Parsed(f"(s:<int32@SERVER,{{int32[?]}}@CLIENTS> -> <s[0],{total}(s[1])>)")
    source = Values([np.array([1, 2], np.int32)] * 3)
    outcome = LocalEngine(process_of(program, "distribute-aggregate")).run_round(
        np.int32(0), Cohort(source, source.clients)
    )
    assert outcome.output.tolist() == [3, 6]


def test_a_state_goes_through_python() -> None:
    process = process_of(last_seen, "mapreduce")
    state = process.state_from_python({"a": 1, "b": [2.0, 3.0]}, rounds=4)
    assert (state.rounds, state.program) == (4, process.program)
    kept = process.state_to_python(state)
    assert list(kept) == ["a", "b"]
    assert (kept["a"], kept["b"].tolist()) == (1, [2.0, 3.0])
    assert process.state_from_python(kept, rounds=4).value[0] == state.value[0]
    (after,) = tff.run(process, [5], 1, state=state)
    assert after.number == 5
    assert after.state["a"] == 5


def test_a_state_of_another_type_is_refused() -> None:
    process = process_of(last_seen, "mapreduce")
    with pytest.raises(TypeError, match=r"the state at \.b is 'x'"):
        process.state_from_python({"a": 1, "b": "x"})


@tff.federated_computation(
    tff.types.at_server([("a", np.int32), ("b", (np.float32, [2]))]), tff.types.at_clients(np.int32)
)
def last_seen(state: Any, data: Any) -> Any:
    return tff.federated_zip({"a": tff.federated_max(data), "b": state.b}), tff.federated_sum(data)
