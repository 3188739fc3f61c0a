"""Programs from files that call functions of Python, or others that only the process which made the
program had: none of them runs, whatever its user consents to."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.cli.conftest import Ran, Run
from tests.cli.conftest import run as run
from tests.hostile.graphs import add, add_function, new_graph, section
from tests.hostile.graphs import hlo as instructions
from tffc.backends import compile_form
from tffc.backends.bundle.bundle import Bundle, write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import Effect, effect_of_module
from tffc.language import Compiled, wire
from tffc.language.wire import XlaSection, read_xla, write_xla
from tffc.runtime.effects.consent import KINDS, check_consent
from tffc.runtime.effects.outside import outside_uses
from tffc.runtime.engines.process import Process
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import ConsentError, ExecutionError, GraphError

ALL = ("--allow-effects", "files,network,python,unknown")
CALLED = "calls a function that is not in it and stayed in the process that traced it: "
PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")


def calling(op: str, token: bytes = b"pyfunc_0") -> Compiled:
    graph = new_graph()
    node = add(graph.node, "y", op, ["x"])
    node.attr["token"].s = token
    node.attr["Tout"].list.type.append(3)
    return section(graph, result="y")


def in_a_function(op: str) -> Compiled:
    graph = new_graph()
    add(graph.node, "call", "PartitionedCall", ["x"], f="outer")
    add(add_function(graph, "outer", "a"), "map", "MapDataset", ["a"], f="inner")
    add(add_function(graph, "inner", "e"), "y", op, ["e"]).attr["token"].s = b"pyfunc_0"
    return section(graph)


def in_the_initialization(op: str) -> Compiled:
    graph = new_graph()
    add(graph.node, "y", op).attr["token"].s = b"pyfunc_0"
    return section(graph, initialize_op="y")


def needed_by_nothing(op: str) -> Compiled:
    graph = new_graph()
    add(graph.node, "y", op).attr["token"].s = b"pyfunc_0"
    return section(graph)


def in_a_module() -> Compiled:
    graph = new_graph()
    node = add(graph.node, "y", "XlaCallModule", ["x"])
    node.attr["module"].s = read_xla(callback().payload).stablehlo
    return section(graph)


@pytest.mark.parametrize("op", PYTHON)
@pytest.mark.parametrize(
    "made",
    [calling, in_a_function, in_the_initialization, needed_by_nothing],
    ids=lambda made: made.__name__,
)
def test_a_graph_that_calls_python(made: Callable[[str], Compiled], op: str, run: Run) -> None:
    # The token may be that of a function of this process.
    pathlib.Path("p.pb").write_bytes(wire.to_bytes(made(op), leaves=False))
    check(run("verify", "p.pb", *ALL), f"`computation` {CALLED}{op}")
    check(run("verify", "p.pb"), f"`computation` {CALLED}{op}")
    ran = run("print", "p.pb")
    assert ran.code == 0
    told = f"note: this runs in the process that traces it, never from a file: {op}\n"
    assert ran.stderr == told
    computation = tff.deserialize_computation(
        pathlib.Path("p.pb").read_bytes(), allow_effects=("python",)
    )
    with pytest.raises(ConsentError) as caught:
        computation(1)
    assert caught.value.code == "E908"


def check(ran: Ran, message: str) -> None:
    assert ran.code == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith(f"error[E908]: {message}\n")


# Rounds.


@dataclasses.dataclass
class Stranger:
    """A round whose clients run a section, in a file and as a bundle."""

    program: Any
    bundle: Bundle


def round_with(part: Compiled) -> Stranger:
    each = tff.deserialize_computation(wire.to_bytes(part))
    each._is_checked = True  # as a program of another tool would not check it

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def count(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(each, data))

    return Stranger(count, compile_bundle(count.node, "distribute-aggregate"))


def test_a_round_that_calls_python(run: Run) -> None:
    stranger = round_with(calling("PyFunc", b"theirs"))
    pathlib.Path("r.pb").write_bytes(wire.to_bytes(stranger.program.node))
    write_bundle(stranger.bundle, pathlib.Path("b"))
    rounds = ("--data", "python:nowhere.py:data", "--rounds", "1", *ALL)
    np.savez("s.npz", arg=np.int32(1))
    for source in ("b", "r.pb"):
        ran = run("run", source, *rounds, "--state-in", "s.npz")
        assert ran.code == 1
        assert ran.stderr.startswith("error[E908]: `")
    form = ("--form", "mapreduce")
    check(run("verify", "r.pb", *form, *ALL), f"`computation` {CALLED}PyFunc")
    # It is not even compiled.
    check(run("compile", "r.pb", *form, "-o", "c"), f"`computation` {CALLED}PyFunc")
    assert not pathlib.Path("c").exists()
    ran = run("export", "b", "--to", "saved_model", "-o", "m", *ALL)
    assert (ran.code, pathlib.Path("m").exists()) == (1, False)
    with pytest.raises(ConsentError, match="stayed in the process") as caught:
        tff.load("b", allow_effects=("files", "network", "python", "unknown")).first_state()
    assert caught.value.code == "E908"


# XLA.


def lowered(function: Callable[[Any], Any]) -> Compiled:
    """A section that tracing would refuse."""
    from tffc.frontend import xla_capture

    check, xla_capture._check_calls = xla_capture._check_calls, lambda *_: None
    try:
        node = tff.jax.computation(np.int32)(function).node
    finally:
        xla_capture._check_calls = check
    assert isinstance(node, Compiled)
    return node


def callback() -> Compiled:
    jax = pytest.importorskip("jax", reason="needs tffc[jax]")

    def outside(x: Any) -> Any:
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((), np.int32), x)

    return lowered(outside)


def printing() -> Compiled:
    jax = pytest.importorskip("jax", reason="needs tffc[jax]")

    def printed(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x + 1

    return lowered(printed)


def foreign() -> Compiled:
    jax = pytest.importorskip("jax", reason="needs tffc[jax]")

    def called(x: Any) -> Any:
        return jax.ffi.ffi_call("launch_rocket", jax.ShapeDtypeStruct((), np.int32))(x)

    return lowered(called)


def in_a_branch() -> Compiled:
    jax = pytest.importorskip("jax", reason="needs tffc[jax]")

    def branch(x: Any) -> Any:
        def outside(y: Any) -> Any:
            return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((), np.int32), y)

        return jax.lax.cond(x > 5, outside, lambda y: y, x)

    return lowered(branch)


def in_the_hlo_alone() -> Compiled:
    return with_modules(callback(), stablehlo=b"")


def in_the_stablehlo_alone() -> Compiled:
    clean = lowered(lambda x: x + 1)
    return with_modules(clean, stablehlo=read_xla(callback().payload).stablehlo)


def something_in_the_stablehlo_alone() -> Compiled:
    clean = lowered(lambda x: x + 1)
    return with_modules(clean, stablehlo=read_xla(foreign().payload).stablehlo)


def with_modules(part: Compiled, **modules: bytes) -> Compiled:
    content: XlaSection = read_xla(part.payload)._replace(**modules)
    return dataclasses.replace(part, payload=write_xla(content))


FFI = "xla_ffi_python_cpu_callback"
XLA: dict[str, tuple[Callable[[], Compiled], str]] = {
    "a pure callback": (callback, FFI),
    "a print": (printing, FFI),
    "another function": (foreign, "launch_rocket"),
    "in a branch": (in_a_branch, FFI),
    "in the HLO alone": (in_the_hlo_alone, FFI),
    "in the StableHLO alone": (in_the_stablehlo_alone, FFI),
    "something in the StableHLO alone": (something_in_the_stablehlo_alone, hlo.UNTOLD),
}


@pytest.mark.parametrize("case", XLA)
def test_an_xla_module_that_calls_a_function(case: str, run: Run) -> None:
    pytest.importorskip("jax", reason="needs tffc[jax]")
    make, target = XLA[case]
    part = make()
    pathlib.Path("p.pb").write_bytes(wire.to_bytes(part))
    name = f"{CALLED}custom-call '{target}'"
    check(run("verify", "p.pb", *ALL), f"`computation` {name}")
    stranger = round_with(part)
    write_bundle(stranger.bundle, pathlib.Path("b"))
    np.savez("s.npz", arg=np.int32(1))
    ran = run("run", "b", "--data", "python:n.py:d", "--rounds", "1", "--state-in", "s.npz", *ALL)
    assert ran.code == 1
    assert ran.stderr.startswith("error[E908]: `")
    with pytest.raises(ConsentError, match="stayed in the process"):
        Process(stranger.bundle, ("python", "unknown"))
    # What runs sections asks again, so that no way around consent leads to a crash.
    with pytest.raises(ExecutionError, match=r"it calls .*, outside of XLA") as caught:
        run_section(part, np.int32(1))
    assert caught.value.code == "E720"


def test_what_runs_a_graph_asks_again() -> None:
    part = calling("PyFunc", b"nobody's")
    with pytest.raises(ExecutionError) as caught:
        run_section(part, np.int32(1))
    assert caught.value.code == "E720"
    assert caught.value.notes == ("it calls a function of Python that this process does not have",)


@pytest.mark.parametrize("opcode", sorted(hlo.OF_HOST))
def test_an_instruction_that_reaches_for_the_host(opcode: str) -> None:
    (use,) = outside_uses(instructions({2: opcode, 28: "anything"}))
    assert use.never_runs
    with pytest.raises(ConsentError, match="stayed in the process"):
        check_consent({"c": instructions({2: opcode, 28: "anything"})}, KINDS)


def test_targets_that_only_compute_are_listed_by_name() -> None:
    lapack = pytest.importorskip("jaxlib.lapack", reason="needs tffc[jax]")
    known = [target for target, *_ in lapack.registrations()["cpu"]]
    assert len(known) > 50
    assert [target for target in known if not hlo.OF_JAX.fullmatch(target)] == []
    assert hlo.OF_JAX.fullmatch("lapack_shell_ffi") is None


def test_no_component_holds_such_a_module() -> None:
    pytest.importorskip("jax", reason="needs tffc[jax]")
    stranger = round_with(callback())
    with pytest.raises(GraphError) as caught:
        compile_form(stranger.program.node, "mapreduce")
    assert caught.value.code == "E325"


def test_a_module_in_a_tensorflow_graph(run: Run) -> None:
    pytest.importorskip("jax", reason="needs tffc[jax]")
    module = read_xla(callback().payload).stablehlo
    assert effect_of_module(module) is Effect.PYTHON
    assert effect_of_module(read_xla(foreign().payload).stablehlo) is Effect.OTHER
    pathlib.Path("p.pb").write_bytes(wire.to_bytes(in_a_module()))
    check(run("verify", "p.pb", *ALL), f"`computation` {CALLED}XlaCallModule")


def test_calls_that_only_compute_run(run: Run) -> None:
    jax = pytest.importorskip("jax", reason="needs tffc[jax]")

    def decomposed(x: Any) -> Any:
        return jax.numpy.linalg.cholesky(jax.numpy.eye(2) * x).sum()

    part = tff.jax.computation(np.float32)(decomposed)
    content = read_xla(part.node.payload)
    assert hlo.foreign_calls(content.hlo_module, content.stablehlo) == []
    assert hlo.calls_outside(content.stablehlo)
    again = tff.deserialize_computation(tff.serialize_computation(part))
    assert again(4.0) == 4


def test_targets_among_strings_of_an_artifact() -> None:
    pytest.importorskip("jax", reason="needs tffc[jax]")
    content = read_xla(callback().payload)
    clean = read_xla(lowered(lambda x: x + 1).payload)
    foreign = hlo.foreign_calls(clean.hlo_module, content.stablehlo)
    assert foreign == [FFI, hlo.UNTOLD]
    assert hlo.foreign_calls(content.hlo_module, clean.stablehlo) == [FFI]
    assert hlo.foreign_calls(clean.hlo_module, b"not an artifact") == []
