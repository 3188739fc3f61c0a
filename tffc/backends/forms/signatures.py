"""Checks of the types of programs that several forms share.

A refusal points at the binding that makes the wrong result, or else at the program's definition.
"""

from __future__ import annotations

from tffc.language.assignability import difference_notes
from tffc.language.nodes import Block, Lambda, Node, Reference, Selection, StructNode
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    Type,
)
from tffc.support.errors import FormError, Span

ROUND = "(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)"


def check_state(program: Node) -> Type:
    """Check the type of a round that updates its state, except its output, and return the output's
    type.

    Raises:
      FormError: the program is not such a round, naming the first part of its type that differs.
    """
    result = check_parameters(program, ROUND).result
    if not isinstance(result, StructType) or len(result) != 2:
        rule = "a round returns two values, the new server state and the server output"
        help = "return both; an empty struct stands for no output"
        if isinstance(result, StructType) and len(result) > 2:
            help = "return two: the state, and a struct of all the rest as the output"
            if len(result) == 3 and is_placed(result[1], CLIENTS):
                help = "take the form client-state, in which clients have states of their own"
        raise wrong_signature(rule, program, ROUND, help, at=())
    check_new_state(program, ROUND)
    return result[1]


def check_new_state(program: Node, expected: str) -> None:
    """Check that the first value that a round gives can be the state of the next round.

    Raises:
      FormError: it cannot; `expected` is the type that the form needs.
    """
    signature = program.type
    assert isinstance(signature, FunctionType)
    assert isinstance(signature.parameter, StructType)
    assert isinstance(signature.result, StructType)
    new_state = signature.result[0]
    if not is_placed(new_state, SERVER):
        rule = "the new state of a round is placed at the server"
        raise wrong_signature(rule, program, expected, at=(0,))
    state, new_state = local_type(signature.parameter.types[0]), local_type(new_state)
    check_next_state(
        "a round", state, new_state, place_of_result(program, 0) or _definition(program)
    )


def check_next_state(owner: str, state: Type, new_state: Type, span: Span | None) -> None:
    """Check that a new state of an owner can follow the state before it.

    Raises:
      FormError: it is of another type.
    """
    if not state.is_assignable_from(new_state):
        raise FormError(
            "E495",
            f"the new state of {owner} is of type `{new_state}`, the state before it of type "
            f"`{state}`",
            notes=difference_notes(state, new_state),
            help="the new state goes into the next round: give it the type and the names that the "
            "state has",
            span=span,
        )


def check_output(program: Node, output: Type, expected: str, index: int) -> None:
    """Check that the output of a round, an element of its result, is placed at the server.

    Raises:
      FormError: it is not; `expected` is the type that the form needs.
    """
    if not is_placed(output, SERVER):
        raise wrong_signature(
            "the output of a round is placed at the server",
            program,
            expected,
            "aggregate what is at the clients, and place what is nowhere with tff.federated_value",
            at=(index,),
        )


def check_parameters(program: Node, expected: str) -> FunctionType:
    """Check that a program takes a state at the server and data at the clients; return its type.

    Raises:
      FormError: it does not; `expected` is the type that the form needs.
    """
    type = program.type
    if not isinstance(type, FunctionType):
        raise wrong_signature("a round is a function", program, expected)
    parameter = type.parameter
    if not isinstance(parameter, StructType) or len(parameter) != 2:
        raise wrong_signature(
            "a round takes two arguments, the server state and the clients' data",
            program,
            expected,
            "join several server values in a struct; the clients' data may be several arguments, "
            "and alone, if there is no state",
        )
    ordinals = ("first", "second")
    for ordinal, element, placement in zip(ordinals, parameter, (SERVER, CLIENTS), strict=True):
        if not is_placed(element, placement):
            place = str(placement).lower()
            rule = f"the {ordinal} argument of a round is placed at the {place}"
            help = "the server state comes first, the clients' data second"
            raise wrong_signature(rule, program, expected, help)
    return type


def wrong_signature(
    rule: str,
    program: Node,
    expected: str,
    help: str | None = None,
    at: tuple[int, ...] | None = None,
) -> FormError:
    """Return the refusal of a program that breaks a rule about the type of a round; `at` leads to
    the part of the result that breaks it."""
    span = None if at is None else place_of_result(program, *at)
    return FormError(
        "E510",
        f"{rule}; found `{program.type}`",
        notes=(f"expected `{expected}`",),
        help=help,
        span=span or _definition(program),
    )


def _definition(program: Node) -> Span | None:
    return program.span if isinstance(program, Lambda) else None


def place_of_result(program: Node, *path: int) -> Span | None:
    """Return where the program makes its result, or an element of it; None if that is not known."""
    node = program.result if isinstance(program, Lambda) else program
    places: dict[str, Span | None] = {}
    while isinstance(node, Block):
        places.update((binding.name, binding.span) for binding in node.locals)
        node = node.result
    for index in path:
        node = node.values[index] if isinstance(node, StructNode) else node
    while isinstance(node, Selection):
        node = node.source
    return places.get(node.name) if isinstance(node, Reference) else None


def is_placed(type: Type, placement: Placement) -> bool:
    """Return whether every leaf of `found` is federated at `placement`."""
    return all(
        isinstance(leaf, FederatedType) and leaf.placement is placement
        for leaf in distinct_leaves(type)
    )
