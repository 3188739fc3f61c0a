"""The operators of the language: one table, by URI.

Each has a signature over type variables and says how it communicates: it broadcasts, it
aggregates, or it works where its operands are.  Signatures are parsed when they are first asked
for.
"""

from __future__ import annotations

import enum
import functools
from typing import NamedTuple

from tffc.language.notation.type_parser import parse_type
from tffc.language.types import AbstractType, FunctionType, StructType, Type
from tffc.support.errors import LanguageTypeError


class Communication(enum.Enum):
    """The ways in which operators move values between placements."""

    LOCAL = "local"
    BROADCAST = "broadcast"
    SECURE_BROADCAST = "secure broadcast"
    AGGREGATION = "aggregation"
    SECURE_AGGREGATION = "secure aggregation"


class IntrinsicDefinition(NamedTuple):
    """An operator: its URI, its signature in the notation of types and how it communicates."""

    uri: str
    text: str
    communication: Communication = Communication.LOCAL

    @property
    def signature(self) -> Type:
        """The type of the operator over type variables."""
        return _signature(self.text)

    @property
    def communicates(self) -> bool:
        return self.communication is not Communication.LOCAL

    @property
    def is_broadcast(self) -> bool:
        return self.communication in (Communication.BROADCAST, Communication.SECURE_BROADCAST)

    @property
    def is_aggregation(self) -> bool:
        return self.communication in (Communication.AGGREGATION, Communication.SECURE_AGGREGATION)

    @property
    def takes_one_operand(self) -> bool:
        """Whether the argument of a communicating operator is its one operand, not a struct."""
        return self.communicates and not self.text.startswith("(<")


@functools.cache
def _signature(text: str) -> Type:
    return parse_type(text, variables=VARIABLES)


VARIABLES = frozenset({"T", "U", "R", "V", "M", "B", "Ks"})
"""The type variables of signatures; see `check_instance`."""

AGGREGATE = "(<{T}@CLIENTS,U,(<U,T> -> U),(<U,U> -> U),(U -> R)> -> R@SERVER)"
REDUCE = "({T}@CLIENTS -> T@SERVER)"
SECURE_SUM = "(<{V}@CLIENTS,M> -> V@SERVER)"
SECURE_SUM_BITWIDTH = "(<{V}@CLIENTS,B> -> V@SERVER)"
SELECT = "(<{Ks}@CLIENTS,int32@SERVER,T@SERVER,(<T,int32> -> U)> -> {U*}@CLIENTS)"

INTRINSICS = {
    uri: IntrinsicDefinition(uri, text, communication)
    for communication, operators in {
        Communication.AGGREGATION: {
            "federated_aggregate": AGGREGATE,
            "federated_max": REDUCE,
            "federated_mean": REDUCE,
            "federated_min": REDUCE,
            "federated_sum": REDUCE,
            "federated_weighted_mean": "(<{T}@CLIENTS,{U}@CLIENTS> -> T@SERVER)",
        },
        Communication.SECURE_AGGREGATION: {
            "federated_secure_modular_sum": SECURE_SUM,
            "federated_secure_sum": SECURE_SUM,
            "federated_secure_sum_bitwidth": SECURE_SUM_BITWIDTH,
        },
        Communication.BROADCAST: {
            "federated_broadcast": "(T@SERVER -> T@CLIENTS)",
            "federated_select": SELECT,
        },
        Communication.SECURE_BROADCAST: {"federated_secure_select": SELECT},
        Communication.LOCAL: {
            "federated_apply": "(<(T -> U),T@SERVER> -> U@SERVER)",
            "federated_eval_at_clients": "(( -> T) -> {T}@CLIENTS)",
            "federated_eval_at_server": "(( -> T) -> T@SERVER)",
            "federated_map": "(<(T -> U),{T}@CLIENTS> -> {U}@CLIENTS)",
            "federated_map_all_equal": "(<(T -> U),T@CLIENTS> -> U@CLIENTS)",
            "federated_value_at_clients": "(T -> T@CLIENTS)",
            "federated_value_at_server": "(T -> T@SERVER)",
            "federated_zip_at_clients": "(T -> {U}@CLIENTS)",
            "federated_zip_at_server": "(T -> U@SERVER)",
            "generic_divide": "(<T,T> -> U)",
            "generic_multiply": "(<T,T> -> T)",
            "generic_plus": "(<T,T> -> T)",
            "generic_zero": "T",
            "sequence_map": "(<(T -> U),T*> -> U*)",
            "sequence_reduce": "(<T*,U,(<U,T> -> U)> -> U)",
            "sequence_sum": "(T* -> T)",
        },
    }.items()
    for uri, text in operators.items()
}
"""The operators by their URIs."""

