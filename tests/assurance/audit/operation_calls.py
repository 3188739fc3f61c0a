"""Calls of TensorFlow's operations that run: inputs and attributes tried until one does.

A call has tensors, which the trial makes parts of the parameter of a program, handles of state,
datasets and lists made of such tensors, and functions.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()
plain = tf.autograph.experimental.do_not_convert

STORED = {
    tf.qint8: tf.int8,
    tf.quint8: tf.uint8,
    tf.qint16: tf.int16,
    tf.quint16: tf.uint16,
    tf.qint32: tf.int32,
}
"""The types of parameters from which quantized tensors are made."""

PREFERRED = [
    tf.float32, tf.int32, tf.int64, tf.string, tf.bool, tf.float64, tf.uint8, tf.complex64,
    tf.int8, tf.half, tf.bfloat16, tf.uint32, tf.uint64, tf.int16, tf.uint16, tf.complex128,
    *STORED,
]  # fmt: skip

Shape = tuple[int, ...]
SHAPES: Sequence[Shape] = (
    (2,), (), (3,), (2, 2), (2, 3), (1,), (4,), (1, 2), (1, 4, 4, 1), (2, 2, 2), (1, 4, 4, 2),
    (2, 2, 1, 1), (1, 4, 4, 4, 1), (4, 2), (1, 1, 1, 1), (4, 4), (2, 4), (2, 2, 2, 1, 1), (0,),
)  # fmt: skip


@functools.cache
def definitions() -> dict[str, Any]:
    """Return the definition of each operation that this TensorFlow registers."""
    session: Any = importlib.import_module("tensorflow.python.client.pywrap_tf_session")
    messages: Any = importlib.import_module("tensorflow.core.framework.op_def_pb2")
    known = messages.OpList.FromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    return {each.name: each for each in known.op}


@functools.cache
def on_a_cpu() -> frozenset[str]:
    """Return the operations for which this TensorFlow has code for a CPU."""
    kernels: Any = importlib.import_module("tensorflow.python.framework.kernels")
    devices = ("CPU", "DEFAULT")
    every = kernels.get_all_registered_kernels().kernel
    return frozenset(each.op for each in every if each.device_type in devices)


@functools.cache
def renamed(operation: str) -> dict[str, str]:
    """Return the names that Python has for inputs and attributes that the definition names
    otherwise, such as `axis`; both have them in one order."""
    definition = definitions()[operation]
    known = [each.name for each in (*definition.input_arg, *definition.attr)]
    parameters = inspect.signature(getattr(tf.raw_ops, operation)).parameters
    new = [name for name in parameters if name not in known and name != "name"]
    inferred = {
        name
        for each in definition.input_arg
        for name in (each.type_attr, each.number_attr, each.type_list_attr)
    }
    missing = [name for name in known if name not in parameters and name not in inferred]
    return dict(zip(missing, new, strict=False))


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A tensor of the parameter: its type and a first value, and what draws others."""

    dtype: Any
    value: Any
    draw: Callable[[random.Random, Shape], Any]

    @property
    def stored(self) -> Any:
        return STORED.get(self.dtype, self.dtype)


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of an operation: its tensors' positions among the leaves, and what is made of
    each: nothing, a list of tensors or a dataset; or the kind of state it is a handle of."""

    name: str
    leaves: tuple[int, ...]
    is_list: bool
    wraps: str = ""
    state: str = ""


@dataclasses.dataclass(frozen=True)
class CallOfOperation:
    """A call: its inputs, its attributes, and how its results of no numeric type are read; and
    the number of the attempt that gave it."""

    operation: str
    inputs: tuple[Input, ...]
    leaves: tuple[Leaf, ...]
    attributes: Mapping[str, Any]
    attempt: int
    readers: tuple[str, ...] = ()

    def build(self, tensors: Sequence[Any], handles: Mapping[str, Any]) -> list[Any]:
        """Return the results of the operation for these tensors."""
        arguments: dict[str, Any] = {}
        for each in self.inputs:
            if each.state:
                values = [handles[each.name]]
            else:
                values = [WRAPPINGS[each.wraps](tensors[at]) for at in each.leaves]
            arguments[each.name] = values if each.is_list else values[0]
        arguments |= self.functions()
        names = renamed(self.operation)
        named = {names.get(name, name): value for name, value in arguments.items()}
        outputs = getattr(tf.raw_ops, self.operation)(**named)
        return results_of(outputs)

    def functions(self) -> dict[str, Any]:
        """Return the attributes, with functions traced."""
        return {
            name: [each() for each in value]
            if isinstance(value, list) and value and callable(value[0])
            else value()
            if callable(value) and not isinstance(value, tf.DType)
            else value
            for name, value in self.attributes.items()
        }


def results_of(outputs: Any) -> list[Any]:
    """Return the tensors among an operation's results."""
    if outputs is None or isinstance(outputs, tf.Operation):
        return []
    if isinstance(outputs, list | tuple):
        return [tensor for each in outputs for tensor in results_of(each)]
    return [outputs]


