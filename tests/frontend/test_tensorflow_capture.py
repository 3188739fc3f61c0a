"""Functions of tensors as graphs: placeholders, bindings, initialisers, results, calls."""

from __future__ import annotations

import collections
import dataclasses
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tffc.graphs.proto import GraphDef
from tffc.language import Compiled
from tffc.language.types import StructType
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    read_tensorflow,
    write_tensorflow,
)
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import ContextError, ExecutionError

tf = load_tensorflow()
tfc = tff.tf_computation
INT, FLOAT = np.int32, np.float32
OrderedDict = collections.OrderedDict


class Point(NamedTuple):
    y: Any
    x: Any


def content(computation: Any) -> TensorFlowSection:
    node = computation.node
    assert isinstance(node, Compiled)
    return read_tensorflow(node.payload)


def graph(computation: Any) -> Any:
    return GraphDef.FromString(content(computation).graph_def)


def nodes(computation: Any) -> str:
    return " ".join(node.name for node in graph(computation).node)


def shown(binding: SectionBinding | None) -> Any:
    match binding:
        case StructBinding(elements):
            return [shown(element) for element in elements]
        case SequenceBinding(variant):
            return {variant}
        case TensorBinding(tensor):
            return tensor
    return None


VECTOR = (
    "0ac2010a27747970652e676f6f676c65617069732e636f6d2f74656e736f72666c6f772e47726170684465661296010a"
    "3d0a1473657373696f6e5f746f6b656e5f74656e736f72120b506c616365686f6c6465722a0b0a056474797065120230"
    "072a0b0a05736861706512023a000a2c0a03617267120b506c616365686f6c6465722a0b0a056474797065120230032a"
    "0b0a05736861706512023a000a220a084964656e7469747912084964656e746974791a036172672a070a015412023003"
    "220308a70c120912070a056172673a301a0e120c0a0a4964656e746974793a30321673657373696f6e5f746f6b656e5f"
    "74656e736f723a30"
)
"""The identity of int32 as TensorFlow 2.14 writes it, whose graphs are of version 1575."""


def test_bytes() -> None:
    found = content(tfc(lambda x: x, INT))
    made = GraphDef.FromString(found.graph_def)
    made.versions.producer = 1575
    graph_def = made.SerializeToString(deterministic=True)
    rewritten = found._replace(graph_def=graph_def)
    assert write_tensorflow(rewritten).hex() == VECTOR


def test_the_same_function_gives_the_same_bytes() -> None:
    def function(x: Any) -> Any:
        return tf.Variable(x, name="v") + 1

    assert tfc(function, INT) == tfc(function, INT)


def variables(*names: str) -> Callable[[], Any]:
    return lambda: [tf.Variable(0, name=name) + 0 for name in names]


def table() -> Any:
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    return tf.lookup.StaticHashTable(entries, -1).lookup(tf.constant(["a"]))


TOKEN = "session_token_tensor"

