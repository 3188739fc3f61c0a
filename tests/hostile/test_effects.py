"""What a program from a file does besides computing is found before it runs, and needs consent."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tffc as tff
from tests.cli.conftest import EXPLAIN
from tests.hostile.graphs import (
    add,
    add_function,
    add_text,
    hlo,
    new_graph,
    reading,
    section,
)
from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.application import application
from tffc.deploy.engines import make_engine
from tffc.frontend.computation import Computation
from tffc.frontend.load import load
from tffc.graphs.operations import effects, op_table
from tffc.language import wire
from tffc.language.nodes import Compiled
from tffc.runtime.effects.consent import check_consent, find_outside
from tffc.runtime.effects.outside import Use, outside_uses
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.state import State
from tffc.support.errors import ConsentError, LanguageValueError
from tffc.tff.backends import mapreduce

REFUSAL = """\
error[E705]: `{name}` reads or writes files, and nobody has consented to that: ReadFile 'secret'
 = note: files: ReadFile 'secret' in {path}
 = help: if you trust whoever made the program: --allow-effects files
"""

NOTE = "note: to run this needs consent to files: ReadFile 'secret'\n"


def kinds(of: Compiled) -> list[tuple[str, str]]:
    return [(use.kind, use.operation) for use in outside_uses(of)]


def with_node(op: str, attributes: Mapping[str, bytes] = types.MappingProxyType({})) -> Compiled:
    graph = new_graph()
    add(graph.node, "it", op, (), **attributes)
    return section(graph)


# Every operation is known.


COMPUTING = re.compile(
    r"""
    AssertCardinalityDataset | AudioSummary(V2)? | Batch(Function)? | BoostedTreesMakeStatsSummary
    | CollectionSummary | DecodeCSV | DecodeCompressed | (DatasetToGraph(V2)?) | Fact | HostConst
    | HistogramSummary | ImageSummary | MergeSummary | ScalarSummary | TensorSummary(V2)?
    | NonSerializableDataset | ExperimentalNonSerializableDataset | ParseTensor
    | Serialize(ManySparse|Sparse|Tensor) | ShardedFile(name|spec) | PartitionedCall | Snapshot
    | TensorArray(Read|ReadV2|Write) | BarrierReadySize
    """,
    re.VERBOSE,
)
"""Operations that only compute, though their names make one think of files or other processes."""

SUSPICIOUS = re.compile(
    r"File|Save|Restore|Record|Rpc|DataService|Send|Recv|PyFunc|Remote|Snapshot|Vocab|Summary"
    r"|Dump|Collective|Nccl|GraphDef|FromGraph|Mlir|XlaC(all|ustom)|Abort|Debug|LMDB|Sql|Reader"
    r"|HostCompute|DTensorAll|RegisterDataset|TPU(Partitioned)?Call"
)


def is_listed(op: str) -> bool:
    """Whether it is said of an operation by name what it does besides computing."""
    listed = op in effects.read_table(effects.TABLE) or op == effects.MODULE
    return listed or op.startswith(effects.OWN_STATE_FAMILIES)


def test_every_stateful_operation_is_listed() -> None:
    names = op_table._rows()
    stateful = [name for name in names if getattr(op_table.find(name), "is_stateful", False)]
    assert len(stateful) > 500
    assert [name for name in stateful if not is_listed(name)] == []


def test_operations_with_names_of_effects_are_listed() -> None:
    found = [name for name in op_table._rows() if SUSPICIOUS.search(name)]
    assert len(found) > 150
    unlisted = {name for name in found if not is_listed(name)} - effects.ADDRESSES.keys()
    # Checked one by one: they count, format, or pass gradients on.
    assert {name for name in unlisted if not COMPUTING.fullmatch(name)} == {
        "DebugGradientIdentity",
        "DebugGradientRefIdentity",
        "DebugNumericSummaryV2",
    }


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("ReadFile", "files"),
        ("TextLineDataset", "files"),
        ("RestoreV2", "files"),
        ("ImmutableConst", "files"),
        ("InitializeTableFromTextFileV2", "files"),
        ("GenerateVocabRemapping", "files"),
        ("CreateSummaryFileWriter", "files"),
        ("FileSystemSetConfiguration", "files"),
        ("RemoteCall", "network"),
        ("CollectiveReduceV2", "network"),
        ("DataServiceDatasetV4", "network"),
        ("RpcClient", "network"),
        ("_HostSend", "network"),
        ("PyFunc", "python"),
        ("EagerPyFunc", "python"),
        ("PyFuncStateless", "python"),
        ("Abort", "unknown"),
        ("DatasetFromGraph", "unknown"),
        ("XlaCallModule", "unknown"),
        ("XlaCustomCallV2", "unknown"),
        ("MlirPassthroughOp", "unknown"),
        ("Vendor>Custom", "unknown"),
    ],
)
def test_kinds(op: str, kind: str) -> None:
    assert kinds(with_node(op)) == [(kind, op)]


@pytest.mark.parametrize(
    ("op", "attributes", "found"),
    [
        ("PrintV2", {"output_stream": b"stderr"}, None),
        ("PrintV2", {"output_stream": b"log(info)"}, None),
        ("PrintV2", {}, None),
        ("PrintV2", {"output_stream": b"file://out"}, ("files", (b"file://out",))),
        ("DecodeProtoV2", {"descriptor_source": b"local://"}, None),
        ("DecodeProtoV2", {"descriptor_source": b"/etc/d"}, ("files", (b"/etc/d",))),
        ("EncodeProto", {"descriptor_source": b"bytes://\n"}, None),
        ("FixedUnigramCandidateSampler", {}, None),
        ("FixedUnigramCandidateSampler", {"vocab_file": b"v"}, ("files", (b"v",))),
        ("RecordInput", {"file_pattern": b"*"}, ("files", (b"*",))),
        ("DebugIdentity", {}, None),
        ("CudnnRNNV3", {}, None),
        ("DeviceIndex", {}, None),
        ("Print", {}, None),
        ("RandomUniform", {}, None),
        ("Timestamp", {}, None),
        ("VarHandleOp", {"shared_name": b"v"}, None),
    ],
)
def test_what_attributes_say(
    op: str, attributes: dict[str, bytes], found: tuple[str, tuple[bytes, ...]] | None
) -> None:
    uses = [(use.kind, use.constants) for use in outside_uses(with_node(op, attributes))]
    assert uses == ([found] if found else [])


@pytest.mark.parametrize(
    ("op", "attribute"),
    [
        ("DebugIdentity", "debug_urls"),
        ("DebugIdentityV2", "debug_urls"),
        ("DebugNanCount", "debug_urls"),
        ("DebugNumericSummary", "debug_urls"),
        ("Copy", "debug_ops_spec"),
        ("CopyHost", "debug_ops_spec"),
    ],
)
@pytest.mark.parametrize(
    ("urls", "found"),
    [
        ([b"grpc://example.org:1"], ["network"]),
        ([b"file:///srv/x"], ["files"]),
        ([b"grpc://a", b"file://b"], ["files", "network"]),
        ([b"memcbk://a"], ["files", "network"]),
        ([b"/srv/x"], ["files", "network"]),
        ([b"FILE:///srv/x"], ["files", "network"]),
    ],
)
def test_addresses_of_debuggers(
    op: str, attribute: str, urls: list[bytes], found: list[str]
) -> None:
    graph = new_graph()
    node = add(graph.node, "it", op, ["x"])
    is_spec = attribute == "debug_ops_spec"
    texts = [b"DebugIdentity;%b;1" % url for url in urls] if is_spec else urls
    node.attr[attribute].list.s.extend(texts)
    assert [(u.kind, u.constants) for u in outside_uses(section(graph))] == [
        (kind, tuple(texts)) for kind in found
    ]


def test_all_effects_of_a_node_need_consent() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"secret")
    add(graph.node, "read", "ReadFile", ["name"]).device = "/job:worker"
    add(graph.node, "save", "DistributedSave", ["x", "name", "x"])
    assert kinds(section(graph)) == [
        ("files", "ReadFile"),
        ("network", "ReadFile"),
        ("files", "DistributedSave"),
        ("network", "DistributedSave"),
    ]


def test_an_attribute_that_the_caller_gives_may_be_anything() -> None:
    graph = new_graph()
    add(add_function(graph, "f"), "it", "PrintV2").attr["output_stream"].placeholder = "stderr"
    assert kinds(section(graph)) == [("files", "PrintV2")]


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ("/job:worker/task:1", [("network", "Identity")]),
        ("/replica:0/job:localhosts", [("network", "Identity")]),
        ("/job:localhost/replica:0/task:0/device:CPU:0", []),
        ("/device:GPU:0", []),
    ],
)
def test_devices(device: str, found: list[tuple[str, str]]) -> None:
    graph = new_graph()
    add(graph.node, "it", "Identity", ["x"]).device = device
    assert kinds(section(graph)) == found


def test_a_cache_in_memory_is_no_file() -> None:
    def cached(name: bytes) -> Compiled:
        graph = new_graph()
        add_text(graph.node, "name", name)
        add(graph.node, "it", "CacheDataset", ["x", "name"])
        return section(graph)

    assert kinds(cached(b"")) == []
    assert kinds(cached(b"folder")) == [("files", "CacheDataset")]


def test_a_constant_that_an_argument_replaces_is_none() -> None:
    graph = new_graph()
    graph.node[0].op = "Const"
    graph.node[0].attr["value"].tensor.string_val.append(b"")
    add(graph.node, "it", "CacheDataset", ["x", "x"])
    assert kinds(section(graph)) == [("files", "CacheDataset")]


def test_xla() -> None:
    def uses(opcode: str, target: str = "") -> list[tuple[str, tuple[bytes, ...]]]:
        fields = {2: opcode, **({28: target} if target else {})}
        return [(use.kind, use.constants) for use in outside_uses(hlo({2: "add"}, fields))]

    assert uses("multiply") == uses("rng") == []
    assert uses("custom-call", "lapack_sgesdd_ffi") == []
    assert uses("custom-call", "system") == [("unknown", (b"system",))]
    callback = "xla_ffi_python_cpu_callback"
    assert uses("custom-call", callback) == [("python", (callback.encode(),))]
    assert uses("infeed") == uses("outfeed") == uses("launch-rocket") == [("unknown", ())]
    assert uses("send") == uses("recv") == uses("all-reduce") == [("network", ())]


# Wherever it stands.


def test_what_no_result_needs() -> None:
    assert kinds(with_node("ReadFile")) == [("files", "ReadFile")]


def test_behind_a_control_edge_and_in_the_initialization() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"secret")
    add(graph.node, "read", "ReadFile", ["name"])
    add(graph.node, "after", "NoOp", ["^read"])
    assert kinds(section(graph, "after")) == [("files", "ReadFile")]


def test_in_functions_of_functions_with_the_name_from_outside() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"secret")
    add(graph.node, "same", "Identity", ["name"])
    add(graph.node, "call", "PartitionedCall", ["same"], f="outer")
    add(add_function(graph, "outer", "a"), "map", "MapDataset", ["a"], f="inner")
    inner = add_function(graph, "inner", "e")
    add(inner, "direct", "deepest", ["e"])
    deepest = add_function(graph, "deepest", "n")
    add(deepest, "read", "ReadFile", ["n"])
    add_text(deepest, "text", b"hello")
    add(deepest, "write", "WriteFile", ["n", "text:output:0"])
    way = ("call", "outer", "map", "inner", "direct", "deepest")
    assert outside_uses(section(graph)) == (
        Use("files", "ReadFile", (), (*way, "read"), computed=True),
        Use("files", "WriteFile", (), (*way, "write"), computed=True),
    )
    graph.library.function[0].node_def[0].op = "PartitionedCall"
    graph.library.function[0].node_def[0].attr["Tin"].list.type.append(7)
    names = [(use.constants, use.computed) for use in outside_uses(section(graph))]
    assert names == [((b"secret",), False), ((b"secret",), False)]


def test_in_gradients_and_in_functions_that_nobody_calls() -> None:
    graph = new_graph()
    add(add_function(graph, "unused"), "end", "Abort")
    graph.library.gradient.add(function_name="f", gradient_func="unused")
    assert outside_uses(section(graph)) == (Use("unknown", "Abort", (), ("unused", "end")),)


@pytest.mark.parametrize(
    ("chain", "end"),
    [
        ((), "ReadFile"),
        (("Identity",), "ReadFile"),
        (("StringJoin",), "ReadFile"),
        (("Identity", "IdentityN"), "MatchingFiles"),
        ((), "Vendor>Custom"),
        (("Pack",), "Vendor>Custom"),
    ],
)
def test_what_a_function_that_nobody_calls_is_given_is_unknown(
    chain: tuple[str, ...], end: str
) -> None:
    graph = new_graph()
    body = add_function(graph, "unused", "n")
    edge = "n"
    for number, op in enumerate(chain):
        add(body, f"step{number}", op, [edge])
        edge = f"step{number}:output:0"
    add(body, "end", end, [edge])
    (use,) = outside_uses(section(graph))
    assert (use.operation, use.constants, use.path) == (end, (), ("unused", "end"))
    assert use.computed is (end != "Vendor>Custom")


def test_a_function_is_not_believed_its_name() -> None:
    graph = new_graph()
    add_function(graph, "ReadFile", "n")
    add(graph.node, "read", "ReadFile", ["x"])
    assert kinds(section(graph)) == [("files", "ReadFile")]


def test_long_chains_and_many_uses_take_little() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"a" * 10_000)
    for number in range(3000):
        function = add_function(graph, f"f{number}")
        add(function, "end", "Abort")
        add(function, "next", "PartitionedCall", f=f"f{number + 1}")
    add_function(graph, "f3000")
    add(graph.node, "call", "PartitionedCall", f="f0")
    add(graph.node, "read", "ReadFile", ["name"])
    uses = outside_uses(section(graph))
    assert len(uses) == 3001
    assert len(uses[0].constants[0]) == 200
    assert max(len(use.path) for use in uses) < 30
    with pytest.raises(ConsentError) as caught:
        check_consent({"work": section(graph)}, ())
    assert len(caught.value.notes) == 11
    assert caught.value.notes[-1] == "and 2991 more"
    assert len(str(caught.value)) < 10_000


def test_names_are_shown_as_text() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"\x1b[2J\xff")
    add(graph.node, "read\x1b]0;title\x07", "ReadFile", ["name"])
    add(graph.node, "more", "Bad\u202eOp\r\n")
    with pytest.raises(ConsentError) as caught:
        check_consent({"wo\x1brk": section(graph)}, ())
    assert str(caught.value).replace("\n  ", "").isprintable()
    assert caught.value.notes == (
        r"files: ReadFile '\x1b[2J" + "\ufffd" + r"' in wo\x1brk > read\x1b]0;title\x07",
        r"unknown: Bad\u202eOp\r\n in wo\x1brk > more",
    )


# What it names.


def named(graph: Any) -> list[str]:
    """What is said of what reaches outside."""
    return [str(each) for each in find_outside({"work": section(graph)})]


def test_names_of_datasets_come_through_functions_and_elements() -> None:
    graph = new_graph()
    add_text(graph.node, "one", b"a")
    add_text(graph.node, "two", b"b")
    add(graph.node, "both", "Pack", ["one", "two"])
    add(graph.node, "names", "TensorSliceDataset", ["both"])
    add(graph.node, "shuffled", "ShuffleDatasetV3", ["names"])
    add_text(graph.node, "folder", b"f/")
    inputs = ["shuffled", "folder", "x"]
    mapped = add(graph.node, "mapped", "ParallelMapDatasetV2", inputs, f="join")
    body = add_function(graph, "join", "name", "folder")
    add(body, "path", "StringJoin", ["folder", "name"])
    join = graph.library.function[0]
    join.signature.output_arg.add(name="out", type=7)
    join.ret["out"] = "path:output:0"
    add(graph.node, "read", "FlatMapDataset", ["mapped"], f="open")
    body = add_function(graph, "open", "name")
    add_text(body, "compression", b"")
    add(body, "records", "TFRecordDataset", ["name", "compression:output:0"])
    assert named(graph) == ["TFRecordDataset 'f/a', 'f/b'"]
    mapped.attr["Targuments"].placeholder = "types"
    assert named(graph) == ["TFRecordDataset (a computed name)"]


def test_names_that_are_computed_or_given_are_no_constants() -> None:
    def read_of(op: str, *inputs: str) -> list[str]:
        graph = new_graph()
        add_text(graph.node, "known", b"a")
        add(graph.node, "name", op, inputs)
        add(graph.node, "read", "ReadFile", ["name"])
        return named(graph)

    for op in ("AsString", "Substr", "Vendor>Custom", "StringJoin", "Identity"):
        (*_, said) = read_of(op, "x")
        assert said == "ReadFile (a computed name)"
    assert read_of("VarHandleOp") == ["ReadFile (a computed name)"]
    assert read_of("StringJoin", "known", "x") == ["ReadFile (a computed name)"]
    assert read_of("Pack", "known", "x") == ["ReadFile 'a', (a computed name)"]
    assert read_of("ConcatV2", "known", "known", "x") == ["ReadFile 'a'"]


def test_a_name_that_a_loop_changes_is_computed() -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"a")
    loop = add(graph.node, "loop", "While", ["name"], body="body", cond="cond")
    add_function(graph, "cond", "n")
    body = add_function(graph, "body", "n")
    add(body, "read", "ReadFile", ["n"])
    add(body, "next", "Substr", ["n"])
    function = graph.library.function[1]
    function.signature.output_arg.add(name="out", type=7)
    function.ret["out"] = "n"
    assert named(graph) == ["ReadFile 'a'"]
    function.ret["out"] = "next:output:0"
    assert named(graph) == ["ReadFile 'a', (a computed name)"]
    loop.op = "Vendor"
    assert named(graph)[-1] == "ReadFile (a computed name)"


def test_a_constant_that_the_caller_of_a_function_gives_is_none() -> None:
    graph = new_graph()
    body = add_function(graph, "f")
    add_text(body, "name", b"harmless").attr["value"].placeholder = "value"
    add(body, "read", "ReadFile", ["name:output:0"])
    add(graph.node, "call", "PartitionedCall", f="f")
    assert named(graph)[0].endswith("(a computed name)")


@pytest.mark.parametrize("replaced", ["gradient", "implementation"])
def test_a_function_that_may_stand_for_another_is_given_anything(replaced: str) -> None:
    graph = new_graph()
    add_text(graph.node, "name", b"harmless")
    add(graph.node, "call", "PartitionedCall", ["name"], f="f")
    add(add_function(graph, "f", "n"), "read", "ReadFile", ["n"])
    assert named(graph) == ["ReadFile 'harmless'"]
    if replaced == "gradient":
        graph.library.gradient.add(function_name="g", gradient_func="f")
    else:
        graph.library.function[0].attr["api_implements"].s = b"g"
    assert named(graph)[0].endswith("(a computed name)")


@pytest.mark.parametrize("name", [b"gs://bucket/x", b"https://example.org/x", b"s3://x"])
def test_files_of_other_machines_are_on_the_network_too(name: bytes) -> None:
    assert kinds(reading(name)) == [("files", "ReadFile"), ("network", "ReadFile")]


@pytest.mark.parametrize("name", [b"/a//b", b"file:///a", b"ram://a", b"://", b"a b://c"])
def test_files_of_this_machine_are_not(name: bytes) -> None:
    assert kinds(reading(name)) == [("files", "ReadFile")]


# Whoever runs it.


def a_round(of: Compiled) -> Computation:
    """A round whose state goes through a section; of this process, and so trusted."""
    return tff.federated_computation(
        lambda state, data: (
            tff.federated_map(Computation.from_node(of), state),
            tff.federated_sum(data),
        ),
        tff.types.at_server(np.int32),
        tff.types.at_clients(np.int32),
    )


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with a stranger's program and its bundle."""

    def invoke(*args: str) -> tuple[int, str, str]:
        result = CliRunner(catch_exceptions=False).invoke(application, args)
        return result.exit_code, result.stdout, EXPLAIN.sub("", result.stderr)

    monkeypatch.chdir(tmp_path)
    pathlib.Path("secret").write_text("known to one")
    pathlib.Path("round.pb").write_bytes(wire.to_bytes(a_round(reading()).node))
    np.savez("data.npz", arg=np.int32(1))
    code, _, stderr = invoke("compile", "round.pb", "--form", "mapreduce", "-o", "b")
    assert (code, stderr) == (0, f"wrote b: mapreduce, 10 components\n{NOTE}")
    return invoke


