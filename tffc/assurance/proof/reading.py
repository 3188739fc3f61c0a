"""Reading of compiled sections: their graphs, bindings and initializations."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Set

from tffc.assurance.proof import loading
from tffc.assurance.proof.attributes import number
from tffc.assurance.proof.constants import STRING
from tffc.assurance.proof.contents import is_general
from tffc.assurance.proof.fields import is_shape, is_type, remainder
from tffc.assurance.proof.graph import (
    DATASETS,
    Arguments,
    Library,
    Node,
    Plan,
    Reader,
    source_of,
)
from tffc.assurance.proof.loading import malformed
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.body import Body, Edge, body_of_graph, graph_edge, outputs_of
from tffc.graphs.reading import read_graph
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    read_tensorflow,
    write_tensorflow,
)
from tffc.support.errors import GraphError


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A TensorFlow section that has been read.

    `first` initializes it, and then `main` computes the results.  `within` does both in one run,
    for a section whose initialization depends on its argument, or that is called for each element
    of a sequence.  `beside` is the step of `within` that initializes it, if no result waits for it.
    `repeated` are the steps of `within` that the initialization and then the results need, which
    are done twice.  Nothing depends on the nodes in `unused`.
    """

    library: Library
    main: Plan
    first: Plan | None
    within: Plan
    beside: int | None
    repeated: tuple[int, ...]
    has_token: bool
    unused: Set[str]


def read_section(section: Compiled, reader: Reader, *, is_of_program: bool) -> Section:
    """Return a section, read and checked.

    Raises:
      Undecided: it has what no rule covers, or what TensorFlow does not load.
    """
    kind = section.type
    assert isinstance(kind, FunctionType)
    content = read_tensorflow(section.payload)
    if write_tensorflow(content) != section.payload:
        raise Undecided("a section with unknown fields")
    if content.cache_key is not None and not is_of_program:
        raise Undecided("a component with a key under which graphs are kept")
    try:
        graph = read_graph(content.graph_def)
    except GraphError as error:
        malformed(error.message)
    loading.check_graph(graph)
    library = Library(graph.library, is_of_program=is_of_program)
    nodes = {node.name: node for node in map(Node, graph.node)}
    body = body_of_graph(nodes, results=_bound(content.result, kind.result))
    arguments = _arguments(content, kind.parameter, nodes, strictly=not is_of_program)
    token = content.session_token_tensor_name
    kinds = [] if kind.parameter is None else leaves(kind.parameter)
    plan = functools.partial(
        reader.plan,
        arguments=arguments,
        results=body.results,
        library=library,
        types=[*map(number, kinds), STRING],
    )
    main = plan(body)
    used = main.names.union(argument for argument in arguments if isinstance(argument, str))
    init = content.initialize_op.removeprefix("^")
    if not init:
        unused = nodes.keys() - used
        return Section(library, main, None, main, None, (), bool(token), unused)
    before = reader.needed(body, arguments, init, library)
    within = plan(_waiting(body, arguments, before, init), others=[init])
    places = {step.name: place for place, step in enumerate(within.steps)}
    beside = places.get(init)
    sources = (
        source_of(edge) for name in before for edge in _edges(body, name) if edge in arguments
    )
    first = None
    if all(token and name == graph_edge(token).node for name in sources):
        first = reader.plan(body, {}, [], library, [init])
    unused = nodes.keys() - used - before
    beside = None if beside is not None and beside < within.extra else beside
    again = tuple(places[name] for name in main.names if name in before)
    return Section(library, main, first, within, beside, again, bool(token), unused)


TOKEN = TensorType(DType.STRING)
"""The type of session tokens."""


def _arguments(
    content: TensorFlowSection, kind: Type | None, nodes: Mapping[str, Node], *, strictly: bool
) -> dict[Edge | str, int]:
    """Return the edges from the parameter, and their nodes, with the numbers of its leaves;
    the session token, if there is one, comes after them.  See `_check_fed` for `strictly`."""
    tensors = [] if content.parameter is None else _bound(content.parameter, kind)
    kinds = [] if kind is None else leaves(kind)
    if len(kinds) != len(tensors) or (content.parameter is None) != (kind is None):
        malformed("it does not bind its parameter")
    if content.session_token_tensor_name:
        tensors.append(content.session_token_tensor_name)
    arguments: dict[Edge | str, int] = {}
    for index, (tensor, leaf) in enumerate(zip(tensors, [*kinds, TOKEN], strict=False)):
        edge = graph_edge(tensor)
        _check_fed(nodes.get(edge.node), edge.port, leaf, strictly=strictly)
        if edge in arguments:
            malformed("one tensor is two parameters")
        arguments[edge] = index
        arguments.setdefault(edge.node, index)
    return arguments