# Values.


def numbers(rng: random.Random, shape: Shape, dtype: Any, style: int) -> Any:
    """Return an array of small numbers, or of texts."""
    count = int(np.prod(shape, dtype=int))
    if dtype == tf.string:
        texts = [[b"a", b"b", b"ab", b"c d"], [b"1", b"2", b"0", b"-3"], [b"ab"]][style % 3]
        return np.array([rng.choice(texts) for _ in range(count)] or [b""], object)[:count].reshape(
            shape
        )
    if dtype == tf.bool:
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape)
    if dtype.is_floating or dtype.is_complex:
        drawn = [
            [rng.choice([-1.5, -0.5, 0.25, 0.5, 1.0, 2.0, 3.0]) for _ in range(count)],
            [rng.choice([0.1, 0.25, 0.4, 0.5, 0.75, 0.9]) for _ in range(count)],
            [rng.choice([1.0, 2.0, 3.0, 4.0]) for _ in range(count)],
            [0.1 * rng.randrange(3) for _ in range(count)],
        ][style % 4]
        array = np.array(drawn, dtype.as_numpy_dtype).reshape(shape)
        if style % 4 == 3 and len(shape) >= 2 and shape[-1] == shape[-2]:
            array = array + np.swapaxes(array, -1, -2) + 2 * np.eye(shape[-1], dtype=array.dtype)
        return array.astype(dtype.as_numpy_dtype)
    drawn = [
        [rng.randrange(3) for _ in range(count)],
        [rng.randrange(1, 4) for _ in range(count)],
        rng.sample(range(count), count),
        sorted(rng.randrange(count + 1) for _ in range(count)),
        [rng.randrange(2) for _ in range(count)],
    ][style % 5]
    return np.array(drawn, STORED.get(dtype, dtype).as_numpy_dtype).reshape(shape)


def leaf(rng: random.Random, dtype: Any, shape: Shape, style: int) -> Leaf:
    """Return a leaf with a drawn value."""

    def draw(other: random.Random, size: Shape) -> Any:
        return numbers(other, size, dtype, style if other.random() < 0.7 else other.randrange(5))

    return Leaf(dtype, numbers(rng, shape, dtype, style), draw)


# What is made of a tensor.


def a_map(x: Any) -> Any:
    empty = tf.raw_ops.EmptyTensorMap()
    return tf.raw_ops.TensorMapInsert(input_handle=empty, key=tf.constant(1), value=x)


def a_ragged(x: Any) -> Any:
    splits = tf.constant([0, 1, 3], tf.int64)
    return tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[splits], rt_dense_values=x, batched_input=False
    )


def a_sparse(x: Any) -> Any:
    return tf.raw_ops.DenseToCSRSparseMatrix(
        dense_input=x, indices=tf.constant([[0, 0], [0, 1], [1, 1]], tf.int64)
    )


WRAPPINGS: dict[str, Callable[[Any], Any]] = {
    "": lambda x: x,
    "quantized": lambda x: x,
    "dataset": lambda x: tf.raw_ops.TensorSliceDataset(
        components=[x], output_shapes=[x.shape[1:]]
    ),
    "list": lambda x: tf.raw_ops.TensorListFromTensor(
        tensor=x, element_shape=tf.constant([], tf.int32)
    ),
    "optional": lambda x: tf.raw_ops.OptionalFromValue(components=[x]),
    "map": a_map,
    "ragged": a_ragged,
    "sparse": a_sparse,
    "compressed": lambda x: tf.raw_ops.CompressElement(components=[x]),
    "wrapped": lambda x: tf.raw_ops.WrapDatasetVariant(
        input_handle=WRAPPINGS["dataset"](x)
    ),
    "composite": lambda x: tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[], rt_dense_values=x, batched_input=False
    ),
}  # fmt: skip
VARIANTS = (*["dataset"] * 4, *["list"] * 2, *list(WRAPPINGS)[4:])


