"""Programs of any type that aggregate once, taken apart as rounds of MergeableForm are.

up_to_merge  (T -> U@SERVER)        runs once for each group of clients
merge        (<U,U> -> U)           joins the results of two groups
after_merge  (<T,U@SERVER> -> R)    finishes; (U@SERVER -> R) without T
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tffc.backends.forms.mergeable import MergeableForm
from tffc.backends.forms.mergeable_parts import (
    ARGUMENT,
    MERGED,
    ComponentParts,
    MergeableBuilder,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.stages import assign_stages
from tffc.language.alpha import Names
from tffc.language.calls import pack
from tffc.language.nodes import Binding, Block, Call, Lambda, Node, Reference, Selection, StructNode
from tffc.language.traverse import contains
from tffc.language.types import CLIENTS, FederatedType, FunctionType, StructType, Type
from tffc.language.verify import verify
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError
from tffc.support.trampoline import Task, run


def compile_mergeable(program: Node, *, allow_impure_duplicates: bool = False) -> ComponentParts:
    """Return the three programs of a program.

    Raises:
      FormError: it is no function, takes functions, aggregates what depends on an aggregation, or
        would run several times what does not always give the same.
      TffcError: an aggregation cannot be merged, or the program is malformed.
    """
    kind = program.type
    takes = kind.parameter if isinstance(kind, FunctionType) else None
    if not isinstance(kind, FunctionType) or (takes and contains(takes, FunctionType)):
        raise FormError(
            "E510",
            f"only a function of values can be divided into groups of clients; found `{kind}`",
            help="give what tff.federated_computation returns",
        )
    verify(program)
    flat = default_pipeline().run(_by_halves(program, kind))
    purity = None if allow_impure_duplicates else Purity(MergeableForm)
    parts = MergeableBuilder(assign_stages(flat), purity).parts()
    return ComponentParts(
        _flattened(_up_to_merge(parts.up_to_merge, kind.parameter)),
        parts.merge,
        _flattened(_after_merge(parts, kind.parameter)),
    )


def _by_halves(program: Node, kind: FunctionType) -> Lambda:
    """Return a program as one that takes two values, as rounds do: what is at the clients, and all
    the rest before that."""
    names = Names.outside(program)
    leaves = [] if kind.parameter is None else list(_leaves(kind.parameter))
    halves = [[type for type in leaves if _is_at_clients(type) is half] for half in (False, True)]
    argument = Reference(names.fresh("halves"), StructType(map(StructType, halves)))
    if kind.parameter is None:
        return Lambda(argument.name, argument.type, Call(program))
    taken = [
        iter([Selection(Selection(argument, half), i) for i in range(len(halves[half]))])
        for half in (0, 1)
    ]
    whole = run(_rebuilt(kind.parameter, lambda type: next(taken[_is_at_clients(type)])))
    if isinstance(program, Lambda) and program.parameter_name is not None:
        bound = Binding(program.parameter_name, whole, program.span)
        return Lambda(argument.name, argument.type, Block((bound,), program.result), program.span)
    return Lambda(argument.name, argument.type, Call(program, whole))


def _halves(value: Node) -> Node:
    """Return an argument of a program as the two values."""
    parts = list(_parts(value))
    return pack(
        pack(part for part in parts if _is_at_clients(part.type) is half) for half in (False, True)
    )


def _up_to_merge(part: Lambda, parameter: Type | None) -> Lambda:
    if parameter is None:
        return Lambda(None, None, Call(part, pack((pack(()), pack(())))))
    argument = Reference(Names.outside(part).fresh("arg"), parameter)
    return Lambda(argument.name, parameter, Call(part, _halves(argument)))


def _after_merge(parts: ComponentParts, parameter: Type | None) -> Lambda:
    part, partial = parts.after_merge, parts.up_to_merge.type.result
    name = Names.outside(part).fresh("arg")
    if parameter is None:
        merged = Reference(name, partial)
        return Lambda(name, partial, Call(part, pack((pack((pack(()), pack(()))), merged))))
    argument = Reference(name, StructType([(ARGUMENT, parameter), (MERGED, partial)]))
    pair = pack((_halves(Selection(argument, 0)), Selection(argument, 1)))
    return Lambda(name, argument.type, Call(part, pair))


def _flattened(part: Lambda) -> Lambda:
    flat = default_pipeline().run(part)
    assert isinstance(flat, Lambda)
    return flat


def _is_at_clients(type: Type) -> bool:
    return isinstance(type, FederatedType) and type.placement is CLIENTS


def _leaves(type: Type) -> Iterator[Type]:
    stack = [type]
    while stack:
        part = stack.pop()
        if isinstance(part, StructType):
            stack.extend(reversed(part.types))
        else:
            yield part


def _parts(value: Node) -> Iterator[Node]:
    """Yield the leaves of a value, as selections."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part.type, StructType):
            stack.extend(Selection(part, i) for i in reversed(range(len(part.type))))
        else:
            yield part


def _rebuilt(type: Type, leaf: Callable[[Type], Node]) -> Task[Node]:
    """Return a value of a type, whose leaves `leaf` gives in order."""
    if not isinstance(type, StructType):
        return leaf(type)
    values: list[Node] = []
    for part in type.types:
        values.append((yield _rebuilt(part, leaf)))
    return StructNode(tuple(values), type.names)