def _check_fed(node: Node | None, port: int, kind: Type, *, strictly: bool) -> None:
    """Check that a tensor bound to a parameter exists, and has its element type and shape.

    In a form, it must be a placeholder with nothing else.
    """
    outputs = None if node is None else outputs_of(node, {})
    if node is None or outputs is None:
        malformed("it does not have its parameter")
    if not 0 <= port < len(outputs) or outputs[port][2] != number(kind):
        malformed("its parameter is of another type")
    is_placeholder = node.op == "Placeholder"
    if is_placeholder and "shape" in node.attr:
        shape = kind.shape if isinstance(kind, TensorType) else ()
        promised = node.attr["shape"].shape
        if not is_general(promised, shape) and not is_general(promised, None):
            malformed("its parameter is of another shape")
    if strictly and not (
        is_placeholder
        and not node.input
        and not remainder(node.message)
        and node.device in ("", DATASETS)
        and sorted(node.attr) == ["dtype", "shape"]
        and is_type(node.attr["dtype"])
        and is_shape(node.attr["shape"])
    ):
        raise Undecided("a parameter that is not a placeholder", f"the node {node.name!r}")


def _edges(body: Body, name: str) -> tuple[Edge | str, ...]:
    return (*body.inputs[name], *body.controls[name])


def _waiting(body: Body, arguments: Arguments, before: set[str], init: str) -> Body:
    """Return a graph that is initialized within its run.

    Except nodes without inputs, all nodes that initialization does not depend on wait for it,
    directly or through an input.
    """
    early = before.union(name for name in body.nodes if not _edges(body, name))
    waiting = dict(body.controls)
    for name in body.nodes.keys() - early:
        edges = _edges(body, name)
        if all(edge in arguments or source_of(edge) in early for edge in edges):
            waiting[name] = (*waiting[name], init)
    return body._replace(controls=waiting)


def places_of(root: SectionBinding, kind: Type | None) -> list[int]:
    """Return the indices of a binding's tensors in the module; they must be 0, 1, 2 and so on in
    any order, and the structure must be that of the type."""
    places: list[int] = []
    for pair in _leaf_bindings(root, kind):
        match pair:
            case TensorBinding(int() as index), TensorType():
                places.append(index)
            case _:
                malformed("an XLA module is bound otherwise than its type")
    if sorted(places) != list(range(len(places))):
        malformed("an XLA module is bound otherwise than its type")
    return places


def ordered(places: list[int]) -> list[int]:
    """Return the inverse of a permutation."""
    return sorted(range(len(places)), key=places.__getitem__)


def _bound(root: SectionBinding, kind: Type | None) -> list[str]:
    """Return the tensors of a binding, whose structure must be that of the type."""
    tensors: list[str] = []
    for pair in _leaf_bindings(root, kind):
        match pair:
            case TensorBinding(str() as name), TensorType():
                tensors.append(name)
            case SequenceBinding(variant=name), SequenceType():
                tensors.append(name)
            case _, expected:
                malformed(f"it does not bind a `{expected}`")
    return tensors


def _leaf_bindings(
    root: SectionBinding, kind: Type | None
) -> Iterator[tuple[SectionBinding, Type | None]]:
    """Yield the parts of a binding in order, each with the type that it must bind; structs are
    parts only where they do not fit the type."""
    stack: list[tuple[SectionBinding, Type | None]] = [(root, kind)]
    while stack:
        binding, expected = stack.pop()
        match binding, expected:
            case StructBinding(), StructType() if len(binding.elements) == len(expected):
                stack.extend(zip(reversed(binding.elements), reversed(expected.types), strict=True))
            case _:
                yield binding, expected
