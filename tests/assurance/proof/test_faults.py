"""Faults planted in compiled rounds: the prover calls none of them proved."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.assurance.proof.edits import Draft, swap_parameters, swap_results
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.graphs.proto import FunctionDef, NodeDef
from tffc.language import Compiled, Intrinsic, Literal, Node, StructNode, to_array
from tffc.language.traverse import rewrite, walk

Parts = dict[str, Any]
Fault = Callable[[Parts], Parts]


@functools.cache
def compiled(name: str, form: str) -> tuple[Node, Parts]:
    """A round of `rounds_to_break`, and the components of its form."""
    from tests.assurance.proof import rounds_to_break

    program = getattr(rounds_to_break, name).node
    return program, dict(compile_form(program, form).components())


def answer(name: str, form: str, fault: Fault) -> Answer:
    program, parts = compiled(name, form)
    broken = fault(dict(parts))
    assert broken != parts
    return prove(program, form, broken).answer


def within(component: str, edit: Callable[[Any, dict[str, Any]], Any]) -> Fault:
    """An edit of the graph of a component, which gets the nodes whose names have a prefix."""

    def fault(parts: Parts) -> Parts:
        draft = Draft(parts[component], random.Random(0))
        nodes = {node.name: node for body in draft.bodies() for node in body}
        changes = edit(draft.graph, nodes) or {}
        return {**parts, component: draft.finish(**changes)}

    return fault


def by(edit: Callable[[Draft], Compiled | None], component: str) -> Fault:
    """One of the edits, in a component."""

    def fault(parts: Parts) -> Parts:
        made = edit(Draft(parts[component], random.Random(0)))
        assert made is not None
        return {**parts, component: made}

    return fault


def of(nodes: dict[str, Any], op: str, index: int = 0) -> Any:
    return [node for node in nodes.values() if node.op == op][index]


def replaced(component: str, op: str, new: str, index: int = 0) -> Fault:
    """One operation is replaced by another."""

    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        of(nodes, op, index).op = new

    return within(component, edit)


def swapped_inputs(component: str, op: str, index: int = 0) -> Fault:
    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        node = of(nodes, op, index)
        node.input[0], node.input[1] = node.input[1], node.input[0]

    return within(component, edit)


def attribute(component: str, op: str, name: str, change: Callable[[Any], Any]) -> Fault:
    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        change(of(nodes, op).attr[name])

    return within(component, edit)


def bit(component: str, index: int = 0) -> Fault:
    """The lowest bit of a constant is flipped."""

    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        tensor = of(nodes, "Const", index).attr["value"].tensor
        if tensor.tensor_content:
            content = tensor.tensor_content
            tensor.tensor_content = bytes([content[0] ^ 1]) + content[1:]
        elif tensor.int_val:
            tensor.int_val[0] ^= 1
        else:
            tensor.float_val[0] = tensor.float_val[0] * (1 - 2.0**-20) - 2.0**-20

    return within(component, edit)


def exchanged(one: str, other: str) -> Fault:
    """Two components are exchanged."""
    return lambda parts: {**parts, one: parts[other], other: parts[one]}


def instead(component: str, other: str) -> Fault:
    return lambda parts: {**parts, component: parts[other]}


def no_control(component: str, op: str, index: int = 0) -> Fault:
    """A node no longer waits."""

    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        node = [n for n in nodes.values() if n.op == op and any(e[0] == "^" for e in n.input)][
            index
        ]
        node.input[:] = [edge for edge in node.input if not edge.startswith("^")]

    return within(component, edit)


def copied(component: str, op: str) -> Fault:
    """One reader of an operation reads a copy of it."""

    def edit(graph: Any, nodes: dict[str, Any]) -> None:
        node = of(nodes, op)
        readers = [n for n in graph.node if any(e.split(":")[0] == node.name for e in n.input)]
        copy = NodeDef()
        copy.CopyFrom(node)
        copy.name = "copy"
        reader = readers[-1]
        reader.input[:] = [
            e.replace(node.name, "copy", 1) if e.split(":")[0] == node.name else e
            for e in reader.input
        ]
        graph.node.append(copy)

    return within(component, edit)


def one_draw(graph: Any, nodes: dict[str, Any]) -> None:
    """Readers of one draw read another of the program."""
    drawn, other = of(nodes, "RandomUniform"), of(nodes, "RandomStandardNormal")
    for node in graph.node:
        node.input[:] = [drawn.name if edge == other.name else edge for edge in node.input]


def seeded(graph: Any, nodes: dict[str, Any]) -> None:
    of(nodes, "RandomUniform").attr["seed"].i = 7


def rewritten(component: str, rule: Callable[[Node], Node | None]) -> Fault:
    """A component that is a program is replaced by another."""
    return lambda parts: {**parts, component: rewrite(parts[component], rule)}


def operator(old: str, new: str) -> Callable[[Node], Node | None]:
    def rule(node: Node) -> Node | None:
        if isinstance(node, Intrinsic) and node.uri == old:
            return dataclasses.replace(node, uri=new)
        return None

    return rule


def last_two_swapped(parts: Parts) -> Parts:
    """The two last aggregates of the same kind and type are exchanged."""
    component: Any = parts["client_work"]
    *_, one, other = dict.fromkeys(component.result.result.values)
    exchange = {one: other, other: one}
    result = StructNode(tuple(exchange.get(v, v) for v in component.result.result.values))
    body = dataclasses.replace(component.result, result=result)
    return {**parts, "client_work": dataclasses.replace(component, result=body)}


def other_bound(node: Node) -> Node | None:
    if isinstance(node, Literal) and node.array == to_array(100):
        return Literal(to_array(101), node.type)
    return None


def first_returned(graph: Any, nodes: dict[str, Any]) -> None:
    """The function of a map returns its argument."""
    function = next(f for f in graph.library.function if any(n.op == "Mul" for n in f.node_def))
    function.ret[next(iter(function.ret))] = function.signature.input_arg[0].name


def one_variable(graph: Any, nodes: dict[str, Any]) -> None:
    first, second = [node for node in graph.node if node.op == "VarHandleOp"]
    for node in graph.node:
        node.input[:] = [first.name if edge == second.name else edge for edge in node.input]


def swapped_functions(graph: Any, nodes: dict[str, Any]) -> None:
    names = [f.signature.name for f in graph.library.function]
    node = of(nodes, "If" if any(n.op == "If" for n in nodes.values()) else "StatelessIf")
    then, other = node.attr["then_branch"].func, node.attr["else_branch"].func
    assert then.name in names
    then.name, other.name = other.name, then.name


def other_element(graph: Any, nodes: dict[str, Any]) -> None:
    """The function of a map computes something else."""
    function = next(f for f in graph.library.function if any(n.op == "Mul" for n in f.node_def))
    next(n for n in function.node_def if n.op == "Mul").op = "AddV2"


PLAIN: dict[str, Fault] = {
    "operands swapped": swapped_inputs("work", "Sub"),
    "operands of a quotient swapped": swapped_inputs("update", "RealDiv"),
    "another operation": replaced("work", "Mul", "AddV2"),
    "a minimum is a maximum": replaced("work", "Minimum", "Maximum"),
    "a constant off by one bit": bit("work"),
    "another constant off by one bit": bit("work", 3),
    "a constant of the server off by one bit": bit("prepare"),
    "a sum does not keep its dimensions": attribute(
        "work", "Sum", "keep_dims", lambda value: setattr(value, "b", True)
    ),
    "a cast truncates": attribute(
        "work", "Cast", "Truncate", lambda value: setattr(value, "b", not value.b)
    ),
    "a type's width": attribute("work", "Cast", "DstT", lambda value: setattr(value, "type", 9)),
    "channels exchanged": by(swap_results, "work"),
    "what a client holds exchanged with what it is sent": by(swap_parameters, "work"),
    "broadcasts exchanged": by(swap_results, "prepare"),
    "the zero of a minimum": bit("zero", 3),
    "the zero of a user's aggregation": bit("zero", 1),
    "zeros exchanged": by(swap_results, "zero"),
    "a sum takes the maximum": replaced("accumulate", "AddV2", "Maximum"),
    "a sum subtracts": replaced("accumulate", "AddV2", "Sub", 4),
    "operands of accumulate swapped": swapped_inputs("accumulate", "AddV2"),
    "a user's accumulate": replaced("accumulate", "Mul", "AddV2"),
    "accumulators exchanged": by(swap_results, "accumulate"),
    "a merge that is not accumulate's": replaced("merge", "Minimum", "Maximum"),
    "a merge of the user's that is another": replaced("merge", "AddV2", "Mul", 2),
    "a merge forgets one side": by(swap_parameters, "merge"),
    "merged exchanged": by(swap_results, "merge"),
    "a report of the user's": replaced("report", "Sub", "AddV2"),
    "reports exchanged": by(swap_results, "report"),
    "a bound of a secure sum": bit("secure_sum_bitwidth"),
    "bounds exchanged": exchanged("secure_sum_bitwidth", "secure_sum_max_input"),
    "outputs exchanged": by(swap_results, "update"),
    "aggregates exchanged": by(swap_parameters, "update"),
    "merge in the place of report": instead("report", "zero"),
    "a stale state": within(
        "update", lambda graph, nodes: setattr(of(nodes, "Sub"), "op", "AddV2")
    ),
}

DRAWN: dict[str, Fault] = {
    "a draw made twice": copied("work", "RandomUniform"),
    "a draw of another distribution": replaced("work", "RandomUniform", "RandomStandardNormal"),
    "one draw in the place of another": within("work", one_draw),
    "a draw with a seed": within("work", seeded),
    "a draw that is gone": within(
        "update",
        lambda graph, nodes: of(nodes, "AddV2").input.__setitem__(1, of(nodes, "AddV2").input[0]),
    ),
}

KEPT: dict[str, Fault] = {
    "an initializer lost": no_control("work", "NoOp"),
    "an assignment lost": no_control("work", "ReadVariableOp"),
    "another assignment lost": no_control("work", "ReadVariableOp", 1),
    "an assignment is another": replaced("work", "AssignAddVariableOp", "AssignSubVariableOp"),
    "a variable's first value": bit("work", 1),
    "two variables are one": within("work", one_variable),
    "a reduction done twice": copied("work", "ReduceDataset"),
    "a table's keys are its values": swapped_inputs("work", "LookupTableImportV2"),
    "a stale default": swapped_inputs("work", "LookupTableFindV2"),
    "the function of a map": within("work", other_element),
    "a function returns something else": within("work", first_returned),
    "branches exchanged": within("work", swapped_functions),
}

PROGRAMS: dict[str, Fault] = {
    "a sum is a maximum": rewritten(
        "client_to_server_aggregation", operator("federated_sum", "federated_max")
    ),
    "a minimum is a maximum": rewritten(
        "client_to_server_aggregation", operator("federated_min", "federated_max")
    ),
    "a mean is a sum": rewritten(
        "client_to_server_aggregation", operator("federated_mean", "federated_sum")
    ),
    "another secure sum": rewritten(
        "client_to_server_aggregation",
        operator("federated_secure_sum", "federated_secure_sum_bitwidth"),
    ),
    "contributions exchanged": last_two_swapped,
    "a bound": rewritten("client_to_server_aggregation", other_bound),
}


def of_section(component: str, edit: Callable[[Any], None]) -> Fault:
    """An edit of the graph of the first section in a component that is a program."""

    def fault(parts: Parts) -> Parts:
        sections = (node for node in walk(parts[component]) if isinstance(node, Compiled))
        section = next(sections)
        draft = Draft(section, random.Random(0))
        edit(draft.graph)
        made = draft.finish()
        return {
            **parts,
            component: rewrite(parts[component], lambda n: made if n == section else None),
        }

    return fault


def untyped(graph: Any, nodes: dict[str, Any]) -> None:
    """The constants of a count have no type."""
    for node in graph.node:
        if node.op == "Const" and node.attr["dtype"].type == 3:
            del node.attr["dtype"]


DROPPED: dict[str, Fault] = {
    "a value assigned in a function": bit("update", 3),
    "an unneeded zero that cannot be loaded": within("zero", untyped),
    "an unneeded sum that cannot be loaded": replaced("accumulate", "AddV2", "Nothing", 1),
    "an unneeded merge that cannot be loaded": replaced("merge", "AddV2", "Nothing", 1),
}

EMBEDDED: dict[str, Fault] = {
    "an unneeded node": of_section(
        "client_work", lambda graph: graph.node.append(NodeDef(name="none", op="Nothing"))
    ),
    "an unneeded function": of_section(
        "client_work", lambda graph: graph.library.function.append(FunctionDef())
    ),
}

TABLES = [
    ("statistics", "mapreduce", PLAIN),
    ("drawing", "mapreduce", DRAWN),
    ("keeping", "mapreduce", KEPT),
    ("dropping", "mapreduce", DROPPED),
    ("statistics", "distribute-aggregate", {**PROGRAMS, **EMBEDDED}),
]


@pytest.mark.parametrize(("name", "form", "table"), TABLES)
def test_proved_without_a_fault(name: str, form: str, table: dict[str, Fault]) -> None:
    program, parts = compiled(name, form)
    assert prove(program, form, parts).answer is Answer.PROVED


@pytest.mark.parametrize(
    ("name", "form", "fault"),
    [
        pytest.param(name, form, fault, id=f"{form}: {title}")
        for name, form, table in TABLES
        for title, fault in table.items()
    ],
)
def test_a_fault_is_not_proved(name: str, form: str, fault: Fault) -> None:
    assert answer(name, form, fault) is not Answer.PROVED


def test_there_are_enough() -> None:
    assert sum(len(table) for _, _, table in TABLES) >= 50
