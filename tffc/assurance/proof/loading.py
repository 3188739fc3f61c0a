"""Checks that TensorFlow loads a graph.

What is left out of terms, such as names and versions, must be so that TensorFlow loads the graph;
what enters terms need not be checked, because the program has the same.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import NoReturn, Protocol

from tffc.assurance.proof.fields import PLACEMENT, Message, encoded, remainder
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.operations import op_table

COLOCATION = b"loc:@"
OLDEST_GRAPH = 100
"""TensorFlow treats graphs of all versions from this one on alike."""

OLDEST_TENSORFLOW = 1575
"""The version of graphs that TensorFlow 2.14 writes, the oldest for which tffc writes graphs."""

NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
"""The names of nodes in a graph; in functions they may begin with an underscore too."""

PADDED = re.compile(r":0[0-9]")
"""Matches in edges whose numbers have leading zeros."""

FUNCTION_NAME = re.compile(r"[A-Za-z_][^\s:^@#]*")


def malformed(detail: str) -> NoReturn:
    """Refuse a graph that TensorFlow does not load."""
    raise Undecided("a malformed graph", detail)


def check_graph(graph: Message) -> None:
    """Check the fields of a graph besides its nodes and functions, and the names of its nodes."""
    if remainder(graph) or remainder(graph.versions):
        raise Undecided("a graph with unknown fields")
    versions = graph.versions
    if versions.producer < OLDEST_GRAPH:
        raise Undecided("a graph of an old version", f"version {versions.producer}")
    if versions.min_consumer > OLDEST_TENSORFLOW or any(
        version >= OLDEST_TENSORFLOW for version in versions.bad_consumers
    ):
        malformed("TensorFlow is not among the versions that it says may read it")
    for node in graph.node:
        if not NODE_NAME.fullmatch(node.name):
            malformed(f"a node is named {node.name!r}")
    check_once((node.name for node in graph.node), "nodes")


def check_once(names: Iterable[str], what: str) -> None:
    """Check that no two things have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            malformed(f"two {what} have one name, {name!r}")
        seen.add(name)


def check_inputs(node: Message) -> None:
    """Check that the inputs of a node come before what it waits for."""
    waits = False
    for edge in node.input:
        if edge.startswith("^"):
            waits = True
            if ":" in edge:
                malformed(f"an input is {edge!r}")
        elif PADDED.search(edge):
            malformed(f"an input is {edge!r}")
        elif waits:
            malformed(f"the node {node.name!r} has an input after what it waits for")


class Placed(Protocol):
    """A node of a graph; of nodes, only the device is looked at."""

    @property
    def device(self) -> str:
        """The device, or an empty text."""
        ...


def missing_neighbours(
    node: Message, nodes: Mapping[str, Placed], arguments: Container[str]
) -> tuple[bytes, ...]:
    """Return the names of nodes beside which a node must be placed that do not exist.

    Those that exist must have the same device; arguments, which may be among them in a function,
    have none.
    """
    if PLACEMENT not in node.attr:
        return ()
    value = node.attr[PLACEMENT]
    alone = type(value)()
    alone.list.s.extend(value.list.s)
    if encoded(alone) != encoded(value):
        raise Undecided("a placement that is not a list of nodes", f"at the node {node.name!r}")
    missing: list[bytes] = []
    for text in value.list.s:
        beside = text.removeprefix(COLOCATION).decode(errors="replace")
        if not text.startswith(COLOCATION) or not (beside in nodes or beside in arguments):
            missing.append(text)
        elif node.device != (nodes[beside].device if beside in nodes else ""):
            raise Undecided("nodes of several devices in one place", f"at the node {node.name!r}")
    return tuple(missing)


def check_library(library: Message, *, is_of_program: bool) -> None:
    """Check the names in a library, and its gradients."""
    if remainder(library) or any(map(remainder, library.gradient)):
        raise Undecided("a graph with unknown fields")
    if library.registered_gradients and not is_of_program:
        raise Undecided("gradients that Python registers")
    names = [function.signature.name for function in library.function]
    check_once(names, "functions")
    known = set(names)
    for name in names:
        if not FUNCTION_NAME.fullmatch(name) or op_table.find(name) is not None:
            malformed(f"a function is named {name!r}")
    check_once((gradient.function_name for gradient in library.gradient), "gradients")
    for gradient in library.gradient:
        if not {gradient.function_name, gradient.gradient_func} <= known:
            malformed(f"its library does not have {gradient.gradient_func!r}")


def check_function(function: Message) -> None:
    """Check the names in a function, and that it takes and returns single tensors."""
    signature = function.signature
    arguments = [argument.name for argument in signature.input_arg]
    check_once([*arguments, *(node.name for node in function.node_def)], "nodes")
    outputs = [output.name for output in signature.output_arg]
    check_once(outputs, "results")
    if sorted(outputs) != sorted(function.ret):
        malformed(f"{signature.name!r} does not return its results")
    check_once(signature.control_output, "results")
    if sorted(signature.control_output) != sorted(function.control_ret):
        malformed(f"{signature.name!r} does not return its results")
    for declared in (*signature.input_arg, *signature.output_arg):
        several = declared.type_attr or declared.number_attr or declared.type_list_attr
        if several or declared.is_ref:
            raise Undecided("a function of several types", signature.name)
    for index in (*function.arg_attr, *function.resource_arg_unique_id):
        if index >= len(arguments):
            malformed(f"{signature.name!r} does not have the argument {index}")