# What is read of a variant.


def of_dataset(kind: Any, shape: Any) -> Callable[[Any], list[Any]]:
    def read(variant: Any) -> list[Any]:
        spec = tf.TensorSpec(shape, kind)
        dataset = tf.data.experimental.from_variant(variant, spec).take(5)
        return [
            dataset.reduce(
                tf.constant(0.0, tf.float64), plain(lambda total, x: total * 0.5 + checksum(x))
            ),
            dataset.reduce(0, plain(lambda total, x: total + 1)),
        ]

    return read


READERS: dict[str, Callable[[Any], list[Any]]] = {
    **{
        f"dataset of {kind.name}{shape}": of_dataset(kind, shape)
        for kind in (tf.float32, tf.int64, tf.string, tf.int32, tf.bool)
        for shape in ([], [None], None)
    },
    "cardinality": lambda x: [tf.raw_ops.DatasetCardinality(input_dataset=x)],
    "list": lambda x: [
        tf.raw_ops.TensorListLength(input_handle=x),
        tf.raw_ops.TensorListStack(
            input_handle=x, element_shape=tf.constant(-1), element_dtype=tf.float32
        ),
    ],
    "length": lambda x: [tf.raw_ops.TensorListLength(input_handle=x)],
    "optional": lambda x: [
        tf.raw_ops.OptionalHasValue(optional=x),
        tf.raw_ops.OptionalGetValue(
            optional=x, output_types=[tf.float32], output_shapes=[tf.TensorShape(None)]
        ),
    ],
    "has value": lambda x: [tf.raw_ops.OptionalHasValue(optional=x)],
    "map": lambda x: [
        tf.raw_ops.TensorMapSize(input_handle=x),
        tf.raw_ops.TensorMapStackKeys(input_handle=x, key_dtype=tf.int32),
    ],
    "size of a map": lambda x: [tf.raw_ops.TensorMapSize(input_handle=x)],
    "sparse": lambda x: [tf.raw_ops.CSRSparseMatrixToDense(sparse_input=x, type=tf.float32)],
    "ragged": lambda x: list(
        tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=x, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.float32
        )[0]
    ),
    "compressed": lambda x: [
        tf.raw_ops.UncompressElement(
            compressed=x, output_types=[tf.float32], output_shapes=[tf.TensorShape(None)]
        )
    ],
    "unwrapped": lambda x: READERS["dataset of float32[]"](
        tf.raw_ops.UnwrapDatasetVariant(input_handle=x)
    ),
    "composite": lambda x: [
        tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=x, input_ragged_rank=0, output_ragged_rank=0, Tvalues=tf.float32
        )[1]
    ],
}  # fmt: skip


def checksum(tensor: Any) -> Any:
    """Return a number that depends on all elements of a tensor and on its shape."""
    if tensor.dtype in STORED:
        tensor = tf.bitcast(tensor, STORED[tensor.dtype])
    if tensor.dtype == tf.string:
        tensor = tf.strings.to_hash_bucket_fast(tensor, 1009)
    if tensor.dtype.is_complex:
        tensor = tf.math.real(tensor) + 2 * tf.math.imag(tensor)
    flat = tf.reshape(tf.cast(tensor, tf.float64), [-1])
    flat = tf.where(tf.math.is_finite(flat), flat, 7.0)
    places = tf.cast(tf.range(tf.size(flat)), tf.float64)
    sizes = tf.reduce_sum(tf.cast(tf.shape(tensor), tf.float64))
    return tf.reduce_sum(flat * (1.0 + 0.125 * places)) + sizes


# Functions.

F, N, L = (tf.TensorSpec([], t) for t in (tf.float32, tf.int32, tf.int64))
V = tf.TensorSpec([], tf.variant)
Builder = Callable[[], Any]


