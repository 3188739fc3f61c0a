"""A SavedModel computes in each call what the interpreter computes."""

from __future__ import annotations

import collections
import concurrent.futures
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.deploy.export.computations import counted
from tests.refusals import refusal
from tffc.backends.bundle.bundle import read_bundle
from tffc.deploy.export.saved_model import FILE, saved_model
from tffc.deploy.export.signatures import Signature, link_signatures
from tffc.language import Compiled, FunctionType, SequenceType, StructType, TensorType
from tffc.language.values.concrete import to_value
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.location import open_source
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import ExportError

WORDS = SequenceType(
    collections.OrderedDict(word=TensorType(np.str_), count=TensorType(np.int32, [2]))
)


class Model:
    """A SavedModel of components, written to a folder and loaded again."""

    def __init__(self, folder: pathlib.Path, components: dict[str, Any]) -> None:
        self.components = components
        content, linked = saved_model(components)
        (folder / FILE).write_bytes(content)
        self.signatures = linked.signatures
        self.left_out = linked.left_out
        # Made by TensorFlow, whose stubs do not say what.
        self._loaded = tf.saved_model.load(str(folder))

    def __call__(self, name: str, argument: Any = None) -> Any:
        """Return the result of a component in the interpreter's format."""
        section: Compiled = self.components[name]
        signature: Signature = self.signatures[name]
        assert isinstance(section.type, FunctionType)
        feeds: dict[str, Any] = {}
        if section.type.parameter is not None:
            arrays = ArrayLayout(section.type.parameter).encode(argument, "the argument")
            feeds = dict(zip(signature.inputs, map(tf.constant, arrays.values()), strict=True))
        # Made by TensorFlow, whose stubs do not say what.
        given = self._loaded.signatures[name](**feeds)
        layout = ArrayLayout(section.type.result)
        assert [each.name for each in layout.fields] or not signature.outputs
        return layout.assemble(
            given[key].numpy() if field.sequence is None else list(given[key].numpy())
            for key, field in zip(signature.outputs, layout.fields, strict=True)
        )


Load = Callable[..., Model]


@pytest.fixture
def load(tmp_path: pathlib.Path) -> Load:
    return lambda **components: Model(
        tmp_path, {name: part.to_building_block() for name, part in components.items()}
    )


def agree(model: Model, name: str, argument: Any = None) -> None:
    """Compares two consecutive calls with the interpreter's result."""
    section = model.components[name]
    parameter = section.type.parameter
    value = None if parameter is None else to_value(argument, parameter)
    expected = run_section(section, value)
    for _ in range(2):
        np.testing.assert_equal(model(name, value), expected)


def test_tensors(load: Load) -> None:
    @tff.tf_computation(np.float32, (np.int32, TensorType(np.str_, [None])))
    def part(x: Any, rest: Any) -> Any:
        number, texts = rest
        return x + tf.cast(number, tf.float32), collections.OrderedDict(
            joined=tf.strings.reduce_join(texts), same=x
        )

    model = load(part=part)
    agree(model, "part", [1.5, (2, [b"a", b"b"])])
    assert list(model.signatures["part"].inputs) == ["arg_x", "arg_rest_0", "arg_rest_1"]
    outputs = ["result_0", "result_1_joined", "result_1_same"]
    assert list(model.signatures["part"].outputs) == outputs


def test_a_call_without_argument(load: Load) -> None:
    @tff.tf_computation
    def zero() -> Any:
        return tf.zeros([2, 3]), 0

    model = load(zero=zero)
    agree(model, "zero")
    assert list(model.signatures["zero"].inputs) == []


def test_a_bare_tensor_has_a_bare_name(load: Load) -> None:
    @tff.tf_computation(np.int32)
    def double(x: Any) -> Any:
        return 2 * x

    model = load(double=double)
    agree(model, "double", 4)
    assert model.signatures["double"].inputs.keys() == {"arg"}
    assert model.signatures["double"].outputs.keys() == {"result"}