MAPS = frozenset({"federated_apply", "federated_map", "federated_map_all_equal"})
"""The operators that apply a function to the member of a placed value."""

EVALUATIONS = frozenset({"federated_eval_at_clients", "federated_eval_at_server"})
"""The operators that call a function at a placement."""

PLACEMENTS_ONLY = frozenset(
    {
        "federated_value_at_clients",
        "federated_value_at_server",
        "federated_zip_at_clients",
        "federated_zip_at_server",
    }
)
"""The operators that change how a value is placed, and nothing else about it."""


def definition_of(uri: str) -> IntrinsicDefinition | None:
    """Return the operator registered under `uri`, or None."""
    return INTRINSICS.get(uri)


def check_instance(uri: str, concrete: Type) -> None:
    """Check that `concrete` instantiates the signature registered under `uri`, if there is one.

    An occurrence of a type variable inside an odd number of function parameters defines it; all
    others use it.  Its definitions must be equivalent, and its uses assignable from them.  A
    variable without a definition occurs once in a signature.

    Raises:
      LanguageTypeError: `concrete` is not an instance, or still holds type variables.
    """
    definition = INTRINSICS.get(uri)
    if definition is None:
        return
    if concrete.is_abstract:
        raise LanguageTypeError("E109", f"the type `{concrete}` of {uri} is not concrete")

    def refusal(code: str, reason: str) -> LanguageTypeError:
        message = (
            f"the type `{concrete}` is not an instance of {uri}, "
            f"whose signature is `{definition.signature}`"
        )
        return LanguageTypeError(code, message, notes=(reason,))

    defined: dict[str, Type] = {}
    used: dict[str, list[Type]] = {}
    stack = [(definition.signature, concrete, False)]
    while stack:
        template, type, defines = stack.pop()
        if not isinstance(template, AbstractType):
            parts = _parts(template, type, defines)
            if parts is None:
                raise refusal("E135", f"`{type}` stands where `{template}` is expected")
            stack.extend(parts)
        elif not defines:
            used.setdefault(template.name, []).append(type)
        elif not defined.setdefault(template.name, type).is_equivalent_to(type):
            both = f"`{defined[template.name]}` and `{type}`"
            raise refusal("E135", f"`{template.name}` is both {both}")
    for name, uses in used.items():
        bound = defined.get(name)
        for use in uses:
            if bound is not None and not use.is_assignable_from(bound):
                raise refusal("E135", f"`{use}` is not assignable from `{name}`=`{bound}`")


def _parts(template: Type, concrete: Type, defines: bool) -> list[tuple[Type, Type, bool]] | None:
    """Return the parts of a template and of a type, in pairs, each with whether variables are
    defined there; None if the two are not of one form."""
    match template, concrete:
        case FunctionType(parameter=Type() as wanted), FunctionType(parameter=Type() as actual):
            return [
                (wanted, actual, not defines),
                (template.result, concrete.result, defines),
            ]
        case StructType(), StructType():
            is_alike = template.names == concrete.names
        case _:
            is_alike = (type(template), template.own_label()) == (
                type(concrete),
                concrete.own_label(),
            )
    parts, others = template.children(), concrete.children()
    if not is_alike or len(parts) != len(others):
        return None
    return [(one, other, defines) for one, other in zip(parts, others, strict=True)]