IN_UPDATE = REFUSAL.format(name="update", path="update > c1/read")
IN_ROUND = REFUSAL.format(name="computation", path="computation > read")

NO_STATE = """\
 = note: besides, the bundle does not say how the state of type `int32` begins
"""
BEGIN = """\
; and give a state, or compile an iterative process, or compile with a computation of the first \
state; --state-in FILE gives a state, and tffc compile --initialize FILE.pb the computation
"""


def test_commands_that_run_a_program_refuse(run: Run) -> None:
    rounds = ("run", "b", "--data", "python:nowhere.py:data", "--rounds", "1")
    np.savez("s.npz", arg=np.int32(1))
    assert run(*rounds, "--state-in", "s.npz") == (1, "", IN_UPDATE)
    assert run(*rounds, "--state-in", "s.npz", "--engine", "beam") == (1, "", IN_UPDATE)
    for kind in ("saved_model", "tflite"):
        exported = run("export", "b", "--to", kind, "-o", "m")
        assert exported[:2] == (1, "")
        assert exported[2].endswith(IN_UPDATE)
    assert run("verify", "round.pb") == (1, "", IN_ROUND)
    verified = ("compile", "round.pb", "--form", "broadcast", "-o", "c", "--verify")
    assert run("compile", "round.pb", "--form", "mapreduce", "-o", "c", "--verify") == (
        1,
        "",
        IN_ROUND,
    )
    assert run(*verified)[0] == 1
    assert not pathlib.Path("m").exists()
    assert not pathlib.Path("c").exists()


