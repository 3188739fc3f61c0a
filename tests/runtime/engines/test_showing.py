"""What clients' code shows is not passed on, unless the engine is asked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow

import tffc as tff
from tests.deploy.federation.nodes import Together, make_node
from tests.deploy.federation.nodes import run as run_federation
from tests.processes import ENVIRONMENT, run_python
from tests.runtime.engines.programs import NONE, process_of
from tests.runtime.engines.sources import Values
from tffc.deploy.federation.asking import TooFewError
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import ClientWork, OneByOne, ShardResult, merging, run_shards
from tffc.runtime.engines.showing import is_showing, leave_prints_out, showing
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import ExecutionError, TffcError

tf: Any = tensorflow
SECRET = 9317
SEEN = str(SECRET)
FORMS = ("mapreduce", "distribute-aggregate", "mergeable", "broadcast")


def round_of(work: Callable[..., Any], form: str = "mapreduce") -> Process:
    """A round in which each client computes with its number, which is added up or kept."""
    section = tff.tf_computation(work, np.int32)

    @tff.federated_computation(NONE, tff.types.at_clients(np.int32))
    def summed(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(section, data))

    @tff.federated_computation(NONE, tff.types.at_clients(np.int32))
    def kept(state: Any, data: Any) -> Any:
        return tff.federated_map(section, data)

    return process_of(kept if form == "broadcast" else summed, form)


def after(effect: Any, x: Any) -> Any:
    with tf.control_dependencies([] if effect is None else [effect]):
        return tf.identity(x)


def printed(x: Any) -> Any:
    return after(tf.print("a number", x), x)


def printed_in_the_old_way(x: Any) -> Any:
    return tf.raw_ops.Print(input=x, data=[x, x + 1], message="a number ")


def printed_in_a_function(x: Any) -> Any:
    return tf.function(printed, autograph=False)(x)


def printed_in_a_branch(x: Any) -> Any:
    return tf.cond(x > 3, lambda: printed(x), lambda: x)


def printed_in_a_loop(x: Any) -> Any:
    return tf.while_loop(lambda i: i < x, lambda i: (i + printed(x),), (0,))[0]


def printed_for_each_element(x: Any) -> Any:
    return tf.data.Dataset.from_tensors(x).map(printed).reduce(0, lambda sum, y: sum + printed(y))


def printed_to_a_log(x: Any) -> Any:
    return after(tf.print("a number", x, output_stream=tf.compat.v1.logging.warning), x)


PRINTS = [
    printed,
    printed_in_the_old_way,
    printed_in_a_function,
    printed_in_a_branch,
    printed_in_a_loop,
    printed_for_each_element,
    printed_to_a_log,
]


def asserted(x: Any) -> Any:
    return after(tf.debugging.Assert(x < 5, ["too large", x]), x)


def asserted_by_a_function(x: Any) -> Any:
    return after(tf.debugging.assert_equal(x, 5, message="no five"), x)


def asserted_for_each_element(x: Any) -> Any:
    return tf.data.Dataset.from_tensors(x).reduce(0, lambda sum, y: sum + asserted(y))


def gathered(x: Any) -> Any:
    return tf.gather(tf.constant([1, 2, 3]), x)


def read_as_a_number(x: Any) -> Any:
    return tf.strings.to_number(tf.strings.join(["x", tf.as_string(x)]), tf.int32)


def labelled(x: Any) -> Any:
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[x], logits=[[0.0, 1.0]])
    return tf.cast(loss[0], tf.int32)


def reshaped(x: Any) -> Any:
    return tf.reduce_sum(tf.reshape(tf.range(3), [x]))


def ensured(x: Any) -> Any:
    return tf.reduce_sum(tf.ensure_shape(tf.zeros([x], tf.int32), [3]))


def of_unequal_shapes(x: Any) -> Any:
    return tf.cast(tf.reduce_sum(tf.zeros([x]) + tf.zeros([x + 3])), tf.int32)


def quoting_a_node(x: Any) -> Any:
    """Its text looks like TensorFlow's mark of the node that failed."""
    text = tf.strings.join(["{{node ", tf.as_string(x), "}} failed"])
    return after(tf.debugging.Assert(False, [text]), x)


FAILURES = [
    asserted,
    asserted_by_a_function,
    asserted_for_each_element,
    gathered,
    read_as_a_number,
    labelled,
    reshaped,
    ensured,
    of_unequal_shapes,
    quoting_a_node,
]