def function(body: Callable[..., Any], *specs: Any) -> Builder:
    """Return what traces a function of tensors."""

    def build() -> Any:
        traced = tf.function(body, autograph=False).get_concrete_function(*specs)
        traced.add_to_graph(tf.compat.v1.get_default_graph())
        return traced

    return build


def slices(x: Any, c: Any) -> Any:
    return tf.raw_ops.TensorSliceDataset(components=[tf.stack([x, c])], output_shapes=[[]])


def of_key(x: Any, c: Any) -> Any:
    return tf.cast(tf.abs(x + c), tf.int64) % 2


FUNCTIONS: dict[str, Sequence[Builder]] = {
    "f": (
        function(lambda x, c: x + c, F, F),
        function(slices, F, F),
        function(lambda s, x, c: s + x * c, F, F, F),
        function(lambda s, x, c: (s + x, x * c), F, F, F),
        function(lambda x: x * 2.0, F),
        function(lambda: tf.raw_ops.RangeDataset(
            start=tf.constant(0, tf.int64), stop=tf.constant(3, tf.int64),
            step=tf.constant(1, tf.int64), output_types=[tf.int64], output_shapes=[[]])),
    ),
    "map_func": (function(slices, F, F),),
    "index_map_func": (function(lambda i, c: (i, tf.cast(0, tf.int64)), L, F),),
    "predicate": (function(lambda x, c: x > c, F, F),),
    "key_func": (function(of_key, F, F),),
    "init_func": (
        function(lambda k, c: tf.cast(k, tf.float32) + c, L, F),
        function(lambda c: c, F),
    ),
    "reduce_func": (
        function(lambda s, x, c: s + x * c, F, F, F),
        function(lambda k, d, c: tf.raw_ops.BatchDatasetV2(
            input_dataset=d, batch_size=tf.constant(2, tf.int64), drop_remainder=False,
            output_types=[tf.float32], output_shapes=[[None]]), L, V, F),
    ),
    "finalize_func": (
        function(lambda s, c: s + c, F, F),
    ),
    "next_func": (function(lambda s, c: s + c, F, F),),
    "window_size_func": (function(lambda k, c: tf.constant(2, tf.int64), L, F),),
    "then_branch": (function(lambda x, c: x + c, F, F),),
    "else_branch": (function(lambda x, c: x * c, F, F),),
    "cond": (function(lambda x, c: x < 10.0, F, F), function(lambda x: x < 10.0, F)),
    "body": (
        function(lambda x, c: (x + tf.abs(c) + 1.0, c), F, F),
        function(lambda i, x: x + 1.0, N, F),
    ),
    "branches": (function(lambda x, c: x + c, F, F),),
    "other_branches": (function(lambda x, c: x + c, F, F),),
}  # fmt: skip


# Attributes.


LISTS: dict[str, Sequence[Any]] = {
    "shape": ([2], [], None, [1], [2, 2], [None]),
    "list(int)": (
        [1, 1, 1, 1], [0], [1, 2, 2, 1], [1], [1, 1, 1, 1, 1], [], [2, 2], [1, 2, 2, 2, 1],
        [0, 0, 0, 0], [2], [0, 1],
    ),
    "list(float)": ([1.0, 2.0], [0.5], [0.0, 0.5, 1.0, 1.5]),
    "list(type)": ([tf.float32], [tf.float32] * 2, [tf.int64], [tf.string], [tf.int32], []),
    "list(shape)": ([[]], [[None]], [None], [[], []], [[2]], [None, None], []),
    "list(string)": ([], ["a"], ["a", "b"]),
    "list(bool)": ([], [True], [False]),
}  # fmt: skip
"""What attributes are tried with, by their type."""