def test_all_that_is_missing_is_said_at_once(run: Run) -> None:
    rounds = ("run", "b", "--data", "python:nowhere.py:data", "--rounds", "1")
    first, note, help = IN_UPDATE.splitlines(keepends=True)
    assert run(*rounds) == (1, "", f"{first}{note}{NO_STATE}{help.strip(chr(10))}{BEGIN}")
    evaluate = ("--evaluate", "b", "--evaluate-data", "d", "--state-in", "s.npz")
    other = note.replace("in update", "in evaluation.update")
    assert run(*rounds, *evaluate) == (1, "", f"{first}{note}{other}{help}")
    assert run(*rounds, "--allow-effects", "files")[2].startswith("error[E661]: the bundle does")


def test_consent_to_another_kind_is_none(run: Run) -> None:
    assert run("verify", "round.pb", "--allow-effects", "network,python,unknown")[2] == IN_ROUND


def test_an_unknown_kind_is_wrong_usage(run: Run) -> None:
    code, _, stderr = run("verify", "round.pb", "--allow-effects", "files,disks")
    assert code == 2
    assert stderr.endswith(
        "Error: Invalid value for '--allow-effects': 'disks' is not a kind of effect; the kinds "
        "are files, network, python, unknown\n"
    )


def test_commands_that_run_nothing_say_so_in_a_line(run: Run) -> None:
    assert run("check", "round.pb", "--form", "mapreduce") == (
        0,
        "",
        f"{NOTE}round.pb can be compiled to mapreduce\n",
    )
    for source in ("round.pb", "b"):
        code, stdout, stderr = run("print", source)
        assert (code, stderr) == (0, NOTE)
        assert stdout
    typed = run("print", "round.pb", "--style", "typed", "--sections", "sections")[1]
    pathlib.Path("round.sexpr").write_text(typed)
    assert run("verify", "round.sexpr") == (1, "", IN_ROUND)