def run_round(process: Process, *, shows: bool = False, workers: int = 1) -> Any:
    source = Values([np.int32(SECRET)] * 2)
    engine = LocalEngine(process, workers, shows_clients=shows)
    return engine.run_round((), Cohort(source, source.clients))


@pytest.mark.parametrize("work", PRINTS, ids=lambda work: work.__name__)
def test_prints_of_clients_are_left_out(work: Any, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_round(round_of(work), workers=2)
    assert SEEN not in "".join(capfd.readouterr())
    shown = run_round(round_of(work), shows=True, workers=2)
    # TensorFlow's log may be off in this process.
    assert SEEN in "".join(capfd.readouterr()) or work is printed_to_a_log
    assert result.output == shown.output


@pytest.mark.parametrize("work", FAILURES, ids=lambda work: work.__name__)
def test_errors_of_clients_keep_what_the_program_decides(
    work: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    process = round_of(work)
    with pytest.raises(ExecutionError) as caught:
        run_round(process)
    text = str(caught.value)
    assert SEEN not in "".join((text, *capfd.readouterr()))
    assert caught.value.code == "E722"
    assert "it is of the kind 'invalid argument'" in text
    assert "it was at work on the data of client 00000" in text
    with pytest.raises(ExecutionError) as caught:
        run_round(process, shows=True)
    assert SEEN in str(caught.value) or work is quoting_a_node


def test_an_error_names_the_operation_that_failed() -> None:
    with pytest.raises(ExecutionError) as caught:
        run_round(round_of(gathered))
    hidden = caught.value.notes
    assert hidden[0].endswith("failed, a GatherV2")
    with pytest.raises(ExecutionError) as caught:
        run_round(round_of(gathered), shows=True)
    assert caught.value.notes == hidden
    with pytest.raises(ExecutionError) as caught:
        run_round(round_of(tf.function(asserted, autograph=False)))
    assert caught.value.notes[0].endswith("failed, a Assert")


@pytest.mark.parametrize("form", FORMS)
def test_all_forms(form: str, capfd: pytest.CaptureFixture[str]) -> None:
    run_round(round_of(printed, form))
    with pytest.raises(ExecutionError) as caught:
        run_round(round_of(asserted, form))
    assert SEEN not in "".join((str(caught.value), *capfd.readouterr()))


@tff.tf_computation
def zero() -> Any:
    return 0


@tff.tf_computation(np.int32, np.int32)
def add_and_print(x: Any, y: Any) -> Any:
    return printed(x + y)


@tff.tf_computation(np.int32, np.int32)
def add_and_check(x: Any, y: Any) -> Any:
    return asserted(x + y)


@tff.tf_computation(np.int32)
def print_the_report(x: Any) -> Any:
    return after(tf.print("the server has", x), x)


def aggregating(accumulate: Any, merge: Any, form: str) -> Process:
    @tff.federated_computation(NONE, tff.types.at_clients(np.int32))
    def computed(state: Any, data: Any) -> Any:
        parts = (zero(), accumulate, merge, print_the_report)
        return state, tff.federated_aggregate(data, *parts)

    return process_of(computed, form)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_partial_aggregates_are_clients_values_and_reports_are_not(
    form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run_round(aggregating(add_and_print, add_and_print, form))
    shown = "".join(capfd.readouterr())
    assert "a number" not in shown
    assert f"the server has {2 * SECRET}" in shown
    for process in (
        aggregating(add_and_check, add_and_print, form),
        aggregating(add_and_print, add_and_check, form),
    ):
        with pytest.raises(ExecutionError) as caught:
            run_round(process)
        assert str(SECRET) not in str(caught.value)
        assert str(2 * SECRET) not in str(caught.value)


def test_the_server_shows_what_it_did() -> None:
    """Errors of its own code have their texts."""
    section = tff.tf_computation(asserted, np.int32)

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def computed(state: Any, data: Any) -> Any:
        return tff.federated_map(section, state), tff.federated_sum(data)

    source = Values([np.int32(1)])
    with pytest.raises(ExecutionError, match="too large"):
        LocalEngine(process_of(computed), 1).run_round(np.int32(7), Cohort(source, source.clients))


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def with_few_bits(state: Any, data: Any) -> Any:
    return state, tff.federated_secure_sum_bitwidth(data, 3)


@pytest.mark.parametrize("masks_sums", [False, True])
def test_values_beyond_the_bound_of_a_secure_sum_are_not_told(masks_sums: bool) -> None:
    pytest.importorskip("cryptography", reason="needs tffc[masking]")
    source = Values([np.int32(SECRET)] * 2)
    engine = LocalEngine(process_of(with_few_bits), 1, masks_sums=masks_sums)
    with pytest.raises(ExecutionError) as caught:
        engine.run_round((), Cohort(source, source.clients))
    assert caught.value.code == "E663"
    assert SEEN not in str(caught.value)


@pytest.mark.parametrize("work", [asserted, gathered])
def test_errors_that_workers_send_hold_no_values(work: Any) -> None:
    """As those of Ray and Beam do, which share this code."""
    process = round_of(work)
    source = Values([np.int32(SECRET)])
    carried, given = process.steps.prepare(())
    clients = ClientWork(process.steps, source, carried, given, skip_bad=False)
    sent = run_shards(clients, [[OneByOne(source.clients)]]).to_bytes()
    error = ShardResult.from_bytes(sent).error
    assert error is not None
    assert SEEN not in str(error)
    assert SEEN.encode() not in sent
    steps = aggregating(add_and_check, add_and_check, "mapreduce").steps
    add = merging(steps, steps.prepare(())[0])
    with pytest.raises(TffcError) as caught:
        add([(np.int32(SECRET),)], [(np.int32(SECRET),)])
    assert str(2 * SECRET) not in str(caught.value)


MERGED_BY_A_DRIVER = """
import tensorflow

from tests.runtime.engines.test_showing import SECRET, add_and_check, aggregating, np
from tffc.runtime.engines.encoding import encode
from tffc.deploy.ray.worker import merged_bytes
from tffc.runtime.engines.shards import ShardResult
from tffc.runtime.frameworks.tensorflow.quiet import is_quiet

steps = aggregating(add_and_check, add_and_check, "distribute-aggregate").steps
carried, _ = steps.prepare(())
part = encode([np.int32(SECRET)])
error = ShardResult.from_bytes(merged_bytes(steps, carried, [part, part])).error
print(is_quiet(), error.code, error)
"""


@pytest.mark.slow
def test_what_a_driver_merges_is_not_logged() -> None:
    """Also if a script has imported TensorFlow first, which then logs each error."""
    env = {name: text for name, text in ENVIRONMENT.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    ran = run_python("-c", MERGED_BY_A_DRIVER, env=env)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("False E722 ")
    assert str(2 * SECRET) not in ran.stdout + ran.stderr


def test_nodes_send_no_texts(capfd: pytest.CaptureFixture[str]) -> None:
    """The node's operator, who has the data, is told; the server gets a code."""
    process = round_of(lambda x: asserted(printed(x)))
    log: list[str] = []
    names = ("north", "south", "west")
    source = Values([np.int32(SECRET)])
    together = Together({name: make_node(process.bundle, source, log) for name in names})
    with pytest.raises(TooFewError) as caught:
        run_federation(process, together, attempts=1)
    assert SEEN in "".join(log)
    assert SEEN not in "".join((str(caught.value), repr(together.seen), *capfd.readouterr()))
    assert together.seen[0].entries["error"] == "E722"


def test_code_is_taken_for_a_clients_unless_a_block_says_otherwise() -> None:
    assert not is_showing()
    with showing():
        assert is_showing()
        with showing(False):
            assert not is_showing()
    assert not is_showing()


def test_what_waited_for_a_print_waits_for_what_the_print_waited_for() -> None:
    graph = load_tensorflow().compat.v1.GraphDef()
    graph.node.add(name="a", op="Const")
    graph.node.add(name="b", op="NoOp")
    graph.node.add(name="new", op="PrintV2", input=["a:0", "^b"])
    graph.node.add(name="old", op="Print", input=["a", "a:0", "^b"]).attr["T"].type = 3
    graph.node.add(name="file", op="PrintV2", input=["a"]).attr["output_stream"].s = b"file:///x"
    function = graph.library.function.add()
    function.signature.input_arg.add(name="x", type=3)
    function.node_def.add(name="text", op="StringFormat", input=["x"])
    function.node_def.add(name="print", op="PrintV2", input=["text:output:0", "^x"])
    leave_prints_out(graph)
    nodes = {node.name: (node.op, list(node.input)) for node in graph.node}
    assert nodes["new"] == ("NoOp", ["^a", "^b"])
    assert nodes["old"] == ("Identity", ["a", "^a", "^b"])
    assert nodes["file"] == ("PrintV2", ["a"])
    assert function.node_def[1].op == "NoOp"
    assert list(graph.library.function[0].node_def[1].input) == ["^text"]