class Search:
    """Draws calls of an operation."""

    def __init__(self, operation: str) -> None:
        self.definition = definitions()[operation]
        self._by_name = False
        self._attributes = {each.name: each for each in self.definition.attr}
        self._inferred = {
            name
            for each in self.definition.input_arg
            for name in (each.type_attr, each.number_attr, each.type_list_attr)
            if name
        }

    def call(self, attempt: int) -> CallOfOperation:
        """Return one of the calls to try."""
        rng = random.Random(f"{self.definition.name} {attempt}")
        drawn = {name: self._attribute(each, rng) for name, each in self._attributes.items()}
        self._agree(drawn, rng)
        base = rng.choice(SHAPES[: 3 + attempt])
        kind = rng.choice(VARIANTS)
        state = rng.choice(kinds_of_state(self.definition.name))
        leaves: list[Leaf] = []
        self._by_name = rng.random() < 0.6
        inputs = [
            self._input(each, drawn, base, kind, state, leaves, rng)
            for each in self.definition.input_arg
        ]
        hidden = {name for name in self._inferred if self._attributes[name].type != "func"}
        shown = {name: value for name, value in drawn.items() if name not in hidden}
        return CallOfOperation(self.definition.name, tuple(inputs), tuple(leaves), shown, attempt)

    def _attribute(self, each: Any, rng: random.Random) -> Any:
        choices = list(self._choices(each))
        is_first = rng.random() < 0.5
        return choices[0] if is_first else rng.choice(choices)

    def _choices(self, each: Any) -> Iterator[Any]:
        """Yield values of an attribute, the likeliest first."""
        default = each.default_value
        allowed = each.allowed_values.list
        has_default = each.HasField("default_value")
        if each.type in LISTS:
            if each.type == "list(int)" and len(default.list.i):
                yield list(default.list.i)
            yield from LISTS[each.type]
            return
        match each.type:
            case "type":
                if has_default:
                    yield tf.as_dtype(default.type)
                types = [tf.as_dtype(t) for t in allowed.type] or PREFERRED[:7]
                yield from sorted(types, key=rank)
            case "int":
                if has_default:
                    yield default.i
                least = each.minimum if each.has_minimum else 1
                yield from (max(least, number) for number in (2, 1, 3, 0, 4))
            case "float":
                yield from (default.f, 0.5, 1.0)
            case "bool":
                yield from (default.b, not default.b)
            case "string":
                if has_default:
                    yield default.s
                yield from allowed.s or (b"", b"x")
            case "func":
                yield from FUNCTIONS.get(each.name, ())
            case "list(func)":
                yield list(FUNCTIONS["branches"]) * 2 if each.name == "branches" else []
            case "tensor":
                yield tf.make_tensor_proto(np.array([1.0, 2.0], np.float32))
            case _:
                raise ValueError(f"an attribute of type {each.type}")

    def _agree(self, drawn: dict[str, Any], rng: random.Random) -> None:
        """Change attributes that have to fit each other."""
        if "output_types" in drawn and "output_shapes" in drawn:
            count = len(drawn["output_types"])
            shapes = rng.choice([[], [], [None], None])
            drawn["output_shapes"] = [tf.TensorShape(shapes)] * count
        for name in drawn:
            # Functions take one captured input.
            if name == "Targuments" or types_captured(name):
                drawn[name] = [tf.float32]
        if rng.random() < 0.7:
            for name in ("Tin", "Tstate", "T"):
                if self._attributes.get(name) and self._attributes[name].type == "list(type)":
                    drawn[name] = [tf.float32] * (1 if name == "Tstate" else 2)
            if "Tout" in drawn and isinstance(drawn["Tout"], list):
                drawn["Tout"] = [tf.float32]

    # Inputs.

    def _input(
        self,
        each: Any,
        drawn: Mapping[str, Any],
        base: Shape,
        kind: str,
        state: str,
        leaves: list[Leaf],
        rng: random.Random,
    ) -> Input:
        dtypes, is_list = self._types(each, drawn)
        if dtypes and dtypes[0] == tf.resource:
            return Input(each.name, (), is_list, state=state)
        start = len(leaves)
        wraps = ""
        for dtype in dtypes:
            if dtype == tf.variant:
                wraps = kind
                shape = (2, 2) if kind == "sparse" else (3,)
                leaves.append(leaf(rng, tf.float32, shape, 0))
            else:
                named = leaf_by_name(each.name, dtype, base, rng) if self._by_name else None
                leaves.append(named or any_leaf(dtype, base, rng))
        return Input(each.name, tuple(range(start, len(leaves))), is_list, wraps)

    @staticmethod
    def _types(each: Any, drawn: Mapping[str, Any]) -> tuple[list[Any], bool]:
        if each.type_list_attr:
            return list(drawn[each.type_list_attr]), True
        dtype = drawn[each.type_attr] if each.type_attr else tf.as_dtype(each.type)
        if each.number_attr:
            return [dtype] * drawn[each.number_attr], True
        return [dtype], False