def test_the_line_names_no_more_than_three(run: Run) -> None:
    graph = new_graph()
    for number in range(5):
        add_text(graph.node, f"name{number}", b"%d" % number)
        add(graph.node, f"read{number}", "ReadFile", [f"name{number}"])
    pathlib.Path("many.pb").write_bytes(wire.to_bytes(section(graph)))
    shown = "ReadFile '0'; ReadFile '1'; ReadFile '2' and 2 more"
    assert run("print", "many.pb")[2] == f"note: to run this needs consent to files: {shown}\n"


@pytest.mark.tensorflow
def test_with_consent_it_runs(run: Run) -> None:
    assert run("verify", "round.pb", "--trials", "1", "--allow-effects", "files")[0] == 0
    export = ("export", "b", "--to", "saved_model", "-o", "m", "--allow-effects", "files")
    code, _, stderr = run(*export)
    assert code == 0
    assert stderr.endswith(NOTE)
    state = State(np.int32(0), "", 0)
    (finished,) = tff.run("b", [np.int32(3)], 1, state=state, allow_effects=["files"])
    assert finished.output == 3


def test_engines_refuse(run: Run) -> None:
    message = "`update` reads or writes files, and nobody has consented to that: ReadFile 'secret'"
    for start in (
        lambda: tff.load("b").first_state(),
        lambda: next(tff.run(tff.load("b"), [np.int32(3)], 1)),
        lambda: next(tff.run("b", [np.int32(3)], 1)),
        lambda: next(tff.run("b", [np.int32(3)], 1, allow_effects={"network", "python"})),
        lambda: Process(read_bundle(pathlib.Path("b"))),
    ):
        with pytest.raises(ConsentError) as caught:
            start()
        assert caught.value.message == message
        assert caught.value.notes == ("files: ReadFile 'secret' in update > c1/read",)
        assert caught.value.help == (
            "if you trust whoever made the program, consent: allow_effects=('files',)"
        )
    process = tff.load("b", allow_effects=("files",)).process
    assert make_engine("local", process).process is process