def test_names_that_python_does_not_take(load: Load) -> None:
    @tff.tf_computation(np.int32)
    def named(x: Any) -> Any:
        return collections.OrderedDict([("a b", x), ("a-b", x + 1)])

    model = load(named=named)
    agree(model, "named", 4)
    assert list(model.signatures["named"].outputs) == ["result_0", "result_1"]


@pytest.mark.parametrize("rows", [[], [("a", [1, 2])], [("a", [1, 2]), ("né", [3, 4])]])
def test_sequences_lie_along_the_first_axis(load: Load, rows: list[Any]) -> None:
    @tff.tf_computation(WORDS)
    def doubled(data: Any) -> Any:
        def double(row: Any) -> Any:
            return collections.OrderedDict(
                z=row["word"] + "!", a=2 * row["count"], y=tf.reduce_sum(row["count"])
            )

        return data.map(double), data.reduce(0, lambda n, _: n + 1)

    model = load(doubled=doubled)
    agree(model, "doubled", rows)
    assert list(model.signatures["doubled"].inputs) == ["arg_word", "arg_count"]


def test_variables_are_new_in_each_call(load: Load) -> None:
    model = load(counted=counted, again=counted)
    agree(model, "counted", 3.0)
    agree(model, "again", 4.0)


def test_calls_at_the_same_time_do_not_meet(load: Load) -> None:
    @tff.tf_computation(np.int32)
    def steps(x: Any) -> Any:
        total = tf.Variable(tf.constant(0))

        @tf.function
        def run() -> Any:
            for _ in tf.range(200):
                total.assign_add(x)
            return total.read_value()

        return run()

    model = load(steps=steps)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: model("steps", np.int32(n)), range(40)))
    assert found == [200 * n for n in range(40)]


def test_a_call_that_fails_gives_the_lock_back(load: Load) -> None:
    @tff.tf_computation(np.float32)
    def divided(x: Any) -> Any:
        total = tf.Variable(tf.constant(1.0))
        total.assign_add(tf.debugging.check_numerics(1.0 / x, "no number"))
        return total.read_value()

    model = load(divided=divided)
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
            model("divided", np.float32(0))
    agree(model, "divided", 2.0)


def test_a_session_runs_it_as_serving_does(load: Load, tmp_path: pathlib.Path) -> None:
    @tff.tf_computation(np.int32)
    def steps(x: Any) -> Any:
        total = tf.Variable(tf.constant(0))

        @tf.function
        def run() -> Any:
            for _ in tf.range(200):
                total.assign_add(x)
            return total.read_value()

        return run(), x

    load(steps=steps)
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["steps"]
        feed, fetch = signature.inputs["arg"].name, signature.outputs["result_0"].name

        def call(number: int) -> int:
            return session.run(fetch, {feed: number})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert list(pool.map(call, range(40))) == [200 * n for n in range(40)]


def test_tables(load: Load) -> None:
    @tff.tf_computation(TensorType(np.str_, [None]))
    def found(words: Any) -> Any:
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        known = tf.lookup.StaticHashTable(pairs, -1)
        seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, 0)
        seen.insert(words, tf.ones_like(words, tf.int32))
        return known.lookup(words), seen.size()

    model = load(found=found)
    agree(model, "found", [b"b", b"c"])
    agree(model, "found", [])


def test_functions_of_one_name_stay_apart(load: Load) -> None:
    def part(number: int) -> Any:
        @tf.function
        def step(x: Any) -> Any:
            return tf.cond(x > 0, lambda: x * number, lambda: x - number)

        @tff.tf_computation(np.int32)
        def whole(x: Any) -> Any:
            return step(x)

        return whole

    model = load(one=part(3), other=part(5))
    for argument in (4, -4):
        agree(model, "one", argument)
        agree(model, "other", argument)


@pytest.mark.slow
def test_a_trained_model(tmp_path: pathlib.Path, training: pathlib.Path) -> None:
    bundle = read_bundle(training)
    model = Model(tmp_path, {**bundle.components, "initialize": bundle.initialize})
    work = bundle.components["work"]
    assert isinstance(work, Compiled)
    assert isinstance(work.type, FunctionType)
    assert isinstance(work.type.parameter, StructType)
    data, sent = work.type.parameter.types
    source = open_source("examples/digits/train", data)
    assert bundle.initialize is not None
    state = run_section(bundle.initialize, None)
    _compare(model("initialize"), state)
    prepare = bundle.components["prepare"]
    assert isinstance(prepare, Compiled)
    broadcast = run_section(prepare, state)
    # Made by TensorFlow, whose stubs do not say what.
    assert isinstance(prepare.type, FunctionType)
    assert sent == prepare.type.result
    argument = (source.read(source.clients[0]), broadcast)
    for _ in range(2):
        _compare(model("work", argument), run_section(work, argument))