# The function, its types, all nodes after the token, the bindings of parameter and result.
GRAPHS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, Any, Any]] = {
    "no parameter": (lambda: 1, (), "Const Identity", None, "Identity:0"),
    "tensor": (lambda x: x + x, (INT,), "arg add Identity", "arg:0", "Identity:0"),
    "two tensors": (
        lambda x, y: x + y,
        (INT, INT),
        "arg_x arg_y add Identity",
        ["arg_x:0", "arg_y:0"],
        "Identity:0",
    ),
    "without names": (
        lambda p: p[1],
        ((INT, FLOAT),),
        "arg_None arg_None_1 Identity",
        ["arg_None:0", "arg_None_1:0"],
        "Identity:0",
    ),
    "nested": (
        lambda p: p,
        (OrderedDict(a=INT, b=(FLOAT, (INT, [2]))),),
        "arg_a arg_b_None arg_b_None_1 Identity Identity_1 Identity_2",
        ["arg_a:0", ["arg_b_None:0", "arg_b_None_1:0"]],
        ["Identity:0", ["Identity_1:0", "Identity_2:0"]],
    ),
    "empty struct": (lambda x: x, ((),), "NoOp", [], []),
    "sequence": (
        lambda x: x,
        (tff.SequenceType(INT),),
        "Placeholder Identity",
        {"Placeholder:0"},
        {"Identity:0"},
    ),
    "two sequences": (
        lambda x, y: [y, x],
        (tff.SequenceType(INT), tff.SequenceType(FLOAT)),
        "Placeholder Placeholder_1 Identity Identity_1",
        [{"Placeholder:0"}, {"Placeholder_1:0"}],
        [{"Identity:0"}, {"Identity_1:0"}],
    ),
    "repeated": (
        lambda x: (x, x),
        (INT,),
        "arg Identity Identity_1",
        "arg:0",
        ["Identity:0", "Identity_1:0"],
    ),
    "constants": (
        lambda: (1, "a"),
        (),
        "Const Identity Const_1 Identity_1",
        None,
        ["Identity:0", "Identity_1:0"],
    ),
    "tf.function": (
        tf.function(lambda x: x + 1),
        (INT,),
        "arg PartitionedCall Identity",
        "arg:0",
        "Identity:0",
    ),
    "token": (tff.tensorflow.get_session_token, (), "Identity", None, "Identity:0"),
    "sparse": (
        lambda: tf.SparseTensor([[0, 1]], [5], [2, 2]),
        (),
        "SparseTensor/indices SparseTensor/values SparseTensor/dense_shape Identity Identity_1 "
        "Identity_2",
        None,
        ["Identity:0", "Identity_1:0", "Identity_2:0"],
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name: str) -> None:
    function, types, names, parameter, result = GRAPHS[name]
    computation = tfc(function, *types)
    assert nodes(computation) == f"{TOKEN} {names}"
    found = content(computation)
    assert shown(found.parameter) == parameter
    assert shown(found.result) == result
    assert found.initialize_op == ""
    assert found.session_token_tensor_name == f"{TOKEN}:0"
    assert found.cache_key is None


def test_placeholders() -> None:
    computation = tfc(lambda x: x, (FLOAT, [2, None]))
    placeholder = graph(computation).node[1]
    assert placeholder.attr["dtype"].type == 1
    assert [dim.size for dim in placeholder.attr["shape"].shape.dim] == [2, -1]
    unknown = graph(tfc(lambda x: x, (FLOAT, None))).node[1]
    assert unknown.attr["shape"].shape.unknown_rank
    sequence = graph(tfc(lambda x: x, tff.SequenceType(INT)))
    assert [node.device for node in sequence.node[1:]] == ["/device:CPU:0"] * 2


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "integer": (lambda: 1, "TensorType(np.int32)"),
    "large integer": (lambda: 2**40, "TensorType(np.int64)"),
    "float": (lambda: 2.5, "TensorType(np.float32)"),
    "truth": (lambda: True, "TensorType(np.bool)"),
    "text": (lambda: "a", "TensorType(np.str_)"),
    "bytes": (lambda: b"a", "TensorType(np.str_)"),
    "NumPy scalar": (lambda: np.float64(1), "TensorType(np.float64)"),
    "NumPy array": (lambda: np.array([1, 2], np.int8), "TensorType(np.int8, (2,))"),
    "variable": (lambda: tf.Variable([1.0]), "TensorType(np.float32, (1,))"),
    "list": (
        lambda: [1, 2.0],
        "StructType([TensorType(np.int32), TensorType(np.float32)]) as list",
    ),
    "empty": (lambda: (), "StructType([]) as tuple"),
    "dictionary": (
        lambda: {"b": 1, "a": 2},
        "StructType([('b', TensorType(np.int32)), ('a', TensorType(np.int32))]) as dict",
    ),
    "namedtuple": (
        lambda: Point(1, 2),
        "StructType([('y', TensorType(np.int32)), ('x', TensorType(np.int32))]) as Point",
    ),
    "struct": (
        lambda: tff.Struct([("a", 1), (None, 2)]),
        "StructType([('a', TensorType(np.int32)), TensorType(np.int32)])",
    ),
    "pairs": (
        lambda: [("a", 1)],
        "StructType([StructType([TensorType(np.str_), TensorType(np.int32)]) as tuple]) as list",
    ),
    "ragged": (
        lambda: tf.ragged.constant([[1, 2], [3]]),
        "StructType([('flat_values', TensorType(np.int32, (3,))), ('nested_row_splits', "
        "StructType([TensorType(np.int64, (3,))]) as tuple)]) as RaggedTensor",
    ),
    "sparse": (
        lambda: tf.SparseTensor([[0, 1]], [5], [2, 2]),
        "StructType([('indices', TensorType(np.int64, (1, 2))), ('values', "
        "TensorType(np.int32, (1,))), ('dense_shape', TensorType(np.int64, (2,)))]) as "
        "SparseTensor",
    ),
    "slices of a tensor": (
        lambda: tf.IndexedSlices([[1.0, 2.0]], [1], [3, 2]),
        "TensorType(np.float32, (3, 2))",
    ),
    "dataset": (
        lambda: tf.data.Dataset.range(3).map(lambda x: {"a": x}),
        "SequenceType(StructType([('a', TensorType(np.int64))]) as dict)",
    ),
    "unknown rank": (
        lambda: tf.py_function(lambda: 1, [], tf.int32),
        "TensorType(np.int32, None)",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_type(name: str) -> None:
    function, type = RESULTS[name]
    computation = tfc(function)
    assert repr(computation.type_signature.result) == type
    assert "as" not in repr(computation.node.type).split()


def test_results_of_keras() -> None:
    def train(x: Any) -> Any:
        keras = pytest.importorskip("keras", reason="an optional package")
        layer = keras.layers.Dense(2)
        layer(x)
        return layer.trainable_variables

    assert str(tfc(train, (FLOAT, [None, 3])).type_signature) == (
        "(float32[?,3] -> <float32[3,2],float32[2]>)"
    )


VARIABLE = (
    "{0}/Initializer/initial_value {0} {0}/IsInitialized/VarIsInitializedOp {0}/Assign "
    "{0}/Read/ReadVariableOp"
)

# The function, all nodes after the token, what initialises it.
INITIALIZED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "one variable": (
        lambda: tf.Variable(0, name="v"),
        VARIABLE.format("v") + " init_op_for_v grouped_initializers Read/ReadVariableOp Identity",
        "grouped_initializers",
    ),
    "two variables": (
        lambda: (tf.Variable(0, name="v"), tf.Variable(0, name="w")),
        f"{VARIABLE.format('v')} {VARIABLE.format('w')} init_op_for_v_w grouped_initializers "
        "Read/ReadVariableOp Identity Read_1/ReadVariableOp Identity_1",
        "grouped_initializers",
    ),
    "table": (
        table,
        "keys values Const hash_table key_value_init/LookupTableImportV2 Const_1 "
        "hash_table_Lookup/LookupTableFindV2 grouped_initializers Identity",
        "grouped_initializers",
    ),
}


@pytest.mark.parametrize("name", INITIALIZED)
def test_initializers(name: str) -> None:
    function, names, initialize_op = INITIALIZED[name]
    computation = tfc(function)
    assert nodes(computation) == f"{TOKEN} {names}"
    assert content(computation).initialize_op == initialize_op


@pytest.mark.parametrize(
    ("lengths", "name"),
    [
        ([38], "init_op_for_" + "v" * 38),
        ([39], "init_op_for_1_variables"),
        ([20, 20], "init_op_for_2_variables"),
    ],
)
def test_name_of_the_initializer(lengths: list[int], name: str) -> None:
    names = [letter * length for letter, length in zip("vw", lengths, strict=False)]
    assert name in nodes(tfc(variables(*names))).split()


def controls(computation: Any, name: str) -> list[str]:
    node = next(node for node in graph(computation).node if node.name == name)
    return [edge for edge in node.input if edge.startswith("^")]


def test_an_initializer_waits_for_nothing() -> None:
    computation = tfc(lambda: (lambda v: (v.assign_add(1), v)[1])(tf.Variable(0, name="v")))
    assert controls(computation, "v/Assign") == []
    assert controls(computation, "grouped_initializers") == ["^init_op_for_v"]
    assert controls(computation, "init_op_for_v") == ["^v/Assign"]


def counted(x: Any) -> Any:
    counter = tf.Variable(0, name="v")
    before = counter.read_value()
    counter.assign_add(x)
    counter.assign(counter * 2)
    return before, counter.read_value(), counter


def test_side_effects_happen_in_program_order() -> None:
    computation = tfc(counted, INT)
    assert computation(5) == (0, 10, 10)
    assert computation(6) == (0, 12, 12)


def around_a_placeholder(x: Any) -> Any:
    """Changes of a variable, some of which need a placeholder that nobody feeds."""
    unfed = tf.compat.v1.placeholder(tf.int32, [])
    counter = tf.Variable(0, name="v")
    counter.assign(x)
    counter.assign_add(unfed)
    tf.print(unfed)
    before = counter.read_value()
    counter.assign_add(unfed * before)
    counter.assign(counter * 2 + unfed)
    counter.assign(100)
    return before, counter.read_value()


def test_nothing_waits_for_a_placeholder_of_another() -> None:
    computation = tfc(around_a_placeholder, INT)
    assert computation(5) == (5, 100)


def test_names_of_what_takes_the_place_of_changes() -> None:
    def taken(x: Any) -> Any:
        unfed = tf.compat.v1.placeholder(tf.int32, [])
        counter = tf.Variable(x, name="v")
        counter.assign(unfed, name="change")
        return counter.read_value(), tf.constant(1, name="change_order")

    computation = tfc(taken, INT)
    assert "change_order_" in nodes(computation).split()
    assert computation(5) == (5, 1)


class Lazy(tf.Module):
    """Makes its variable when it is called, inside of a tf.function."""

    weight: Any = None

    @tf.function
    def __call__(self, x: Any) -> Any:
        if self.weight is None:
            self.weight = tf.Variable(2.0)
        self.weight.assign_add(1.0)
        return x * self.weight


def test_variables_made_in_a_function() -> None:
    computation = tfc(lambda x: Lazy()(x), FLOAT)
    assert content(computation).initialize_op == "grouped_initializers"
    assert [computation(2.0), computation(2.0)] == [6.0, 6.0]


def keras_step(x: Any, y: Any) -> Any:
    import keras

    model = keras.Sequential(
        [keras.layers.InputLayer((3,)), keras.layers.Dense(1, kernel_initializer="zeros")]
    )
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    metric = keras.metrics.MeanSquaredError()
    for _ in range(2):
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            loss = tf.reduce_mean((y - prediction) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        metric.update_state(y, prediction)
    return [tf.convert_to_tensor(v) for v in model.trainable_variables], metric.result()


def test_keras_trains_as_in_eager_mode() -> None:
    x, y = np.ones((2, 3), FLOAT), np.ones((2, 1), FLOAT)
    computation = tfc(keras_step, (FLOAT, [None, 3]), (FLOAT, [None, 1]))
    (kernel, bias), loss = computation(x, y)
    (eager_kernel, eager_bias), eager_loss = keras_step(tf.constant(x), tf.constant(y))
    np.testing.assert_allclose(kernel, eager_kernel, rtol=1e-6)
    np.testing.assert_allclose(bias, eager_bias, rtol=1e-6)
    np.testing.assert_allclose(loss, eager_loss, rtol=1e-6)


def keras_2_statistics(x: Any) -> Any:
    import tf_keras

    model = tf_keras.Sequential(
        [tf_keras.layers.InputLayer((3,)), tf_keras.layers.BatchNormalization(momentum=0.5)]
    )
    normalized = model(x, training=True)
    return normalized, *model.non_trainable_variables


def test_keras_2_with_effects_in_its_layers() -> None:
    x = np.arange(6, dtype=FLOAT).reshape(2, 3)
    computation = tfc(keras_2_statistics, (FLOAT, [None, 3]))
    normalized, mean, variance = computation(x)
    np.testing.assert_allclose(normalized, [[-1] * 3, [1] * 3], atol=1e-3)
    np.testing.assert_allclose(mean, x.mean(0) / 2)
    np.testing.assert_allclose(variance, (1 + x.var(0)) / 2)


def compared(x: Any, y: Any) -> Any:
    variable = tf.Variable(x)
    # The comparison is what is tried.
    return x == y, x != y, x == 1, variable == y, x == None, x.shape == (2,)  # noqa: E711  # the comparison is what is traced


def test_comparisons_are_by_value() -> None:
    computation = tfc(compared, (INT, [2]), (INT, [2]))
    equal, different, ones, variable, none, shape = computation([1, 2], [1, 3])
    assert equal.tolist() == variable.tolist() == [True, False]
    assert different.tolist() == [False, True]
    assert ones.tolist() == [True, False]
    assert (bool(none), bool(shape)) == (False, True)


def compared_in_functions(x: Any) -> Any:
    same = tf.cond(x > 0, lambda: x == 1, lambda: x == -1)
    variable = tf.Variable(lambda: tf.cast(tf.constant(2) == 2, INT))
    return same, variable + 1


@pytest.mark.parametrize(("x", "same"), [(1, True), (2, False), (-1, True), (-2, False)])
def test_comparisons_in_functions_are_by_value(x: int, same: bool) -> None:
    assert tfc(compared_in_functions, INT)(x) == (same, 2)


def cond_and_gradient(x: Any) -> Any:
    first = tf.Variable(3.0)
    second = tf.Variable(first * 2)
    with tf.GradientTape() as tape:
        y = tf.cond(x > 0, lambda: second * x * x, lambda: second)
    return y, tape.gradient(y, second)


def test_what_tensorflow_compares_itself_are_objects() -> None:
    y, gradient = tfc(cond_and_gradient, FLOAT)(FLOAT(3))
    assert (y, gradient) == (54, 9)


def test_comparisons_elsewhere_are_as_ever() -> None:
    before = tf.Tensor.__eq__, tf.Variable.__ne__

    def nested(x: Any) -> Any:
        with pytest.raises(ZeroDivisionError):
            tfc(lambda y: y / (1 // 0), INT)
        return x == 1

    assert bool(tfc(nested, INT)(1))
    assert (tf.Tensor.__eq__, tf.Variable.__ne__) == before
    with tf.Graph().as_default():
        assert (tf.constant(1) == 1) is False
    assert bool(tf.constant(1) == 1)


def checked(x: Any) -> Any:
    tf.debugging.assert_equal(x, 1)
    return x, 2


@tf.function
def check(x: Any) -> None:
    tf.debugging.assert_equal(x, 1)


def checked_in_a_function(x: Any) -> Any:
    check(x)
    return x, 2


@pytest.mark.parametrize("function", [checked, checked_in_a_function])
def test_checks_that_no_result_needs(function: Callable[..., Any]) -> None:
    computation = tfc(function, INT)
    assert controls(computation, "Identity_1") == ["^side_effects"]
    assert computation(1) == (1, 2)
    with pytest.raises(ExecutionError, match="assertion failed"):
        computation(2)


def test_what_checks_leave_behind_is_not_complained_about(caplog: pytest.LogCaptureFixture) -> None:
    tfc(checked, INT)
    assert not caplog.records


def given(type_spec: Any) -> Any:
    """What a function is given for a parameter of this type."""
    seen: list[Any] = []

    def keep(value: Any) -> Any:
        seen.append(value)
        return 0

    tfc(keep, type_spec)
    return seen[0]


@pytest.mark.parametrize("container", [list, tuple, dict, OrderedDict])
def test_containers_of_the_parameter(container: Any) -> None:
    named = issubclass(container, dict)
    type_spec = container(a=INT, b=INT) if named else container([INT, INT])
    value = given(type_spec)
    assert type(value) is container
    assert len(value) == 2


def test_other_containers_of_the_parameter() -> None:
    assert isinstance(given(Point(INT, INT)), Point)
    assert isinstance(given(StructType([("a", INT), (None, INT)])), tff.Struct)


def test_elements_of_datasets() -> None:
    def spec(type_spec: Any) -> Any:
        return given(tff.SequenceType(type_spec)).element_spec

    assert list(spec(OrderedDict(b=INT, a=INT))) == ["b", "a"]
    assert isinstance(spec([INT, INT]), tuple)
    assert spec(Point(INT, FLOAT)) == Point(tf.TensorSpec([], tf.int32), tf.TensorSpec([]))
    assert type(spec(StructType([("a", INT)]))) is OrderedDict
    assert type(spec(StructType([(None, INT)]))) is tuple


def test_elements_given_one_by_one() -> None:
    seen: list[Any] = []

    def keep(a: Any, b: Any) -> Any:
        seen.extend([a, b])
        return 0

    computation = tfc(keep)
    argument = StructType([(None, StructType([("x", INT)])), ("b", StructType([INT]))])
    computation.specialize(argument, splat=True)
    assert [type(value) for value in seen] == [OrderedDict, tff.Struct]


# Calls.

add = tfc(lambda a, b: a + b, INT, INT)
one_more = tfc(lambda x: x + 1, INT)
stateful = tfc(lambda x: tf.Variable(x, name="v") + 1, INT)


def test_call() -> None:
    computation = tfc(lambda x: add(x, 1), INT)
    assert nodes(computation) == (
        f"{TOKEN} arg Identity Const Identity_1 subcomputation/{TOKEN} subcomputation/arg_a "
        "subcomputation/arg_b subcomputation/add subcomputation/Identity Identity_2"
    )
    assert computation(2) == 3


def test_calls_with_variables() -> None:
    only_calls = tfc(lambda x: (stateful(x), stateful(x)), INT)
    assert content(only_calls).initialize_op == "subcomputation_init_ops"
    assert controls(only_calls, "subcomputation_init_ops") == [
        "^subcomputation/grouped_initializers",
        "^subcomputation_1/grouped_initializers",
    ]
    assert [
        node.attr["shared_name"].s for node in graph(only_calls).node if node.op == "VarHandleOp"
    ] == [b"v__tffshared_0", b"v__tffshared_1"]
    assert only_calls(5) == (6, 6)

    both = tfc(lambda x: stateful(x) + tf.Variable(10, name="own"), INT)
    assert content(both).initialize_op == "grouped_initializers"
    assert controls(both, "grouped_initializers") == [
        "^init_op_for_own",
        "^subcomputation/grouped_initializers",
    ]
    assert both(5) == 16


def test_calls_of_tables_without_a_name() -> None:
    def sized() -> Any:
        return tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, -1).size()

    inner = tfc(sized)
    outer = tfc(lambda: (inner(), inner()))
    tables = [node for node in graph(outer).node if node.op == "MutableHashTableV2"]
    names = [node.attr["shared_name"].s for node in tables]
    assert names == [b"empty_0__tffshared_0", b"empty_0__tffshared_1"]


def test_calls_in_functions() -> None:
    mapped = tfc(lambda data: data.map(lambda x: one_more(x)), tff.SequenceType(INT))
    assert list(mapped([1, 2]).as_numpy_iterator()) == [2, 3]
    assert tfc(tf.function(lambda x: one_more(one_more(x))), INT)(1) == 3


def test_calls_give_containers() -> None:
    inner = tfc(lambda x: Point(x, {"a": x}), INT)
    seen: list[Any] = []
    tfc(lambda x: seen.append(inner(x)) or 0, INT)
    assert isinstance(seen[0], Point)
    assert list(seen[0].x) == ["a"]


def test_calls_take_and_give_sequences() -> None:
    total = tfc(lambda data: data.reduce(0, lambda a, b: a + b), tff.SequenceType(INT))
    doubled = tfc(lambda data: data.map(lambda x: x * 2), tff.SequenceType(INT))
    assert tfc(lambda data: total(doubled(data)), tff.SequenceType(INT))([1, 2]) == 6


def renamed_function(computation: Any, name: str) -> Any:
    """The computation with its only library function under another name."""
    found = content(computation)
    made = GraphDef.FromString(found.graph_def)
    (function,) = made.library.function
    old, function.signature.name = function.signature.name, name
    for node in made.node:
        for value in node.attr.values():
            if value.func.name == old:
                value.func.name = name
    graph_def = made.SerializeToString(deterministic=True)
    payload = write_tensorflow(found._replace(graph_def=graph_def))
    return type(computation).from_node(dataclasses.replace(computation.node, payload=payload))


def test_functions_of_one_name_in_two_computations() -> None:
    double = renamed_function(tfc(tf.function(lambda x: x * 2), INT), "f")
    square = renamed_function(tfc(tf.function(lambda x: x * x), INT), "f")
    assert tfc(lambda x: (double(x), square(x)), INT)(5) == (10, 25)


def test_a_namedtuple_whose_fields_are_not_in_the_order_of_their_names() -> None:
    data = tff.SequenceType(Point(INT, FLOAT))
    total = tfc(lambda d: d.reduce((0, 0.0), lambda s, e: (s[0] + e.y, s[1] + e.x)), data)
    assert total([Point(1, 2.0), Point(10, 20.0)]) == (11, 22.0)
    kept = tfc(lambda d: d, data)
    assert list(kept([Point(1, 2.0)]).as_numpy_iterator()) == [{"y": 1, "x": 2.0}]


# Refusals.


def test_deep_elements_of_datasets() -> None:
    type_spec: Any = INT
    for _ in range(101):
        type_spec = StructType([type_spec])
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        tfc(lambda x: x, tff.SequenceType(type_spec))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda: tf.Variable(1).handle, "tensors of resource are not part of the language"),
        (lambda: 1j, "class 'complex'"),
        (lambda: lambda: 3, "class 'function'"),
        (lambda: tf.int32, "class 'DType'"),
        (lambda: range(3), "class 'range'"),
        (
            lambda: tf.data.Dataset.from_tensors(tf.ragged.constant([[1]])),
            "a RaggedTensorSpec is not a type of the language",
        ),
    ],
)
def test_other_values_that_no_graph_gives(function: Callable[[], Any], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        tfc(function)


def of_another_graph() -> Any:
    with tf.Graph().as_default():
        return tf.constant(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant(3),
        lambda: tf.Variable(3),
        lambda: tf.data.Dataset.range(3),
        of_another_graph,
    ],
)
@pytest.mark.parametrize("use", [lambda x: x, lambda x: [1, {"a": x}], lambda x: used(x)])
def test_what_was_made_outside(make: Callable[[], Any], use: Callable[[Any], Any]) -> None:
    outside = make()
    with pytest.raises(ContextError) as caught:
        tfc(lambda: use(outside))
    caught.value.span = None
    assert str(caught.value) == (
        "a TensorFlow computation uses a tensor, variable, table or dataset that was made outside "
        "of it [E458]\n"
        "  help: make it inside, or make it an argument; a constant can be a NumPy array"
    )