@pytest.mark.parametrize("given", ["files", ("disk",), ["files", ""]])
def test_kinds_are_checked(given: Any, run: Run) -> None:
    name = given if isinstance(given, str) else given[-1]
    for use in (
        lambda: tff.load("b", allow_effects=given),
        lambda: tff.deserialize_computation(b"", allow_effects=given),
    ):
        with pytest.raises(LanguageValueError) as caught:
            use()
        assert (caught.value.code, caught.value.message, caught.value.notes, caught.value.help) == (
            "E706",
            f"{name!r} is not a kind of effect",
            ("the kinds are files, network, python, unknown",),
            "give a tuple of kinds, such as allow_effects=('files',)",
        )


def test_what_makes_the_first_state_is_asked_too(run: Run) -> None:
    bundle = read_bundle(pathlib.Path("b"))
    graph = new_graph()
    add(graph.node, "end", "Abort")
    harmless = {**bundle.components, "update": bundle.components["prepare"]}
    hostile = dataclasses.replace(bundle, initialize=section(graph))
    assert list(hostile.run_by_rounds()) == [*harmless, "initialize"]
    with pytest.raises(ConsentError) as caught:
        Process(hostile, ("files",))
    assert caught.value.kinds == ("unknown",)


def test_every_component_of_a_bundle_is_asked(run: Run) -> None:
    bundle = read_bundle(pathlib.Path("b"))
    harmless = {**bundle.components, "update": bundle.components["prepare"]}
    for name in bundle.components:
        swapped = dataclasses.replace(bundle, components={**harmless, name: reading()})
        with pytest.raises(ConsentError) as caught:
            check_consent(swapped.run_by_rounds(), ())
        assert caught.value.notes == (f"files: ReadFile 'secret' in {name} > read",)