KINDS = {
    "Lookup": ("table", "fixed table", "dense table", "table of vectors", "anonymous table"),
    "Table": ("table", "fixed table", "dense table", "anonymous fixed table"),
    "Queue": ("queue", "padding queue", "priority queue", "random queue"),
    "Stack": ("stack",),
    "Iterator": ("iterator", "anonymous iterator"),
    "Accumulator": ("accumulator",),
    "Stateful": ("generator",),
    "Rng": ("generator",),
    "Cache": ("memory of a data set",),
    "Shuffle": ("seeds of a data set's orders",),
}
VARIABLES = ("variable", "variable", "number", "matrix", "whole number", "generator")


def kinds_of_state(operation: str) -> Sequence[str]:
    """Return the kinds of state that an operation with handles may work on."""
    for part, kinds in KINDS.items():
        if part in operation:
            return kinds
    return VARIABLES


def rank(dtype: Any) -> int:
    return PREFERRED.index(dtype) if dtype in PREFERRED else len(PREFERRED)


def types_captured(name: str) -> bool:
    return name.startswith("T") and name.endswith(("_arguments", "_args_types"))


AXES = ("axis", "dim", "dimension", "concat_dim", "split_dim", "reduction_indices", "batch_dims")
SIZES = ("shape", "size", "dims", "output_shape", "dense_shape", "input_sizes", "filter_sizes")
VECTORS = (*SIZES, "a_shape", "b_shape", "sp_input_shape", "sparse_shape", "input_shape")


NUMBERS = (
    "min", "max", "num_", "rate", "lr", "beta", "epsilon", "batch_size", "alpha", "rho", "l1", "l2",
    "momentum", "global_step", "logbase", "sign_decay", "count", "buffer_size", "delta", "alg",
)  # fmt: skip
"""Beginnings of the names of inputs that are single numbers."""


def leaf_by_name(name: str, dtype: Any, base: Shape, rng: random.Random) -> Leaf | None:
    """Return a leaf for an input of this name, or None if it tells nothing."""
    sizes = max(len(base), 1)
    if name in AXES or name.endswith("_axis"):
        return leaf(rng, dtype, rng.choice([(), (), (1,)]), 4)
    if name in VECTORS or name.endswith("shape"):
        return fixed(dtype, np.array(base or (1,)), rng)
    if name in ("seed", "key", "seeds", "counter", "state"):
        return leaf(rng, dtype, (1,) if name == "key" else (2,), 0)
    if name in ("paddings", "crops", "pads"):
        return leaf(rng, dtype, (sizes, 2), 4)
    if name in ("begin", "end", "strides", "multiples", "perm", "sizes"):
        return leaf(rng, dtype, (sizes,), {"begin": 4, "perm": 2}.get(name, 1))
    if "segment_ids" in name or "splits" in name:
        return leaf(rng, dtype, base[:1], 3)
    if "indices" in name:
        return leaf(rng, dtype, rng.choice([(2, sizes), base[:1], (2,), (2, 1)]), 4)
    if name.startswith(NUMBERS):
        return leaf(rng, dtype, (), rng.choice([1, 2]))
    return leaf(rng, dtype, base, rng.randrange(5)) if rng.random() < 0.5 else None


def any_leaf(dtype: Any, base: Shape, rng: random.Random) -> Leaf:
    shape = base if rng.random() < 0.55 else rng.choice([(), (), (2,), (1,), *SHAPES])
    return leaf(rng, dtype, shape, rng.randrange(5))


def fixed(dtype: Any, value: Any, rng: random.Random) -> Leaf:
    kind = STORED.get(dtype, dtype)
    if dtype == tf.string or dtype.is_bool:
        return leaf(rng, dtype, value.shape, 0)

    def draw(other: random.Random, shape: Shape) -> Any:
        return numbers(other, shape, dtype, 1)

    return Leaf(dtype, value.astype(kind.as_numpy_dtype), draw)
