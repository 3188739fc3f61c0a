"""Sequences whose elements are computed once, although more than one iteration follows.

The dataset behind such a sequence is cached in memory, and one pass over the cache fills it before
anything else reads it:

    dataset -> CacheDatasetV2 -> Identity -> all users
                      |             ^
                      `-> ReduceDataset (the pass, for which the Identity waits)

The cache is new in each run of the graph.  A pass over a dataset without end would not come back,
so the graph checks before that the dataset has one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from tffc.graphs.functions import NAME_LENGTH, Function
from tffc.graphs.node import GraphNode, encoded, hash_of, source
from tffc.graphs.operations.iterations import INFINITE, ONE_BY_ONE, WITHOUT_END
from tffc.graphs.proto import AttrValue, FunctionDef, NameAttrList, NodeDef, OpDef
from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.types import SequenceType, TensorType
from tffc.linking.attributes import (
    array_attribute,
    filled_attribute,
    shapes_attribute,
    type_attribute,
    type_number,
    types_attribute,
)
from tffc.linking.operand import Tensor, in_component_order, leaf_types
from tffc.support.errors import GraphError

NUMBER = TensorType(DType.INT64)
FUNCTION_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})

User: TypeAlias = tuple[GraphNode, int]
"""A node and the position of one of its inputs."""

Users: TypeAlias = dict[str, list[tuple[NodeDef | None, int]]]
"""The users of each node and argument of a function, as above; None is the result."""


class Iterations:
    """The iterations over datasets in a graph of these nodes and functions."""

    def __init__(self, nodes: Iterable[GraphNode], functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._bodies: dict[str, tuple[FunctionDef, Users]] = {}
        self._producers: dict[str, int | None] = {}
        self._users: defaultdict[str, list[User]] = defaultdict(list)
        for node in nodes:
            for position, edge in enumerate(node.inputs):
                if edge[0] != "^":
                    self._users[edge].append((node, position))

    def add_producer(self, edge: str, call: int | None) -> None:
        """Note that an edge holds a sequence that a call of a section returns; None is the call of
        an operator."""
        self._producers[edge] = call

    def users_outside(self, edge: str) -> list[User]:
        """Return the users of a sequence, without those in the section that returns it."""
        return [user for user in self._users[edge] if self._is_outside(user, edge)]

    def _is_outside(self, user: User, edge: str) -> bool:
        call = self._producers[edge]
        return call is None or user[0].call != call

    def move(self, users: Iterable[User], edge: str) -> None:
        """Have users read another edge."""
        for node, position in users:
            self._users[node.inputs[position]].remove((node, position))
            node.inputs[position] = edge
            self._users[edge].append((node, position))

    def at_most_once(self, users: list[User]) -> bool:
        """Tell whether these users of one dataset iterate over it no more than once."""
        while users:
            if len(users) > 1:
                return False
            ((node, position),) = users
            if node.op in FUNCTION_CALLS and len(node.functions) == 1:
                return self._at_most_once_in(node.functions[0], position)
            if node.op == "ReduceDataset" or position or node.op not in ONE_BY_ONE:
                return node.op == "ReduceDataset" and not position
            users = self._users[node.name]
            if node.name in self._producers:
                inside = [user for user in users if not self._is_outside(user, node.name)]
                # If there are only users outside, its elements are computed once for all.
                if not inside or len(inside) == len(users):
                    users = inside
        return True

    def _at_most_once_in(self, name: str, position: int) -> bool:
        """Tell whether a function iterates over an argument no more than once, and does not return
        what it makes of it."""
        entered: set[tuple[str, int]] = set()
        while (name, position) not in entered:
            entered.add((name, position))
            function, users_of = self._body(name)
            value = function.signature.input_arg[position].name
            while True:
                users = users_of.get(value, [])
                if len(users) != 1:
                    return not users
                ((node, position),) = users
                if node is None:
                    return False
                if node.op in FUNCTION_CALLS:
                    break
                if node.op == "ReduceDataset" or position or node.op not in ONE_BY_ONE:
                    return node.op == "ReduceDataset" and not position
                value = node.name
            name = node.attr["f"].func.name
            if name not in self._functions:
                return False
        return False

    def _body(self, name: str) -> tuple[FunctionDef, Users]:
        """Return a function, and the users of what is in it."""
        if name not in self._bodies:
            function = FunctionDef.FromString(self._functions[name].content)
            users: defaultdict[str, list[tuple[NodeDef | None, int]]] = defaultdict(list)
            for node in function.node_def:
                for position, edge in enumerate(node.input):
                    if edge[0] != "^":
                        users[source(edge)].append((node, position))
            for edge in function.ret.values():
                users[source(edge)].append((None, 0))
            self._bodies[name] = function, users
        return self._bodies[name]


def check_end(nodes: Mapping[str, GraphNode], dataset: Tensor) -> None:
    """Check that a dataset, whose elements have to be computed once, is not seen to go on for ever.

    Raises:
      GraphError: it is.
    """
    name = dataset.node
    while name in nodes:
        node = nodes[name]
        if node.op == "RepeatDataset" and _repeats_for_ever(nodes, node):
            raise GraphError(
                "E396",
                "a sequence without end, whose elements differ in each iteration, is iterated over "
                "more than once",
                notes=("the elements of a sequence are computed once, and kept",),
                help="take a part of it in the computation that returns it",
            )
        if node.op != "RepeatDataset" and node.op not in ONE_BY_ONE - CUTTING:
            return
        name = source(node.inputs[0])


CUTTING = frozenset({"FilterDataset", "FlatMapDataset", "TakeDataset", "TakeWhileDataset"})
"""Operations that may end before their input does, or never come to the next element."""


def _repeats_for_ever(nodes: Mapping[str, GraphNode], node: GraphNode) -> bool:
    count = nodes.get(source(node.inputs[1]))
    if count is None or count.op != "Const":
        return False
    value = count.rest.attr["value"].tensor
    if value.tensor_content:
        return int.from_bytes(value.tensor_content, "little", signed=True) < 0
    return bool(value.int64_val) and value.int64_val[0] < 0


def elements_once(
    add: Callable[..., list[Tensor]], dataset: Tensor, waits: Iterable[str] = ()
) -> Tensor:
    """Return a dataset of the same elements, which all iterations share.

    They are computed after the nodes in `waits`.  `add` adds a node, see `GraphBuilder.add`.
    """
    kind = dataset.type
    assert isinstance(kind, SequenceType)
    leaves = in_component_order(kind.element, leaf_types(kind.element))
    elements = {"output_shapes": shapes_attribute(leaves), "output_types": types_attribute(leaves)}
    text, flag = TensorType(DType.STRING), TensorType(DType.BOOL)

    def constant(type: TensorType, value: AttrValue) -> Tensor:
        return add("Const", [], {"dtype": type_attribute(type), "value": value}, [type])[0]

    def string(content: bytes) -> Tensor:
        return constant(text, array_attribute(Array(DType.STRING, (), (content,))))

    def number(content: int) -> Tensor:
        return constant(NUMBER, filled_attribute(NUMBER, content))

    (memory,) = add("DummyMemoryCache", [], {}, [flag])
    (cache,) = add("CacheDatasetV2", [dataset, string(b""), memory], elements, [kind])
    (length,) = add("DatasetCardinality", [cache], {}, [NUMBER])
    (ends,) = add("NotEqual", [length, number(INFINITE)], {"T": type_attribute(NUMBER)}, [flag])
    attributes = {"T": types_attribute([text])}
    (check,) = add("Assert", [ends, string(WITHOUT_END)], attributes, [text])
    function = _unchanged(leaves)
    attributes = {
        "Targuments": types_attribute([]),
        "Tstate": types_attribute([NUMBER]),
        "f": AttrValue(func=NameAttrList(name=function.name)),
        "output_shapes": shapes_attribute([NUMBER]),
        "output_types": types_attribute([NUMBER]),
        "use_inter_op_parallelism": AttrValue(b=True),
    }
    waiting = (Tensor(f"^{name}", text) for name in (check.node, *waits))
    inputs = [cache, number(0), *waiting]
    (whole,) = add("ReduceDataset", inputs, attributes, [NUMBER], [function])
    last = Tensor(f"^{whole.node}", text)
    return add("Identity", [cache, last], {"T": type_attribute(kind)}, [kind])[0]


def _unchanged(element: list[TensorType | SequenceType]) -> Function:
    """Return a function that returns its first argument, a number, and takes an element beside
    it."""
    function = FunctionDef()
    for index, kind in enumerate([NUMBER, *element]):
        name = f"argument_{index}"
        function.signature.input_arg.append(OpDef.ArgDef(name=name, type=type_number(kind)))
        shape = shapes_attribute([kind])
        function.arg_attr[index].attr["_output_shapes"].CopyFrom(shape)
    function.signature.output_arg.append(OpDef.ArgDef(name="result_0", type=type_number(NUMBER)))
    function.ret["result_0"] = "argument_0"
    name = f"f_{hash_of([encoded(function)]).hex()[:NAME_LENGTH]}"
    function.signature.name = name
    return Function(name, encoded(function), (), gradient="", remembers=False, varies=False)