def from_file(of: Compiled, **options: Any) -> Computation:
    return tff.deserialize_computation(wire.to_bytes(of), **options)


def test_calls_of_what_came_from_a_file_refuse() -> None:
    computation = from_file(reading())
    server = tff.types.at_server(np.int32)

    def apply(function: Any, x: Any) -> Any:
        return function(x)

    taking = tff.federated_computation(apply, tff.FunctionType(np.int32, np.int32), np.int32)
    rounds = tff.deserialize_computation(wire.to_bytes(a_round(reading()).node))
    form = mapreduce.get_map_reduce_form_for_computation(rounds)
    whole = mapreduce.get_computation_for_map_reduce_form(form)
    for call in (
        lambda: computation(1),
        lambda: tff.federated_computation(lambda x: tff.federated_map(computation, x), server),
        lambda: tff.federated_computation(lambda x: computation(x), np.int32),
        lambda: tff.tensorflow.computation(lambda x: computation(x), np.int32),
        lambda: taking(computation, 1),
        lambda: form.update(1, (2, (), (), ())),
        lambda: mapreduce.MapReduceForm(
            form.type_signature,
            **{name: getattr(form, name) for name in form.form.components()},
        ).update(1, (2, (), (), ())),
        lambda: whole(1, [2]),
        lambda: mapreduce.parse_tff_to_tf(computation)(1),
        lambda: mapreduce.consolidate_and_extract_local_processing(computation)(1),
    ):
        with pytest.raises(ConsentError, match="ReadFile 'secret'"):
            call()


