"""Programs that mean a round without having its type: the one place where they are made one.

    a query                    (<{A}@CLIENTS,{B}@CLIENTS> -> X@SERVER)
    a round of several values  (<S@SERVER,{A}@CLIENTS,{B}@CLIENTS> -> <S@SERVER,X@SERVER>)

A query has no state, so its round has the empty one.  What a client holds is one value, a struct if
the program takes several.  The round is the program, with its parameter bound to the round's:

    (round_arg -> <round_arg.state,(let p=round_arg.data in ...)>)
"""

from __future__ import annotations

from tffc.backends.forms.kinds import is_round
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    Type,
    at_server,
)

ARGUMENT = "round_arg"


def as_round(program: Node, form: str | None = None) -> Node:
    """Return the round that a program is or means, for a form, or for any of tffc's own if none is
    named; the program itself if it means none."""
    if is_round(program, form):
        return program
    meant = _meant(program)
    return program if meant is None or not is_round(meant, form) else meant


def rank_as_round(program: Node, form: str | None = None) -> int:
    """Return 2 for a round, 1 for a program that means one, and 0 for any other; see `as_round`."""
    return 2 if is_round(program, form) else int(as_round(program, form) is not program)


def _meant(program: Node) -> Node | None:
    """Return a round made of a program by the types of its arguments, or None."""
    type = program.type
    # Sections do not communicate, and in a single operator there is nothing to be split.
    if isinstance(program, (Compiled, Intrinsic)) or not isinstance(type, FunctionType):
        return None
    parameter = type.parameter
    if isinstance(parameter, FederatedType):
        return _query(program, parameter) if _is_at(CLIENTS, parameter) else None
    if not isinstance(parameter, StructType) or not parameter.types:
        return None
    first, *others = parameter.types
    if not others or not all(_is_at(CLIENTS, other) for other in others):
        return None
    if _is_at(CLIENTS, first):
        return _query(program, parameter)
    return _round_of_several(program, parameter) if _is_at(SERVER, first) else None


def _is_at(placement: Placement, type: Type) -> bool:
    return isinstance(type, FederatedType) and type.placement is placement


def _query(program: Node, data: Type) -> Lambda:
    """Return the round without state of a program whose parameter is what the clients hold."""
    argument = Reference(ARGUMENT, StructType([("state", at_server(())), ("data", data)]))
    output = _applied(program, Selection(argument, 1))
    at_clients = isinstance(output.type, FederatedType) and _is_at(CLIENTS, output.type)
    result = output if at_clients else StructNode((Selection(argument, 0), output), (None, None))
    return _closed(program, argument, result)


def _round_of_several(program: Node, parameter: StructType) -> Lambda:
    """Return the round of a program that takes a state and several values of the clients."""
    data = StructType.of(parameter.names[1:], parameter.types[1:])
    argument = Reference(ARGUMENT, StructType([("state", parameter.types[0]), ("data", data)]))
    held = Selection(argument, 1)
    values = (Selection(argument, 0), *(Selection(held, index) for index in range(len(data))))
    return _closed(program, argument, _applied(program, StructNode(values, parameter.names)))


def _applied(program: Node, argument: Node) -> Node:
    """Return the result of a function for an argument."""
    if isinstance(program, Lambda) and program.parameter_name is not None:
        return Block((Binding(program.parameter_name, argument, program.span),), program.result)
    return Call(program, argument)


def _closed(program: Node, argument: Reference, result: Node) -> Lambda:
    span = program.span if isinstance(program, Lambda) else None
    return Lambda(argument.name, argument.type, result, span)
