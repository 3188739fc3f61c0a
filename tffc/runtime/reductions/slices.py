"""Datasets of tensors' rows, repeated, cut and batched, as index arithmetic.

tf.data's overhead for each element, including the switch between threads, is longer than a client's
arithmetic on it.  If a dataset is made of tensors by operations that only select rows, the graph
gathers those rows itself.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tffc.graphs.node import control_edges
from tffc.graphs.operations.datasets import ARRANGED, BATCHED, UNCHANGED
from tffc.runtime.frameworks.tensorflow.load import Tensor, load_tensorflow

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef, NodeDef


Arrangement = tuple[str, int]


@dataclasses.dataclass(slots=True)
class Slices:
    """The way in which a dataset is made from the rows of some tensors.

    Rows are arranged, then divided into batches of `size` rows (unless it is 0), and the batches
    are arranged again.  `whole` says that a smaller batch at the end is dropped.
    """

    source: str
    rows: list[Arrangement] = dataclasses.field(default_factory=list[Arrangement])
    size: int = 0
    whole: bool = False
    batches: list[Arrangement] = dataclasses.field(default_factory=list[Arrangement])

    @property
    def variables(self) -> int:
        """The number of tensors that `order` returns."""
        return 3 if self.size else 2

    def order(self, column: Tensor) -> tuple[Tensor, ...]:
        """Return the first index, and the tensors that `element` looks positions up in.

        Without batches that is the row of each element.  With batches it is where each batch begins
        in the order of rows, and that order.  `column` is one of the tensors with the rows.
        """
        tf = load_tensorflow()
        rows = arranged(tf.range(tf.shape(column, tf.int64)[0]), self.rows, tf.tile)
        first = tf.constant(0, tf.int64)
        if not self.size:
            return first, rows
        # A batch begins at each position with enough rows after it: all of them, or at least one.
        room = self.size - 1 if self.whole else 0
        end = tf.maximum(tf.size(rows, tf.int64) - room, 0)
        begins = arranged(tf.range(0, end, self.size), self.batches, tf.tile)
        # As vectors of length one, which strided_slice takes without further conversion.
        return first, tf.expand_dims(begins, 1), rows

    def more(self, index: Tensor, begins: Tensor, *rows: Tensor) -> tuple[Tensor]:
        """Return whether there is an element at the index."""
        tf = load_tensorflow()
        return (index < tf.size(begins, tf.int64),)

    def element(self, index: Tensor, begins: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the next index, and the tensors of the element at this one."""
        tf = load_tensorflow()
        chosen, columns = tf.gather(begins, index), tensors
        if self.size:
            rows, *columns = tensors
            chosen = tf.strided_slice(rows, chosen, chosen + self.size, tf.constant([1], tf.int64))
        return index + 1, *(tf.gather(column, chosen) for column in columns)


def arranged(
    order: Tensor, arrangements: Sequence[Arrangement], tile: Callable[..., Tensor]
) -> Tensor:
    """Return a vector arranged; `tile` repeats it, as in NumPy and TensorFlow."""
    for operation, number in arrangements:
        if operation == "RepeatDataset":
            order = tile(order, [number])
        else:
            order = order[number:] if operation == "SkipDataset" else order[:number]
    return order


def find_slices(edge: str, nodes: Mapping[str, NodeDef], sources: Container[str]) -> Slices | None:
    """Return how the dataset at an edge is made from one of the sources; None if it is made
    otherwise."""
    operations: list[NodeDef] = []
    while (name := edge.removesuffix(":0")) not in sources:
        node = nodes.get(name)
        if node is None or not _is_known(node, nodes):
            return None
        operations.append(node)
        edge = node.input[0]
    # From the source on, in the order of the operations: after the batching they apply to batches.
    slices = Slices(name)
    for node in reversed(operations):
        if node.op == BATCHED:
            if slices.size:
                return None
            slices.size, slices.whole = (_constant(edge, nodes) for edge in node.input[1:])
        elif node.op in ARRANGED:
            arrangements = slices.batches if slices.size else slices.rows
            arrangements.append((node.op, _constant(node.input[1], nodes)))
    return slices


def _is_known(node: NodeDef, nodes: Mapping[str, NodeDef]) -> bool:
    if control_edges(node):
        return False
    if node.op in ARRANGED:
        number = _constant(node.input[1], nodes)
        return number is not None and number >= 0
    if node.op == BATCHED:
        size, whole = (_constant(edge, nodes) for edge in node.input[1:])
        return size is not None and size > 0 and whole is not None
    return node.op in UNCHANGED


def _constant(edge: str, nodes: Mapping[str, NodeDef]) -> Any:
    node = nodes.get(edge.removesuffix(":0"))
    if node is None or node.op != "Const":
        return None
    return load_tensorflow().make_ndarray(node.attr["value"].tensor).item()


def make_function(
    name: str, types: Sequence[int], compute: Callable[..., Iterable[Tensor]]
) -> FunctionDef:
    """Return the FunctionDef of `compute`, a Python function of tensors of these types."""
    tf = load_tensorflow()
    module = importlib.import_module("tensorflow.python.framework.graph_to_function_def")
    with tf.Graph().as_default() as graph:
        inputs = [tf.compat.v1.placeholder(type) for type in types]
        outputs = list(compute(*inputs))
    inner = [node for node in graph.get_operations() if node.type != "Placeholder"]
    function = module.graph_to_function_def(graph, inner, inputs, outputs)
    function.signature.name = name
    return function
