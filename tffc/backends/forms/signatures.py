"""Whether a program has the type that a form needs.

A refusal points at what the program returns wrongly, where a binding makes that, and otherwise at
the program's definition.
"""

from __future__ import annotations

from tffc.errors import FormError, Span
from tffc.ir.assignability import difference_notes
from tffc.ir.nodes import Block, Lambda, Node, Reference, Selection, Struct
from tffc.ir.type_parts import distinct_leaves, local_type
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    SequenceType,
    StructType,
    TensorType,
    Type,
)

ROUND = "(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)"
BROADCAST_ROUND = "(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)"


def check_round_signature(program: Node) -> None:
    """Checks that a program is of a round's type `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.

    Raises:
      FormError: it is not, naming the first part of it that differs.
    """
    output = _check_state(program)
    if not is_placed(output, SERVER):
        raise _refusal(
            "the output of a round is placed at the server",
            program,
            ROUND,
            "aggregate what is at the clients, and place what is nowhere with tff.federated_value",
            _place_of_result(program, 1),
        )


def check_distribute_aggregate_signature(program: Node) -> None:
    """As `check_round_signature`; parts of the output that have no placement may go without one."""
    output = _check_state(program)
    unplaced = (TensorType, SequenceType)
    if any(
        not isinstance(t, unplaced) and not is_placed(t, SERVER) for t in distinct_leaves(output)
    ):
        raise _refusal(
            "the output of a round is not placed at the clients",
            program,
            ROUND,
            "aggregate what is at the clients",
            _place_of_result(program, 1),
        )


def check_broadcast_signature(program: Node) -> None:
    """Checks that a program is of the type `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.

    Raises:
      FormError: it is not, naming the first part of it that differs.
    """
    result = _check_parameters(program, BROADCAST_ROUND).result
    if not isinstance(result, FederatedType) or result.placement is not CLIENTS:
        raise _refusal(
            "the result is one value placed at the clients",
            program,
            BROADCAST_ROUND,
            "join several values with tff.federated_zip; a round that aggregates has another form",
            _place_of_result(program),
        )


def _check_state(program: Node) -> Type:
    """Checks all but the output of a round, and gives the type of that."""
    signature = _check_parameters(program, ROUND)
    assert isinstance(signature.parameter, StructType)
    result = signature.result
    if not isinstance(result, StructType) or len(result) != 2:
        raise _refusal(
            "a round returns two values, the new server state and the server output",
            program,
            ROUND,
            _two_results(result),
            _place_of_result(program),
        )
    new_state, output = result
    if not is_placed(new_state, SERVER):
        raise _refusal(
            "the new state of a round is placed at the server",
            program,
            ROUND,
            None,
            _place_of_result(program, 0),
        )
    state, new_state = local_type(signature.parameter.types[0]), local_type(new_state)
    if not state.is_assignable_from(new_state):
        raise FormError(
            "E513",
            f"the new state of a round is of type `{new_state}`, the state before it of type "
            f"`{state}`",
            notes=difference_notes(state, new_state),
            help="the new state goes into the next round: give it the type and the names that the "
            "state has",
            span=_place_of_result(program, 0) or _definition(program),
        )
    return output


def _check_parameters(program: Node, expected: str) -> FunctionType:
    found = program.type
    if not isinstance(found, FunctionType):
        raise _refusal("a round is a function", program, expected)
    parameter = found.parameter
    if not isinstance(parameter, StructType) or len(parameter) != 2:
        raise _refusal(
            "a round takes two arguments, the server state and the clients' data",
            program,
            expected,
            "join several values in a struct; a round without state takes an empty one, "
            "tff.types.at_server(())",
        )
    for ordinal, element, placement in zip(
        ("first", "second"), parameter, (SERVER, CLIENTS), strict=True
    ):
        if not is_placed(element, placement):
            place = "server" if placement is SERVER else "clients"
            raise _refusal(
                f"the {ordinal} argument of a round is placed at the {place}",
                program,
                expected,
                "the server state comes first, the clients' data second",
            )
    return found


def _two_results(result: Type) -> str:
    """What to return in the place of one value, or of more than two."""
    if isinstance(result, StructType) and len(result) > 2:
        return "return two: the state, and a struct of all the rest as the output"
    return "return both; an empty struct stands for no output"


def _refusal(
    rule: str, program: Node, expected: str, help: str | None = None, span: Span | None = None
) -> FormError:
    return FormError(
        "E510",
        f"{rule}; found `{program.type}`",
        notes=(f"expected `{expected}`",),
        help=help,
        span=span or _definition(program),
    )


def _definition(program: Node) -> Span | None:
    return program.span if isinstance(program, Lambda) else None


def _place_of_result(program: Node, *path: int) -> Span | None:
    """Where the program makes what it returns, or an element of that; None if it does not tell."""
    node = program.result if isinstance(program, Lambda) else program
    places: dict[str, Span | None] = {}
    while isinstance(node, Block):
        places.update((binding.name, binding.span) for binding in node.locals)
        node = node.result
    for index in path:
        node = node.values[index] if isinstance(node, Struct) else node
    while isinstance(node, Selection):
        node = node.source
    return places.get(node.name) if isinstance(node, Reference) else None


def is_placed(found: Type, placement: Placement) -> bool:
    """Whether every leaf of `found` is federated at `placement`."""
    return all(
        isinstance(leaf, FederatedType) and leaf.placement is placement
        for leaf in distinct_leaves(found)
    )
