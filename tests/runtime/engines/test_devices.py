"""Where batches are computed, by what, and in which precision; no test needs a GPU."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.processes import ENVIRONMENT, run_python
from tests.refusals import refusal
from tests.runtime.engines.batches import Outcome, descending, numbers_to, round_of, source_of
from tests.runtime.engines.programs import process_of
from tffc.runtime.batching import compilers, kernel_cache, pjrt_kernels
from tffc.runtime.batching.choices import PJRT, TENSORFLOW
from tffc.runtime.batching.compilers import Pjrt
from tffc.runtime.batching.kernels import Kernel, Mode, OutOfMemoryError
from tffc.runtime.batching.limits import Limits
from tffc.runtime.batching.pieces import Batch
from tffc.runtime.batching.pjrt_kernels import JaxWork, PjrtKernel
from tffc.runtime.batching.planner import Planner
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.frameworks.tensorflow import runner
from tffc.support.errors import LanguageValueError, MissingExtraError

COMPUTING = """\
import os

import numpy as np
import tensorflow as tf
import tffc as tff

total = tf.reduce_sum(tf.data.Dataset.range(3).reduce(np.int64(0), lambda s, x: s + x))
print(os.environ["TF_FORCE_GPU_ALLOW_GROWTH"], os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"])
print(len(tf.config.list_logical_devices("CPU")))


@tff.tf_computation(np.int64)
def square(x):
    return x * x


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int64))
def count(state, data):
    return state, tff.federated_sum(tff.federated_map(square, data))
"""


@pytest.mark.slow
def test_a_module_that_computes_shares_accelerators_and_has_all_processors(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "count.py").write_text(COMPUTING)
    data = tmp_path / "data"
    data.mkdir()
    for number in range(4):
        np.savez(data / f"{number}.npz", np.int64(number))
    command = "run count.py:count --data data --rounds 1 --batching 2 --workers 2"
    environment = {
        name: value
        for name, value in ENVIRONMENT.items()
        if name not in ("TF_FORCE_GPU_ALLOW_GROWTH", "XLA_PYTHON_CLIENT_PREALLOCATE")
    }
    ran = run_python("-m", "tffc", *command.split(), cwd=tmp_path, env=environment)
    # What a module prints while it is imported is talk.
    assert ran.stderr.splitlines()[:2] == ["true false", "2"]
    assert ran.stdout.split()[-1] == "14"


def session_devices(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many devices of each kind a session of a section may use, as far as it is limited."""
    configs: list[Any] = []
    real = tf.compat.v1.Session

    def session(**options: Any) -> Any:
        configs.append(options.get("config"))
        return real(**options)

    section = tff.tf_computation(np.int32)(lambda x: x + 1).node
    with monkeypatch.context() as patch:
        patch.setattr(tf.compat.v1, "Session", session)
        assert runner.TensorFlowRunner(section)(np.int32(2)) == 3
    (config,) = filter(None, configs)
    return dict(config.device_count)


def test_sections_by_themselves_stay_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session_devices(monkeypatch) == {"GPU": 0}
    monkeypatch.setattr(runner, "uses_accelerators", lambda: True)
    assert session_devices(monkeypatch) == {}


@pytest.mark.parametrize(
    ("text", "name"), [("gpu", "GPU:0"), ("gpu:1", "GPU:1"), ("CPU", "CPU:0"), ("", "")]
)
def test_a_device_without_a_number_is_the_first(text: str, name: str) -> None:
    assert Batching.parse("auto", text).device == name


@pytest.mark.parametrize(("compiler", "precision"), [("mlir", "full"), ("auto", "low")])
def test_what_is_no_choice(compiler: str, precision: str) -> None:
    process = round_of(lambda x: x * 2, np.int32)
    batching = Batching.parse(2, "", compiler, precision)
    text = refusal(LanguageValueError, Planner, process.steps, batching)
    assert "there is no " in text
    assert "[E706]" in text


