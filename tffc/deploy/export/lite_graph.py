"""Rewriting a graph to operations that LiteRT has.

LiteRT has no datasets, and assignment is its only operation that changes variables.  So reductions
of datasets become loops over the rows of their tensors, as in engines; variables become values; and
operations that LiteRT lacks are composed of others, as in the table `COMPOSED`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tffc.deploy.export.lite_variables import hand_on_variables
from tffc.graphs.functions import rename_edges
from tffc.graphs.node import Attributes, Nodes, reached, source
from tffc.graphs.operations import op_table
from tffc.graphs.operations.datasets import DATASETS
from tffc.runtime.frameworks.tensorflow.load import Tensor, TensorFlow, load_tensorflow
from tffc.runtime.reductions.loops import loops_for_reductions
from tffc.runtime.reductions.slices import make_function

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef, NodeDef


INT32 = 3
"""TensorFlow's number for the element type."""

NOT_NEEDED = ("_class", "_gradient_op_type")
"""Attributes that name nodes or functions that may no longer exist."""


def adapt_to_lite(graph: GraphDef) -> None:
    """Rewrite a TensorFlow GraphDef in place so that LiteRT can run more of it.

    It computes the same, except for labels out of range, for which TensorFlow fails.
    """
    loops_for_reductions(graph, _columns(graph))
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        _drop_unread(nodes)
    hand_on_variables(graph)
    _adapt(graph, graph.node)
    for function in list(graph.library.function):
        renamed = _adapt(graph, function.node_def)
        rename_edges(function, lambda edge, renamed=renamed: renamed.get(edge, edge))


def _adapt(graph: GraphDef, nodes: Nodes) -> dict[str, str]:
    """Rewrite the nodes of a graph or function; return the new names of their outputs.

    The names only matter in functions, whose edges contain the name of an output.
    """
    renamed: dict[str, str] = {}
    for node in list(nodes):
        for name in NOT_NEEDED:
            node.attr.pop(name, None)
        if node.op == "While":
            node.attr["_lower_using_switch_merge"].b = False
        elif node.op in COMPOSED:
            edges = enumerate(op_table.function_edges(node))
            renamed |= {edge: f"{node.name}:output:{port}" for port, edge in edges}
            _compose(graph, node)
    return renamed


def _drop_unread(nodes: Nodes) -> None:
    """Remove datasets that are no longer read, and their sources."""
    datasets = {node.name: node for node in nodes if node.op in DATASETS}
    used = (source(edge) for node in nodes if node.op not in DATASETS for edge in node.input)
    read = reached(used, lambda name: map(source, datasets[name].input) if name in datasets else ())
    for name, node in datasets.items():
        if name not in read:
            nodes.remove(node)


def _columns(graph: GraphDef) -> dict[str, list[tuple[str, int]]]:
    """Map each dataset of slices of the graph's inputs to these inputs, with their element
    types."""
    inputs = {node.name: node.attr["dtype"].type for node in graph.node if node.op == "Placeholder"}
    sliced = {
        node.name: list(map(source, node.input))
        for node in graph.node
        if node.op == "TensorSliceDataset"
    }
    return {
        dataset: [(name, inputs[name]) for name in names]
        for dataset, names in sliced.items()
        if all(name in inputs for name in names)
    }


def _compose(graph: GraphDef, node: NodeDef) -> None:
    """Replace a node by a call of a function composed of other operations."""
    compute, types_of = COMPOSED[node.op]
    types = types_of(node.attr)
    name = f"{node.op}_of_{'_'.join(map(str, types))}"
    functions = {function.signature.name: function for function in graph.library.function}
    function = functions.get(name)
    if function is None:
        function = make_function(name, types, functools.partial(compute, load_tensorflow()))
        graph.library.function.append(function)
    outputs = [argument.type for argument in function.signature.output_arg]
    node.op = "PartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = name
    node.attr["Tin"].list.type.extend(types)
    node.attr["Tout"].list.type.extend(outputs)


def _relu_grad(tf: TensorFlow, gradients: Tensor, features: Tensor) -> Sequence[Tensor]:
    return [tf.where(features > 0, gradients, tf.zeros_like(gradients))]


