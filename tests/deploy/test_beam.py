"""Rounds on Apache Beam give what they give on the local engine."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import pathlib
import signal
import stat
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tffc as tff
from tests.processes import ROOT, run_python
from tests.refusals import error_without_place, refusal
from tests.runtime.engines import killed_worker
from tests.runtime.engines.batches import descending, numbers_to, round_of, source_of
from tests.runtime.engines.client_state_rounds import check_states
from tests.runtime.engines.programs import (
    LIMIT,
    adding_up,
    bounded,
    every_aggregation,
    personal,
    process_of,
)
from tests.runtime.engines.sources import Breaks, Marks, SomeBad, Unsendable, Values, numbers
from tffc.backends.bundle.bundle import write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.steps import TupleAggregation
from tffc.cli.application import application
from tffc.deploy.beam.engine import IN_PROCESS, BeamEngine
from tffc.deploy.beam.results import Result, ResultKind
from tffc.deploy.beam.shipment import ROUND, Shipment, write_file
from tffc.deploy.beam.workers import worker_processes
from tffc.deploy.engines import make_engine
from tffc.runtime.engines.engine import Batching, Cohort, RoundResult
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.shards import Batches
from tffc.runtime.engines.speed import ALONE, BATCHED, SERVER, WAIT
from tffc.support.errors import (
    DataError,
    ExecutionError,
    LanguageValueError,
    MissingExtraError,
    TffcError,
)

pytestmark = pytest.mark.slow

needs_beam = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None, reason="needs tffc[beam]"
)
FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])


THREADS = "--direct_running_mode=multi_threading", "--direct_num_workers=3"
"""So that clients are worked on in several groups."""


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
def test_clients_that_keep_states() -> None:
    check_states(lambda process: BeamEngine(process, THREADS))


@needs_beam
@FORMS
@pytest.mark.parametrize("options", [(), ("--fanout=3", *THREADS)], ids=["flat", "fanout"])
def test_every_aggregation(form: str, options: tuple[str, ...]) -> None:
    source = numbers(0, 75)
    local, beam = both(
        process_of(every_aggregation, form), Cohort(source, source.clients), *options
    )
    assert_equal_up_to_rounding(local, beam)
    assert beam.output[2:4] == (sum(range(75)), 0)


@needs_beam
@FORMS
def test_rounds_without_clients(form: str) -> None:
    local, beam = both(process_of(every_aggregation, form), Cohort(numbers(0, 0), ()))
    assert_equal_up_to_rounding(local, beam)
    assert np.isnan(beam.output[0])


@needs_beam
@FORMS
def test_clients_with_bad_data_are_left_out_or_fail_the_round(form: str) -> None:
    process = process_of(every_aggregation, form)
    source = SomeBad(numbers(0, 7).values)
    local, beam = both(process, Cohort(source, source.clients, skip_bad_clients=True))
    assert_equal_up_to_rounding(local, beam)
    assert beam.skipped == ("00001", "00003", "00005")
    only_bad = Cohort(source, ("00001", "00003"), skip_bad_clients=True)
    assert_equal_up_to_rounding(*both(process, only_bad))
    with pytest.raises(DataError) as caught:
        BeamEngine(process).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == "no data of 00001 [E000]\n  note: a note\n  help: some help"


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
    assert caught.value.notes[-1] == "it was at work on the data of client 00006"


def in_batches(
    process: Process, cohort: Cohort, *options: str, size: int = 2
) -> tuple[RoundResult, RoundResult, list[int]]:
    """What both engines give with so many clients a call, and how many clients were in batches."""
    local = LocalEngine(process, 2, Batching(size))
    beam = BeamEngine(process, options, Batching(size))
    results = [engine.run_round((), cohort) for engine in (local, beam)]
    together = local.stopwatch.clients[BATCHED], beam.speed.workers.clients[BATCHED]
    # The windows of a round may come back in any order.
    assert set(beam.speed.decisions) == set(local.planner.decisions)
    return results[0], results[1], list(together)


@needs_beam
@FORMS
@pytest.mark.parametrize("size", [3, 600], ids=["vectorised", "in a loop"])
@pytest.mark.parametrize("clients", [0, 1, 14, 77])
def test_batches_are_those_of_the_local_engine(form: str, size: int, clients: int) -> None:
    process = descending(size, form)
    lengths = [(5 * n) % (3 if size == 3 else 8) for n in range(clients)]
    source = source_of(process, [numbers_to(n, length) for n, length in enumerate(lengths)])
    options = ("--fanout=3", *THREADS) if clients == 77 else ()
    local, beam, together = in_batches(process, Cohort(source, source.clients), *options)
    np.testing.assert_allclose(beam.output[0], local.output[0], rtol=1e-6)
    assert beam.output[1] == local.output[1] == sum(lengths)
    assert together == [clients, clients]
    # The clients of one window are added up in one order, whatever the runner does.
    assert clients > 16 or repr(beam.output) == repr(local.output)


@needs_beam
@FORMS
def test_clients_in_batches_fail_and_are_left_out_alone(form: str) -> None:
    process = descending(3, form)
    values = [numbers_to(n, n % 4 + 7 * (n == 15)) for n in range(20)]
    source = SomeBad(source_of(process, values).values)
    some = Cohort(source, tuple(f"{n:05}" for n in range(11)), skip_bad_clients=True)
    local, beam, together = in_batches(process, some)
    assert repr(beam.output) == repr(local.output)
    assert beam.skipped == local.skipped == tuple(f"{n:05}" for n in range(1, 11, 2))
    assert together == [6, 6]
    found: list[str] = []
    for cohort in (Cohort(Values(source.values), source.clients), Cohort(source, some.clients)):
        for engine in (LocalEngine(process, 1, Batching(2)), BeamEngine(process, (), Batching(2))):
            with pytest.raises(TffcError) as caught:
                engine.run_round((), cohort)
            found.append(str(caught.value))
    assert found[0] == found[1]
    assert "it was at work on the data of client 00015" in found[0]
    assert found[2] == found[3] == "no data of 00001 [E000]\n  note: a note\n  help: some help"


@needs_beam
@FORMS
def test_bounds_of_secure_sums_hold_for_each_client_of_a_batch(form: str) -> None:
    process = process_of(bounded, form)
    source = Values([np.int32(LIMIT - 30 + n) for n in range(40)])
    engine = BeamEngine(process, (), Batching(3))
    most = engine.run_round((), Cohort(source, source.clients[:31]))
    assert most.output == sum(range(LIMIT - 30, LIMIT + 1))
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E663"
    assert caught.value.notes[-1] == "it was at work on the data of client 00031"
    assert engine.speed.workers.clients[BATCHED] >= 31


@needs_beam
def test_outputs_of_clients_in_batches() -> None:
    process = round_of(lambda data: data * 2, np.int32, "broadcast")
    source = source_of(process, [np.int32(n) for n in range(70)])
    delivered: dict[str, Any] = {}
    engine = BeamEngine(process, (), Batching(4))
    engine.run_round((), Cohort(source, source.clients, deliver=delivered.__setitem__))
    assert delivered == {f"{n:05}": 2 * n for n in range(70)}
    assert engine.speed.workers.clients[BATCHED] == 70


@needs_beam
def test_where_the_time_of_workers_and_of_the_driver_goes() -> None:
    process = process_of(bounded, "mapreduce")
    source = Values([np.int32(n) for n in range(9)])
    for size, part in ((1, ALONE), (3, BATCHED)):
        engine = BeamEngine(process, (), Batching(size))
        result = engine.run_round((), Cohort(source, source.clients))
        assert result.parts.keys() >= {part, SERVER}
        assert result.workers is None
        lines = engine.explain_speed()
        assert lines[0] == "time of 1 round, of all workers together"
        assert any(
            line.startswith(f"  {part}: ") and line.endswith(", 9 clients") for line in lines
        )
        at = lines.index("time of the driver beside them")
        told = len(engine.speed.decisions)
        driver = [line.partition(":")[0].strip() for line in lines[at + 1 : -told]]
        assert driver[:-1] == [SERVER, WAIT, "handing out work, and Python between"]
        assert driver[-1].endswith("clients a second")


@needs_beam
def test_every_client_of_a_broadcast_form_has_its_own() -> None:
    process = process_of(personal, "broadcast")
    source = Values([np.int32(n) for n in (5, 2, 9)])
    delivered: dict[str, Any] = {}
    cohort = Cohort(source, source.clients, deliver=delivered.__setitem__)
    outcome = BeamEngine(process).run_round(np.int32(4), cohort)
    assert delivered == {"00000": -1, "00001": 2, "00002": -5}
    assert (outcome.state, outcome.output) == (4, ())


@tff.federated_computation
def initialize() -> Any:
    return tff.federated_value(np.int32(-1), tff.SERVER)


@needs_beam
def test_a_round_of_nobody_is_told_once() -> None:
    told: list[tuple[int, int]] = []
    cohort = Cohort(Values([]), (), progress=lambda done, total: told.append((done, total)))
    assert BeamEngine(process_of(bounded)).run_round((), cohort).output == 0
    assert told == [(0, 0)]


@needs_beam
@pytest.mark.parametrize(
    "sampling", [Sampling(5, seed=7), Sampling(rate=0.25, seed=7), Sampling(rate=1e-12)]
)
def test_the_same_clients_are_sampled(sampling: Sampling) -> None:
    bundle = compile_bundle(adding_up.node, "mapreduce", initialize=initialize.node)
    process = Process(bundle)
    source = Values([np.int32(2**n) for n in range(20)])
    seen: list[list[tuple[Any, ...]]] = []
    for engine in (LocalEngine(process), BeamEngine(process)):
        rounds = run_rounds(engine, process.first_state(), source, 3, sampling)
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
    from tffc.deploy.beam.transforms import Combine, CombinePart, ValueCoder

    for combine in (Combine, CombinePart):
        coder = combine("folder", 0).get_accumulator_coder()
        assert isinstance(coder, ValueCoder)
        assert coder.is_deterministic()
    accumulator = (None, (np.float32(2), [b"a", np.arange(3)]))
    assert repr(ValueCoder().decode(ValueCoder().encode(accumulator))) == repr(accumulator)


@needs_beam
@pytest.mark.parametrize("batches", [None, Batches(2, 3)], ids=["alone", "batches"])
@pytest.mark.parametrize("fanout", [0, 2])
def test_accumulators_and_updates_go_through_that_coder(
    fanout: int, batches: Batches | None
) -> None:
    import apache_beam  # pyright: ignore[reportMissingImports]  # only where it is installed

    # Only where it is installed.
    from apache_beam.portability.api import (  # pyright: ignore[reportMissingImports]  # an extra
        beam_runner_api_pb2,
    )

    # Only where it is installed.
    from apache_beam.runners.pipeline_context import (  # pyright: ignore[reportMissingImports]  # an extra
        PipelineContext,
    )

    from tffc.deploy.beam.transforms import RoundTransform

    pipeline = apache_beam.Pipeline(runner=IN_PROCESS)
    shipment = shipment_of(numbers(0, 3), batches)
    _ = pipeline | RoundTransform("folder", shipment, fanout)
    components = pipeline.to_runner_api().components
    coders = PipelineContext(components).coders
    accumulators = [
        beam_runner_api_pb2.CombinePayload.FromString(each.spec.payload).accumulator_coder_id
        for each in components.transforms.values()
        if each.spec.urn == "beam:transform:combine_per_key:v1"
    ]
    count = len(shipment.steps.aggregations) * (2 if fanout else 1)
    assert [str(coders.get_by_id(each)) for each in accumulators] == ["ValueCoder"] * count
    collections = {
        each.unique_name.rpartition(".")[0].rpartition("/")[2]: str(coders.get_by_id(each.coder_id))
        for each in components.pcollections.values()
    }
    for name in ("Broadcast", "Work", "Updates", *(["Group", "Values"] if fanout else [])):
        assert "ValueCoder" in collections[name]
        assert "Primitives" not in collections[name]


def shipment_of(source: Values, batches: Batches | None = None) -> Shipment:
    process = process_of(every_aggregation, "mapreduce")
    return Shipment(
        process.bundle,
        process.steps,
        (),
        source.clients,
        source,
        False,
        batches,
        16 if batches else 1,
    )


@needs_beam
def test_accumulators_of_groups_are_joined(tmp_path: pathlib.Path) -> None:
    from tffc.deploy.beam.transforms import CombinePart, CombineParts, ValueCoder

    shipment = shipment_of(numbers(0, 7))
    write_file(str(tmp_path), ROUND, shipment.to_bytes())
    zero = TupleAggregation(shipment.steps.aggregations).zero(())
    updates: list[list[Any]] = []
    for group in (shipment.clients[:3], shipment.clients[3:]):
        updates.append([])
        for client in group:
            data = shipment.source.read(client)
            update = shipment.steps.work_and_accumulate(zero, data, (), (), client)
            updates[-1].append(update)
    coder = ValueCoder()
    reports: list[Any] = []
    for index in range(len(zero)):
        part, whole = CombinePart(str(tmp_path), index), CombineParts(str(tmp_path), index)
        part.setup()
        whole.setup()
        total = whole.create_accumulator()
        for group in updates:
            accumulator = part.create_accumulator()
            for update in group:
                accumulator = part.add_input(accumulator, update)
            sent = coder.decode(coder.encode(part.extract_output(accumulator)))
            total = whole.add_input(total, sent)
        report = Result.from_record(whole.extract_output(total))
        assert report.kind == ResultKind.REPORT
        reports.append(report.value)
    _, output = shipment.steps.finish((), reports)
    assert output[2:4] == (sum(range(7)), 0)


@needs_beam
def test_processes_stay_between_rounds_and_are_replaced_when_they_die(
    tmp_path: pathlib.Path,
) -> None:
    source = Marks([np.int32(1)] * 40, tmp_path)
    options = "--direct_running_mode=multi_processing", "--direct_num_workers=2"
    engine = BeamEngine(process_of(bounded, "mapreduce"), options)

    def processes_of_a_round() -> set[int]:
        for marker in tmp_path.iterdir():
            marker.unlink()
        assert engine.run_round((), Cohort(source, source.clients)).output == 40
        return {int(marker.name) for marker in tmp_path.iterdir()}

    first, second = processes_of_a_round(), processes_of_a_round()
    assert os.getpid() not in first
    assert len(first | second) <= 2
    for each in first | second:
        os.kill(each, signal.SIGKILL)
    assert processes_of_a_round().isdisjoint(first | second)
    # Whoever reaches the processes can run code in them.
    folder = pathlib.Path(worker_processes(2).address.removeprefix("unix:")).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@needs_beam
def test_a_killed_worker_is_replaced_and_counts_once(tmp_path: pathlib.Path) -> None:
    write_bundle(process_of(bounded, "mapreduce").bundle, tmp_path / "bundle")
    script = "tests.runtime.engines.killed_worker"
    # In a process of its own, since the runner's threads tell stderr what happened to them.
    ran = run_python("-m", script, str(tmp_path / "bundle"), str(tmp_path / "killed"))
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "killed").exists()
    assert ran.stdout == f"{sum(range(killed_worker.CLIENTS))}\n"
    # The worker's death, and nothing that Beam, its threads and its workers have to say of it.
    assert ran.stderr.startswith("WARNING:tffc.deploy.beam.engine:the pipeline of a round failed: ")
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
    assert refusal(MissingExtraError, make_engine, "beam", process_of(bounded, "mapreduce")) == (
        f"{name} is not installed, and the engine 'beam' needs it [E701]\n"
        "  help: in tffc's checkout: pip install '.[beam]'"
    )


def refused(**options: Any) -> str:
    process = process_of(bounded, "mapreduce")
    run = functools.partial(tff.run, process, [np.int32(1)], 1, **options)
    return str(error_without_place(LanguageValueError, run))


def test_options_are_for_beam() -> None:
    assert refused(engine_options=["--fanout=2"]) == (
        "the engine 'local' takes no options, found --fanout=2 [E747]\n"
        "  help: choose the engine beam or ray, or give no options"
    )
    assert refused(engine="beam", workers=4) == (
        "the engine 'beam' takes no number of workers [E747]\n"
        "  help: give an option of its own, such as "
        "'--direct_num_workers=4 --direct_running_mode=multi_processing'"
    )
    assert refused(engine="beam", batching="auto") == (
        "the engine 'beam' neither measures whether batches pay nor chooses a device for them "
        "[E747]\n  help: choose the engine local, or give how many clients are in a batch"
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


@needs_beam
def test_a_source_that_cannot_be_sent() -> None:
    source = Unsendable([np.int32(1)])
    with pytest.raises(DataError) as caught:
        BeamEngine(process_of(bounded, "mapreduce")).run_round((), Cohort(source, source.clients))
    assert str(caught.value) == (
        "the clients' data cannot be sent to other processes: cannot pickle a socket [E932]\n"
        "  help: name where the data is, or give a source that can be pickled"
    )


@needs_beam
def test_demands_of_a_workers_machine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "demands.yaml").write_text("bytes: 10\n")
    engine = BeamEngine(process_of(bounded, "mapreduce"))
    monkeypatch.setenv("TFFC_DEMANDS", str(tmp_path / "demands.yaml"))
    source = numbers(0, 6)
    with pytest.raises(TffcError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert "the bundle of the pipeline is not admitted here [E880]" in str(caught.value)


@needs_beam
def test_a_pipeline_that_fails_again_and_again() -> None:
    source = Breaks([np.int32(1)])
    with pytest.raises(ExecutionError) as caught:
        BeamEngine(process_of(bounded, "mapreduce")).run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E772"
    assert caught.value.message == "Beam could not carry out the pipeline of a round"
    assert "a defect of the user's" in caught.value.notes[0]