@pytest.mark.parametrize("device", ["", "GPU:0"])
@pytest.mark.parametrize(
    ("compiler", "package", "title", "command"),
    [
        (PJRT, "jax", "JAX", "in tffc's checkout: pip install '.[xla]'"),
        (TENSORFLOW, "tensorflow", "TensorFlow", "pip install tensorflow"),
    ],
)
def test_a_named_compiler_must_be_installed(
    compiler: str,
    package: str,
    title: str,
    command: str,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = round_of(lambda x: x * 2, np.int32)
    monkeypatch.setitem(sys.modules, package, None)
    assert refusal(
        MissingExtraError, Planner, process.steps, Batching(2, device, compiler=compiler)
    ) == (
        f"{title} is not installed, and the compiler '{compiler}' needs it [E701]\n"
        f"  help: {command}, or leave the choice of a compiler to tffc"
    )


def test_a_named_compiler_must_be_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    process = round_of(lambda x: x * 2, np.int32)

    def devices(self: Pjrt) -> list[str]:
        raise MissingExtraError("E701", "JAX cannot be imported")

    monkeypatch.setattr(Pjrt, "devices", devices)
    text = refusal(MissingExtraError, Planner, process.steps, Batching(2, compiler=PJRT))
    assert text == "JAX cannot be imported [E701]"
    # Where nobody asked for it, clients are computed without it.
    monkeypatch.setattr(compilers, "preferred", lambda: PJRT)
    assert Planner(process.steps, Batching(2)).decisions == [
        "one client a call: JAX cannot be imported"
    ]


@pytest.fixture
def squares() -> Process:
    return round_of(lambda x: tf.reduce_sum(tf.square(x)), np.int64)


def test_smaller_batches_are_tried_where_memory_is_short(
    squares: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Kernel.compute

    def compute(self: Kernel, *arguments: Any) -> Any:
        if self.size > 2:
            raise OutOfMemoryError
        return real(self, *arguments)

    monkeypatch.setattr(Kernel, "compute", compute)
    source = source_of(squares, range(8))
    engine = LocalEngine(squares, 1, Batching(8, compiler=PJRT))
    cohort = Cohort(source, source.clients)
    results = [engine.run_round((), cohort) for _ in range(3)]
    assert [result.output for result in results] == [140] * 3
    warning = "CPU:0 has too little memory for {} clients a call: from now on there are at most {}"
    assert [result.warnings for result in results] == [
        (warning.format(8, 4),),
        (warning.format(4, 2),),
        (),
    ]
    assert engine.stopwatch.clients["computing in batches"] == 8


def test_memory_that_is_not_enough_for_one_client(
    squares: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(self: Kernel, *arguments: Any) -> Any:
        raise OutOfMemoryError

    monkeypatch.setattr(Kernel, "compute", compute)
    outcome = Outcome(squares, source_of(squares, range(3)), 1 + 1)
    again = Outcome(squares, source_of(squares, range(3)), 2, limits=Limits(most_bytes=8))
    assert (outcome.output, again.output) == ([5], [5])
    assert "the memory of the device is not enough for one client" in again.decisions[-1]


def compared(squares: Process, times: list[float], monkeypatch: pytest.MonkeyPatch) -> Planner:
    """A planner after it has measured a batch on an accelerator, and perhaps on the processor, with
    so many seconds each; one client by itself takes one."""
    monkeypatch.setattr(Planner, "_is_accelerated", property(lambda self: True))
    planner = Planner(squares.steps, Batching(None, compiler=PJRT))
    planner.measured_alone(3, 100.0)
    source = source_of(squares, range(4))
    cohort = Cohort(source, source.clients)
    list(planner.pieces(cohort, source))
    planner.wait()
    for seconds in times:
        for _ in range(Limits().trials):
            batches = [placed.piece for placed in planner.pieces(cohort, source)]
            for batch in batches:
                if isinstance(batch, Batch):
                    planner.measured(batch, seconds * len(batch.clients), lambda: 1.0)
    return planner


@pytest.mark.parametrize(
    ("times", "pays", "kernel"),
    [([0.1, 0.5], True, 0), ([0.5, 0.1], True, 1), ([5.0, 4.0], False, None)],
)
def test_an_accelerator_is_compared_with_the_processor(
    squares: Process,
    times: list[float],
    pays: bool,
    kernel: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planner = compared(squares, times, monkeypatch)
    assert list(planner.known.values())[:1] == [pays]
    lines = [line for line in planner.decisions if "by itself" in line]
    assert len(lines) == 2
    if kernel is not None:
        (used,) = planner.kernels([], 4) or planner._kernels.values()
        measured = next(iter(planner._compared.values()))
        assert used is measured[kernel][1]


IN_TURN = """
import jax
jax.config.update("jax_num_cpu_devices", 3)
import numpy as np
import tensorflow as tf
from tests.runtime.engines.batches import descending, numbers_to, source_of
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine

process = descending(700)
source = source_of(process, [numbers_to(3, n) for n in (4, 6, 3, 8, 5, 7, 4, 4)])
cohort = Cohort(source, source.clients)
for workers in (1, 3):
    engine = LocalEngine(process, workers, Batching(2, compiler="pjrt"))
    result = engine.run_round((), cohort)
    pieces = [placed.piece for placed in engine.planner.pieces(cohort, source)]
    print(sorted(piece.tensors[0].device.id for piece in pieces))
    print(np.asarray(result.output[0]).tobytes().hex())
"""


@pytest.mark.slow
def test_batches_take_all_devices_in_turn() -> None:
    ran = run_python("-c", IN_TURN)
    devices, one, others, three = ran.stdout.splitlines()[-4:]
    assert sorted(set(eval(devices))) == sorted(set(eval(others))) == [0, 1, 2]
    assert one == three, "the number of workers changes nothing"


def test_one_kernel_is_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = [0]
    most: list[int] = [0]
    real = JaxWork.specs

    def specs(self: JaxWork) -> Any:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.05)
        running[0] -= 1
        return real(self)

    kernels = [_kernel(descending(3 + number)) for number in range(3)]
    monkeypatch.setattr(JaxWork, "specs", specs)
    threads = [threading.Thread(target=kernel.prepare) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def _kernel(process: Process, precision: str = "full") -> PjrtKernel:
    planner = Planner(process.steps, Batching(2, compiler=PJRT, precision=precision))
    source = source_of(process, [numbers_to(3, 4)] * 2)
    (placed,) = planner.pieces(Cohort(source, source.clients), source)
    assert isinstance(placed.piece, Batch)
    assert isinstance(placed.piece.kernel, PjrtKernel)
    return placed.piece.kernel


def product(x: Any) -> Any:
    matrix = tf.reshape(x, [2, 2])
    return tf.matmul(matrix, matrix)


@pytest.mark.parametrize(("precision", "highest"), [("full", True), ("fast", False)])
def test_the_precision_of_products(precision: str, highest: bool) -> None:
    process = round_of(product, tff.TensorType(np.float32, [4]))
    planner = Planner(process.steps, Batching(2, compiler=PJRT, precision=precision))
    source = source_of(process, [np.ones(4, np.float32)] * 2)
    (placed,) = planner.pieces(Cohort(source, source.clients), source)
    assert isinstance(placed.piece, Batch)
    assert isinstance(placed.piece.kernel, PjrtKernel)
    assert ("HIGHEST" in str(placed.piece.kernel._exported.mlir_module())) == highest


def test_tensorflow_compiles_in_the_precision_and_leaves_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = tf.config.experimental
    monkeypatch.setattr(compilers, "preferred", lambda: TENSORFLOW)
    settings: list[bool] = []
    real = options.enable_tensor_float_32_execution
    monkeypatch.setattr(
        options,
        "enable_tensor_float_32_execution",
        lambda enabled: (settings.append(enabled), real(enabled)),
    )
    process = round_of(product, tff.TensorType(np.float32, [4]))
    Outcome(process, source_of(process, [np.ones(4, np.float32)] * 2), 2)
    assert settings == [False, True]


def test_clients_that_are_done_keep_no_loop_going() -> None:
    """Vectorised, the loop inside would be computed for them too, and never end."""

    def work(data: Any) -> Any:
        batches = data.batch(2)
        left = batches.reduce(0, lambda count, x: count + 1)

        def step(state: Any, x: Any) -> Any:
            to, total = state
            (number,) = tf.while_loop(lambda k: k != to, lambda k: [k + 1], [tf.constant(1)])
            return to - 1, total + number

        return batches.reduce((left, tf.constant(0)), step)[1]

    process = round_of(work, tff.SequenceType(np.float32))
    source = source_of(process, [numbers_to(3, count) for count in (1, 3, 4, 6, 7, 8, 9, 11)])
    planner = Planner(process.steps, Batching(8, compiler=PJRT))
    # Planned alone: if it were wrong, it would run for ever.
    pieces = [placed.piece for placed in planner.pieces(Cohort(source, source.clients), source)]
    modes = {piece.kernel.mode for piece in pieces if isinstance(piece, Batch)}
    assert modes == {Mode.LOOP}
    assert Outcome(process, source, 8).output == Outcome(process, source, 1).output


def test_kernels_are_kept_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    process = descending(4)
    first = _kernel(process)
    monkeypatch.setattr(PjrtKernel, "_export", lambda self: pytest.fail("it is made again"))
    again = PjrtKernel(*_graphs_of(process), first.mode, first.key, first.size)
    assert str(again._exported.mlir_module()) == str(first._exported.mlir_module())


def _graphs_of(process: Process) -> tuple[Any]:
    assert process.steps.batches is not None
    return (process.steps.batches.graphs(),)


def test_a_damaged_kernel_is_made_again() -> None:
    process = descending(5)
    first = _kernel(process)
    path = kernel_cache.cache_folder() / first._digest
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"x" + content[-8:])
    assert kernel_cache.load_kernel(first._digest) is None
    PjrtKernel(*_graphs_of(process), first.mode, first.key, first.size)
    assert kernel_cache.load_kernel(first._digest) is not None


def test_a_kernel_under_the_name_of_another_is_made_again() -> None:
    one, other = _kernel(descending(6)), _kernel(descending(7))
    assert one._digest != other._digest
    assert one.is_kept()
    folder = kernel_cache.cache_folder()
    (folder / one._digest).write_bytes((folder / other._digest).read_bytes())
    assert not one.is_kept()
    PjrtKernel(*_graphs_of(descending(6)), one.mode, one.key, one.size)
    assert one.is_kept()


def _flatbuffer_of_garbage(module: bytes) -> bytes:
    """What JAX reads, but not what StableHLO does."""
    begin = module.index(b"ML\xefR")  # as all bytecode of MLIR begins
    return module[: begin + 4] + bytes(len(module) - begin - 4)


SEALED_GARBAGE: dict[str, Callable[[bytes, bytes], bytes]] = {
    "nothing": lambda module, other: b"",
    "no flatbuffer": lambda module, other: b"garbage inside",
    "zeros": lambda module, other: bytes(1000),
    "half": lambda module, other: module[: len(module) // 2],
    "no StableHLO": lambda module, other: _flatbuffer_of_garbage(module),
    "a kernel of other shapes": lambda module, other: other,
}


@pytest.mark.parametrize("kind", SEALED_GARBAGE)
def test_a_sealed_kernel_that_jax_cannot_use_is_made_again(kind: str) -> None:
    process = descending(5)
    one = _kernel(process)
    module, other = (
        kernel_cache.load_kernel(each._digest) for each in (one, _kernel(descending(6)))
    )
    assert module is not None
    assert other is not None
    garbage = SEALED_GARBAGE[kind](module, other)
    assert kernel_cache.keep_kernel(one._digest, garbage)
    assert kernel_cache.load_kernel(one._digest) == garbage
    assert not one.is_kept()
    again = PjrtKernel(*_graphs_of(process), one.mode, one.key, one.size)
    assert again.is_kept()
    again.prepare()


IRREGULAR: dict[str, Callable[[pathlib.Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": lambda path: (path / "file").mkdir(parents=True),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a file larger than any kernel": lambda path: path.touch() or os.truncate(path, 2**40),
}


@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_what_is_no_regular_file_is_no_kernel(
    kind: str, mode: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    digest = "0" * 64
    folder = kernel_cache.cache_folder()
    folder.mkdir(parents=True)
    folder.chmod(mode)
    IRREGULAR[kind](folder / digest)
    loaded: list[bytes | None] = []
    # In a thread, because a FIFO would be waited for.
    thread = threading.Thread(
        target=lambda: loaded.append(kernel_cache.load_kernel(digest)), daemon=True
    )
    thread.start()
    thread.join(20)
    assert loaded == [None]
    assert kernel_cache.keep_kernel(digest, b"module")
    assert kernel_cache.load_kernel(digest) == b"module"


def test_a_folder_that_others_can_write_to_is_not_used() -> None:
    assert kernel_cache.keep_kernel("0" * 64, b"module")
    assert kernel_cache.load_kernel("0" * 64) == b"module"
    folder = kernel_cache.cache_folder()
    folder.chmod(0o777)
    try:
        assert kernel_cache.load_kernel("0" * 64) is None
        assert not kernel_cache.keep_kernel("1" * 64, b"module")
    finally:
        folder.chmod(0o700)


def test_another_program_precision_or_shape_is_another_kernel() -> None:
    digests = {
        _kernel(descending(4))._digest,
        _kernel(descending(6))._digest,
        _kernel(descending(4), "fast")._digest,
    }
    assert len(digests) == 3


def test_rounds_go_on_while_kernels_compile(
    squares: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Event(), threading.Event()
    real = PjrtKernel.prepare

    def prepare(self: PjrtKernel) -> None:
        begun.set()
        assert end.wait(60)
        real(self)

    monkeypatch.setattr(pjrt_kernels.PjrtKernel, "prepare", prepare)
    engine = LocalEngine(squares, 1, Batching(None, compiler=PJRT))
    engine.planner.measured_alone(3, 100.0)
    source = source_of(squares, range(4))
    cohort = Cohort(source, source.clients)
    assert engine.run_round((), cohort).output == 14
    assert begun.wait(60)
    assert engine.run_round((), cohort).output == 14
    assert engine.stopwatch.clients["computing in batches"] == 0
    end.set()
    engine.planner.wait()
    assert engine.run_round((), cohort).output == 14
    assert engine.stopwatch.clients["computing in batches"] == 4
    line = engine.explain_speed()[-1]
    assert line.startswith("batching: vectorised over the clients of a batch on CPU:0: compiled in")
    assert " ms, " in line


WEIGHTS = tff.TensorType(np.float32, [10_000])


def test_what_the_server_sends_goes_to_a_device_once_a_round() -> None:
    work = tff.tf_computation(WEIGHTS, np.float32)(lambda w, x: tf.reduce_sum(w) + x)
    apply = tff.tf_computation(WEIGHTS, np.float32)(lambda w, total: w + total)

    @tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(np.float32))
    def each_round(w: Any, data: Any) -> Any:
        sent = tff.federated_broadcast(w)
        total = tff.federated_sum(tff.federated_map(work, (sent, data)))
        return tff.federated_map(apply, (w, total)), total

    process = process_of(each_round)
    engine = LocalEngine(process, 1, Batching(2, compiler=PJRT))
    source = source_of(process, [np.float32(number) for number in range(6)])
    weights = np.zeros(10_000, np.float32)
    for expected in (15.0, 15.0 + 6 * 15.0 * len(weights)):
        outcome = engine.run_round(weights, Cohort(source, source.clients))
        assert outcome.output == expected
        weights = outcome.state
    (line,) = (line for line in engine.explain_speed() if "bytes to and from" in line)
    calls, moved = re.findall(r", ([\d,]+) (?:calls|bytes)", line)
    assert calls == "6"
    # Two rounds send 40,000 bytes each, and each of six calls returns a number.
    assert 2 * 40_000 <= int(calls) * int(moved.replace(",", "")) < 2 * 40_000 + 1_000


def test_a_state_that_is_written_to_between_rounds_is_sent_again() -> None:
    work = tff.tf_computation(WEIGHTS, np.float32)(lambda w, x: tf.reduce_sum(w) * x)

    @tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(np.float32))
    def each_round(w: Any, data: Any) -> Any:
        sent = tff.federated_broadcast(w)
        return w, tff.federated_sum(tff.federated_map(work, (sent, data)))

    process = process_of(each_round, "distribute-aggregate")
    engine = LocalEngine(process, 1, Batching(2, compiler=PJRT))
    source = source_of(process, [np.float32(1)] * 4)
    weights = np.ones(WEIGHTS.shape, np.float32)
    for factor in (1.0, 2.0, 4.0):
        outcome = engine.run_round(weights, Cohort(source, source.clients))
        assert outcome.output == 4 * factor * weights.size
        weights *= 2