def _relu6_grad(tf: TensorFlow, gradients: Tensor, features: Tensor) -> Sequence[Tensor]:
    is_inside = tf.logical_and(features > 0, features < 6)
    return [tf.where(is_inside, gradients, tf.zeros_like(gradients))]


def _elu_grad(tf: TensorFlow, gradients: Tensor, outputs: Tensor) -> Sequence[Tensor]:
    return [tf.where(outputs < 0, (outputs + 1) * gradients, gradients)]


def _sparse_cross_entropy(tf: TensorFlow, logits: Tensor, labels: Tensor) -> Sequence[Tensor]:
    chosen = tf.one_hot(labels, tf.shape(logits)[-1], dtype=logits.dtype)
    losses = -tf.reduce_sum(chosen * tf.nn.log_softmax(logits), axis=-1)
    return [losses, tf.nn.softmax(logits) - chosen]


def _cross_entropy(tf: TensorFlow, logits: Tensor, labels: Tensor) -> Sequence[Tensor]:
    losses = -tf.reduce_sum(labels * tf.nn.log_softmax(logits), axis=-1)
    return [losses, tf.nn.softmax(logits) - labels]


def _broadcast_gradient_args(tf: TensorFlow, first: Tensor, second: Tensor) -> Sequence[Tensor]:
    """Return the axes along which gradients of a broadcast operation are summed, for each operand.

    Axes of size 1 in both shapes are included; summing along them changes nothing.
    """
    rank = tf.maximum(tf.size(first), tf.size(second))
    axes: list[Tensor] = []
    for shape in (first, second):
        ones = tf.ones([rank - tf.size(shape)], shape.dtype)
        is_one = tf.equal(tf.concat([ones, shape], 0), 1)
        axes.append(tf.cast(tf.reshape(tf.where(is_one), [-1]), shape.dtype))
    return axes


def _dynamic_stitch(tf: TensorFlow, *inputs: Tensor) -> Sequence[Tensor]:
    """Return rows placed at the given indices; later rows win."""
    half = len(inputs) // 2
    indices, values = inputs[:half], inputs[half:]
    row = tf.shape(values[0])[tf.rank(indices[0]) :]
    places = [tf.reshape(index, [-1]) for index in indices]
    size = tf.reduce_max(tf.concat(places, 0)) + 1
    stitched = tf.zeros([size, tf.reduce_prod(row)], values[0].dtype)
    for place, value in zip(places, values, strict=True):
        rows = tf.reshape(value, [tf.size(place), 1, tf.reduce_prod(row)])
        chosen = tf.one_hot(place, size, dtype=value.dtype)[:, :, tf.newaxis]
        is_given = tf.reduce_sum(chosen, axis=0) > 0
        stitched = tf.where(is_given, tf.reduce_sum(chosen * rows, axis=0), stitched)
    return [tf.reshape(stitched, tf.concat([[size], row], 0))]


def _types(*names: str) -> TypesOf:
    return lambda attributes: [attributes[name].type for name in names]


def _stitched_types(attributes: Attributes) -> list[int]:
    count = attributes["N"].i
    return [INT32] * count + [attributes["T"].type] * count


Compute: TypeAlias = Callable[..., Sequence[Tensor]]
TypesOf: TypeAlias = Callable[[Attributes], list[int]]

COMPOSED: Mapping[str, tuple[Compute, TypesOf]] = {
    "BroadcastGradientArgs": (_broadcast_gradient_args, _types("T", "T")),
    "DynamicStitch": (_dynamic_stitch, _stitched_types),
    "EluGrad": (_elu_grad, _types("T", "T")),
    "Relu6Grad": (_relu6_grad, _types("T", "T")),
    "ReluGrad": (_relu_grad, _types("T", "T")),
    "SoftmaxCrossEntropyWithLogits": (_cross_entropy, _types("T", "T")),
    "SparseSoftmaxCrossEntropyWithLogits": (_sparse_cross_entropy, _types("T", "Tlabels")),
}
"""For each operation, the function that computes it with other operations, and a function from its
attributes to the element types of its inputs."""