def used(outside: Any) -> Any:
    if isinstance(outside, tf.data.Dataset):
        return outside.reduce(np.int64(0), lambda a, b: a + b)
    return outside + 1


def test_what_was_made_outside_in_a_function() -> None:
    outside = tf.constant(3)
    with pytest.raises(ContextError, match="made outside of it"):
        tfc(tf.function(lambda x: x + outside), INT)


@pytest.mark.parametrize(
    "choose",
    [
        lambda x: x + 1,
        # The inner computation has a tensor of the same name as this.
        lambda x: x,
        lambda x: tf.Variable(1),
    ],
)
def test_what_another_computation_made_in_a_function(choose: Callable[[Any], Any]) -> None:
    def inner(chosen: Any, y: Any) -> Any:
        def shifted(z: Any) -> Any:
            return z + chosen

        return tf.function(shifted)(y)

    def outer(x: Any) -> Any:
        chosen = choose(x)
        return tfc(lambda y: inner(chosen, y), INT)(x)

    with pytest.raises(ContextError, match="made outside of it") as caught:
        tfc(outer, INT)
    assert caught.value.span is not None
    assert caught.value.span.line == inner.__code__.co_firstlineno + 4


def test_where_something_of_outside_was_used() -> None:
    outside = tf.constant(3)

    def inner(x: Any) -> Any:
        return x * outside

    def function(x: Any) -> Any:
        return inner(x + 1)

    with pytest.raises(ContextError) as caught:
        tfc(function, INT)
    line = inner.__code__.co_firstlineno + 1
    assert caught.value.span is not None
    assert caught.value.span.line == line
    frames = traceback.extract_tb(caught.tb)
    assert [frame.name for frame in frames[-2:]] == ["function", "inner"]
    assert frames[-1].lineno == line


def test_gradients_of_rows() -> None:
    def gradient(row: Any) -> Any:
        rows = tf.Variable([[1.0], [2.0]])
        with tf.GradientTape() as tape:
            doubled = tf.gather(rows, [row, row])
        return tape.gradient(doubled, rows)

    assert tfc(gradient, INT)(1).tolist() == [[0.0], [2.0]]


def test_slices_of_a_tensor_of_unknown_shape() -> None:
    with pytest.raises(TypeError, match="'IndexedSlices' cannot be part of"):
        tfc(lambda: tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])))


def test_a_seed_of_one_operation() -> None:
    computation = tfc(lambda: tf.random.uniform([], seed=3))
    assert computation() == computation()


@pytest.mark.slow
def test_deep_values() -> None:
    def nested(x: Any) -> Any:
        for _ in range(10_000):
            x = [x]
        return x

    value: Any = tfc(nested, INT)(7)
    for _ in range(10_000):
        (value,) = value
    assert value == 7