def test_what_came_from_a_file_may_be_looked_at() -> None:
    computation = from_file(reading())
    assert tff.deserialize_computation(tff.serialize_computation(computation)) == computation
    assert str(computation.to_building_block()).startswith("comp#")


@pytest.mark.tensorflow
def test_calls_with_consent(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("known to one")
    computation = from_file(reading(bytes(tmp_path / "secret")), allow_effects=("files",))
    assert computation(3) == 3
    assert a_round(reading(bytes(tmp_path / "secret")))(3, [4]) == (3, 4)


def test_a_module_is_its_users_own_but_not_what_it_reads(run: Run) -> None:
    pathlib.Path("mine.py").write_text(MODULE)
    assert load("mine.py:own").computation.allow_effects is None
    assert run("verify", "mine.py:read") == (1, "", IN_ROUND)
    pathlib.Path("other.py").write_text(f"{MODULE}\n\n{USE}")
    code, _, stderr = run("verify", "other.py:use")
    assert code == 1
    assert "error[E705]: `computation` reads or writes files" in stderr
    assert "--> other.py:14:12\n   |\n14 |     return read(1, [2])\n" in stderr


MODULE = """\
import numpy as np
import tffc as tff
from tests.hostile.graphs import reading
from tests.hostile.test_effects import a_round

with open("round.pb", "rb") as file:
    read = tff.deserialize_computation(file.read())

own = a_round(reading())
"""

USE = """\
@tff.federated_computation
def use():
    return read(1, [2])
"""


def test_the_users_line_is_told_where_it_is_known() -> None:
    rounds = a_round(reading())
    with pytest.raises(ConsentError) as caught:
        check_consent({"computation": rounds.node}, ())
    assert caught.value.span is not None
    assert "tff.federated_map(Computation.from_node(of), state)," in caught.value.span.source_line()