def _compare(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            _compare(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    from click.testing import CliRunner

    from tffc.cli.application import application

    path = tmp_path_factory.mktemp("training")
    target = "examples/digits/federated_averaging.py:training"
    args = ["compile", target, "--form", "mapreduce", "--out", str(path)]
    assert CliRunner(catch_exceptions=False).invoke(application, args).exit_code == 0
    return path


def test_the_same_components_give_the_same_bytes(training: pathlib.Path) -> None:
    components = read_bundle(training).components
    assert saved_model(components)[0] == saved_model(components)[0]


def test_components_that_give_nothing_are_left_out(training: pathlib.Path) -> None:
    linked = link_signatures(read_bundle(training).components)
    assert "work" in linked.signatures
    assert linked.left_out["secure_sum_bitwidth"] == "it has no result"


def test_nothing_to_export() -> None:
    @tff.tf_computation
    def nothing() -> Any:
        return ()

    @tff.federated_computation
    def program() -> Any:
        return 1

    parts = {
        "nothing": nothing.to_building_block(),
        "program": program.to_building_block(),
        "compiled": Compiled("xla", b"", FunctionType(None, TensorType(np.int32))),
    }
    assert refusal(ExportError, link_signatures, parts) == (
        "no component of the bundle is a TensorFlow graph with a result [E870]\n"
        "  note: nothing: it has no result\n"
        "  note: program: it is not a graph but a program of the language\n"
        "  note: compiled: it is compiled for xla, not for TensorFlow\n"
        "  help: compile the round to the form mapreduce or broadcast or client-state"
    )


def test_state_that_calls_would_share_is_refused() -> None:
    @tff.tf_computation
    def queued() -> Any:
        queue = tf.queue.FIFOQueue(3, [tf.int32], [[]])
        queue.enqueue(1)
        return queue.size()

    assert refusal(ExportError, saved_model, {"queued": queued.to_building_block()}) == (
        "the component queued keeps state that its calls would share [E745]\n"
        "  note: variables and tables are new in each call, except those created in functions and "
        "those that several operations name\n"
        "  help: create variables and tables outside functions, and use no other state"
    )


def test_a_graph_that_tensorflow_does_not_know_is_refused(load: Load) -> None:
    from tffc.language.wire import read_tensorflow, write_tensorflow

    @tff.tf_computation(np.float32)
    def root(x: Any) -> Any:
        return tf.sqrt(x)

    section = root.to_building_block()
    content = read_tensorflow(section.payload)
    graph = content.graph_def.replace(b"\x12\x04Sqrt", b"\x12\x04Sqxx")
    broken = write_tensorflow(content._replace(graph_def=graph))
    with pytest.raises(ExportError) as caught:
        saved_model({"root": Compiled("tensorflow", broken, section.type)})
    assert "E720" in str(caught.value)
    assert caught.value.help == (
        "import the package that registers its operations, or compile the program again with this "
        "TensorFlow"
    )


def test_the_file_is_what_tensorflow_expects(load: Load, tmp_path: pathlib.Path) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    @tff.tf_computation(TensorType(np.int32, [None, 2]))
    def same(x: Any) -> Any:
        return x

    load(same=same)
    model = saved_model_pb2.SavedModel.FromString((tmp_path / FILE).read_bytes())
    (meta,) = model.meta_graphs
    assert list(meta.meta_info_def.tags) == ["serve"]
    signature = meta.signature_def["same"]
    assert signature.method_name == "tensorflow/serving/predict"
    info = signature.inputs["arg"]
    assert (info.dtype, [dim.size for dim in info.tensor_shape.dim]) == (3, [-1, 2])
