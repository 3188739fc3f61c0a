"""Rounds on Apache Beam give what they give on the local engine."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tffc as tff
from tests.cli.conftest import ENVIRONMENT, ROOT
from tests.engines import killed_worker
from tests.engines.sources import SomeBad, Values
from tests.engines.test_rounds import every_aggregation, process_of
from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import Bundle, write_bundle
from tffc.cli.application import application
from tffc.engines.beam import IN_PROCESS, BeamEngine
from tffc.engines.beam_results import Result, ResultKind
from tffc.engines.beam_shipment import ROUND, Shipment, write_file
from tffc.engines.engine import Cohort, RoundResult
from tffc.engines.local import LocalEngine
from tffc.engines.process import Process
from tffc.engines.rounds import Sampling, run_rounds
from tffc.engines.table import make_engine
from tffc.errors import DataError, ExecutionError, LanguageValueError, MissingExtraError

pytestmark = pytest.mark.slow

needs_beam = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None, reason="needs tffc[beam]"
)
FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
NONE = tff.types.at_server(())
INT = tff.types.at_clients(np.int32)


THREADS = "--direct_running_mode=multi_threading", "--direct_num_workers=3"
"""So that clients are worked on in several groups."""


def numbers(count: int) -> Values:
    return Values([(np.float32(1 / (n + 3)), np.int32(n)) for n in range(count)])


def both(process: Process, cohort: Cohort, *options: str) -> tuple[RoundResult, RoundResult]:
    engines = LocalEngine(process), BeamEngine(process, options)
    local, beam = (engine.run_round((), cohort) for engine in engines)
    return local, beam


def assert_equal_up_to_rounding(local: RoundResult, beam: RoundResult) -> None:
    assert beam.skipped == local.skipped
    assert len(beam.output) == len(local.output)
    for found, expected in zip(beam.output, local.output, strict=True):
        assert found.dtype == expected.dtype
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        else:
            np.testing.assert_array_equal(found, expected)


@needs_beam
@FORMS
@pytest.mark.parametrize("options", [(), ("--fanout=3", *THREADS)], ids=["flat", "fanout"])
def test_every_aggregation(form: str, options: tuple[str, ...]) -> None:
    source = numbers(75)
    local, beam = both(
        process_of(every_aggregation, form), Cohort(source, source.clients), *options
    )
    assert_equal_up_to_rounding(local, beam)
    assert beam.output[2:4] == (sum(range(75)), 0)


@needs_beam
@FORMS
def test_rounds_without_clients(form: str) -> None:
    local, beam = both(process_of(every_aggregation, form), Cohort(numbers(0), ()))
    assert_equal_up_to_rounding(local, beam)
    assert np.isnan(beam.output[0])


@needs_beam
@FORMS
def test_clients_with_bad_data_are_left_out_or_fail_the_round(form: str) -> None:
    process = process_of(every_aggregation, form)
    source = SomeBad(numbers(7).values)
    local, beam = both(process, Cohort(source, source.clients, skip_bad_clients=True))
    assert_equal_up_to_rounding(local, beam)
    assert beam.skipped == ("00001", "00003", "00005")
    only_bad = Cohort(source, ("00001", "00003"), skip_bad_clients=True)
    assert_equal_up_to_rounding(*both(process, only_bad))
    with pytest.raises(DataError) as caught:
        BeamEngine(process).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == "no data of 00001 [E000]\n  note: a note\n  help: some help"


LIMIT = 50


@tff.federated_computation(NONE, INT)
def bounded(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum(data, LIMIT)


@needs_beam
@FORMS
@pytest.mark.parametrize("options", [(), ("--fanout=2",)], ids=["flat", "fanout"])
def test_errors_of_aggregations_are_those_of_the_first_client(
    form: str, options: tuple[str, ...]
) -> None:
    source = Values([np.int32(LIMIT - 5 + n) for n in range(9)])
    with pytest.raises(ExecutionError) as caught:
        BeamEngine(process_of(bounded, form), options).run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E663"
    assert "client 00006 adds 51" in caught.value.message


@tff.tf_computation(np.int32, np.int32)
def difference(key: Any, data: Any) -> Any:
    return key - data


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def personal(key: Any, data: Any) -> Any:
    return tff.federated_map(difference, (tff.federated_broadcast(key), data))


@needs_beam
def test_every_client_of_a_broadcast_form_has_its_own() -> None:
    process = process_of(personal, "broadcast")
    source = Values([np.int32(n) for n in (5, 2, 9)])
    delivered: dict[str, Any] = {}
    cohort = Cohort(source, source.clients, deliver=delivered.__setitem__)
    outcome = BeamEngine(process).run_round(np.int32(4), cohort)
    assert delivered == {"00000": -1, "00001": 2, "00002": -5}
    assert (outcome.state, outcome.output) == (4, ())


@tff.federated_computation(tff.types.at_server(np.int32), INT)
def next_(state: Any, data: Any) -> Any:
    return tff.federated_sum(data), state


@tff.federated_computation
def initialize() -> Any:
    return tff.federated_value(np.int32(-1), tff.SERVER)


@needs_beam
def test_the_same_clients_are_sampled() -> None:
    form = process_of(next_, "mapreduce").bundle
    first = compile_initialize(initialize.node)
    process = Process(Bundle("mapreduce", next_.node, form.components, first, {}))
    source = Values([np.int32(2**n) for n in range(20)])
    seen: list[list[tuple[Any, ...]]] = []
    for engine in (LocalEngine(process), BeamEngine(process)):
        rounds = run_rounds(engine, process.first_state(), source, 3, Sampling(5, seed=7))
        seen.append([(each.number, each.clients, each.output, each.state) for each in rounds])
    assert seen[0] == seen[1]
    assert seen[0][0][2] == -1


@needs_beam
def test_federated_averaging_reaches_the_same_accuracy(tmp_path: pathlib.Path) -> None:
    module = str(ROOT / "examples" / "digits" / "federated_averaging.py")
    arguments = ["compile", f"{module}:training", "--form", "mapreduce", "--out", str(tmp_path)]
    assert CliRunner().invoke(application, arguments).exit_code == 0
    data = ROOT / "examples" / "digits" / "train"
    local, beam = (
        list(tff.run(tmp_path, data, 5, engine=engine, clients_per_round=10))
        for engine in ("local", "beam")
    )
    for one, other in zip(local, beam, strict=True):
        assert one.clients == other.clients
        np.testing.assert_allclose(other.output["accuracy"], one.output["accuracy"], rtol=1e-3)
        np.testing.assert_allclose(other.output["loss"], one.output["loss"], rtol=1e-3)


@needs_beam
def test_files_of_a_round_are_in_a_folder_that_is_named(tmp_path: pathlib.Path) -> None:
    shared, seen = tmp_path / "shared", tmp_path / "seen"
    shared.mkdir()

    @dataclasses.dataclass(frozen=True)
    class Looks(Values):
        def read(self, client: str) -> Any:
            seen.write_text(" ".join(sorted(path.name for path in shared.glob("*/*"))))
            return super().read(client)

    source = Looks([np.int32(2), np.int32(3)])
    engine = BeamEngine(process_of(bounded, "mapreduce"), [f"--temp_location={shared}"])
    assert engine.run_round((), Cohort(source, source.clients)).output == 5
    assert {"broadcast", "round"} < set(seen.read_text().split())
    assert list(shared.iterdir()) == []


@needs_beam
def test_the_coder_of_accumulators_is_ours() -> None:
    from tffc.engines.beam_transforms import Combine, CombinePart, ValueCoder

    for combine in (Combine, CombinePart):
        coder = combine("folder", 0).get_accumulator_coder()
        assert isinstance(coder, ValueCoder)
        assert coder.is_deterministic()
    accumulator = (None, (np.float32(2), [b"a", np.arange(3)]))
    assert repr(ValueCoder().decode(ValueCoder().encode(accumulator))) == repr(accumulator)


@needs_beam
@pytest.mark.parametrize("fanout", [0, 2])
def test_accumulators_and_updates_go_through_that_coder(fanout: int) -> None:
    import apache_beam  # pyright: ignore[reportMissingImports]  # only where it is installed

    # Only where it is installed.
    from apache_beam.portability.api import (  # pyright: ignore[reportMissingImports]
        beam_runner_api_pb2,
    )

    # Only where it is installed.
    from apache_beam.runners.pipeline_context import (  # pyright: ignore[reportMissingImports]
        PipelineContext,
    )

    from tffc.engines.beam_transforms import RoundTransform

    pipeline = apache_beam.Pipeline(runner=IN_PROCESS)
    _ = pipeline | RoundTransform("folder", shipment_of(numbers(3)), fanout)
    components = pipeline.to_runner_api().components
    coders = PipelineContext(components).coders
    accumulators = [
        beam_runner_api_pb2.CombinePayload.FromString(each.spec.payload).accumulator_coder_id
        for each in components.transforms.values()
        if each.spec.urn == "beam:transform:combine_per_key:v1"
    ]
    assert [str(coders.get_by_id(each)) for each in accumulators] == ["ValueCoder"] * (
        2 if fanout else 1
    )
    collections = {
        each.unique_name.rpartition(".")[0].rpartition("/")[2]: str(coders.get_by_id(each.coder_id))
        for each in components.pcollections.values()
    }
    for name in ("Broadcast", "Work", "Updates", *(["Group", "Values"] if fanout else [])):
        assert "ValueCoder" in collections[name]
        assert "Primitives" not in collections[name]


def shipment_of(source: Values) -> Shipment:
    bundle = process_of(every_aggregation, "mapreduce").bundle
    return Shipment(bundle, (), source.clients, source, skip_bad_clients=False)


@needs_beam
def test_accumulators_of_groups_are_joined(tmp_path: pathlib.Path) -> None:
    from tffc.engines.beam_transforms import CombinePart, CombineParts, ValueCoder

    shipment = shipment_of(numbers(7))
    write_file(str(tmp_path), ROUND, shipment.to_bytes())
    part, whole = CombinePart(str(tmp_path), 0), CombineParts(str(tmp_path), 0)
    part.setup()
    whole.setup()
    total = whole.create_accumulator()
    for group in (shipment.clients[:3], shipment.clients[3:]):
        accumulator = part.create_accumulator()
        for client in group:
            update = shipment.steps.work(shipment.source.read(client), ())
            accumulator = part.add_input(accumulator, (client.encode(), update))
        coder = ValueCoder()
        sent = coder.decode(coder.encode(part.extract_output(accumulator)))
        total = whole.add_input(total, sent)
    report = Result.from_record(whole.extract_output(total))
    _, output = shipment.steps.finish((), [report.value])
    assert report.kind == ResultKind.REPORT
    assert output[2:4] == (sum(range(7)), 0)


@needs_beam
def test_a_killed_worker_is_replaced_and_counts_once(tmp_path: pathlib.Path) -> None:
    write_bundle(process_of(bounded, "mapreduce").bundle, tmp_path / "bundle")
    script = "tests.engines.killed_worker"
    command = [sys.executable, "-m", script, str(tmp_path / "bundle"), str(tmp_path / "killed")]
    # In a process of its own, since the runner's threads tell stderr what happened to them.
    ran = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "killed").exists()
    assert ran.stdout == f"{sum(range(killed_worker.CLIENTS))}\n"
    # The worker's death, and nothing that Beam, its threads and its workers have to say of it.
    assert ran.stderr.startswith("WARNING:tffc.engines.beam:the pipeline of a round failed: ")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("apache_beam", "Apache Beam"),
        # It is imported after Beam, so that its absence shows only where Beam is.
        pytest.param("cloudpickle", "cloudpickle", marks=needs_beam),
    ],
)
def test_beam_may_be_missing(package: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        make_engine("beam", process_of(bounded, "mapreduce"))
    assert str(caught.value) == (
        f"{name} is not installed, and the engine 'beam' needs it [E930]\n"
        "  help: pip install 'tffc[beam]'"
    )


def refused(**options: Any) -> str:
    with pytest.raises(LanguageValueError) as caught:
        next(tff.run(process_of(bounded, "mapreduce"), [np.int32(1)], 1, **options))
    return str(caught.value)


def test_options_are_for_beam() -> None:
    assert refused(engine_options=["--fanout=2"]) == (
        "the engine 'local' takes no options, found --fanout=2 [E936]\n"
        "  help: choose the engine beam or ray, or give no options"
    )
    assert refused(engine="beam", workers=4) == (
        "the engine 'beam' takes no number of workers [E934]\n"
        "  help: give an option of its own, such as "
        "'--direct_num_workers=4 --direct_running_mode=multi_processing'"
    )
    assert refused(engine="beam", batching="auto") == (
        "the engine 'beam' computes no batches of clients [E976]\n"
        "  help: choose the engine local, or turn batching off"
    )


@needs_beam
def test_options_that_beam_refuses() -> None:
    assert refused(engine="beam", engine_options=["--fanout=many"]) == (
        "Beam does not take the options --fanout=many [E931]\n"
        "  note: argument --fanout: invalid int value: 'many'\n"
        "  help: give options that Beam and its runner know, and --fanout"
    )
    assert "  note: Unexpected pipeline runner: Mill." in refused(
        engine="beam", engine_options=["--runner=Mill"]
    )
    assert refused(engine="beam", engine_options=["--runner=FlinkRunner"]) == (
        "workers of FlinkRunner cannot read a folder of this machine [E932]\n"
        "  help: add --temp_location=FOLDER with one that they and this machine can read"
    )


class Unsendable(Values):
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a socket")


@needs_beam
def test_a_source_that_cannot_be_sent() -> None:
    source = Unsendable([np.int32(1)])
    with pytest.raises(DataError) as caught:
        BeamEngine(process_of(bounded, "mapreduce")).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == (
        "the clients' data cannot be sent to other processes: cannot pickle a socket [E935]\n"
        "  help: name where the data is, or give a source that can be pickled"
    )


class Breaks(Values):
    def read(self, client: str) -> Any:
        raise KeyError("a defect of the user's")


@needs_beam
def test_a_pipeline_that_fails_again_and_again() -> None:
    source = Breaks([np.int32(1)])
    with pytest.raises(ExecutionError) as caught:
        BeamEngine(process_of(bounded, "mapreduce")).run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E933"
    assert caught.value.message == "Beam could not carry out the pipeline of a round"
    assert "a defect of the user's" in caught.value.notes[0]
