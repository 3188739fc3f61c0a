"""The operators of the language: one table, by URI.

Each has a signature over type variables and says how it communicates: it broadcasts, it
aggregates, or it works where its operands are.  Signatures are parsed when they are first asked
for.
"""

from __future__ import annotations

import dataclasses
import enum
import functools

from tffc.errors import LanguageTypeError
from tffc.ir.notation.type_parser import parse_type
from tffc.ir.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)


class Communication(enum.Enum):
    """How an operator moves values between placements."""

    LOCAL = "local"
    BROADCAST = "broadcast"
    SECURE_BROADCAST = "secure broadcast"
    AGGREGATION = "aggregation"
    SECURE_AGGREGATION = "secure aggregation"


@dataclasses.dataclass(frozen=True, slots=True)
class IntrinsicDefinition:
    """An operator: its URI, its signature in the notation of types and how it communicates."""

    uri: str
    text: str
    communication: Communication = Communication.LOCAL

    @property
    def signature(self) -> Type:
        """The type of the operator over type variables."""
        return _signature(self.text)

    @property
    def type_signature(self) -> Type:
        """Return the same as `signature`, as TFF's users know it."""
        return self.signature

    @property
    def name(self) -> str:
        """Return the name that TFF has for the definition, such as `FEDERATED_SUM`."""
        return self.uri.upper()

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


VARIABLES = frozenset({"T", "U", "R", "V", "M", "Ks"})
"""What signatures call types that an instance chooses; see `check_instance`."""

AGGREGATE = "(<{T}@CLIENTS,U,(<U,T> -> U),(<U,U> -> U),(U -> R)> -> R@SERVER)"
REDUCE = "({T}@CLIENTS -> T@SERVER)"
SECURE_SUM = "(<{V}@CLIENTS,M> -> V@SERVER)"
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
            "federated_secure_sum_bitwidth": SECURE_SUM,
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


def __getattr__(name: str) -> IntrinsicDefinition:
    """Return an operator by the name that TFF has for it, such as `FEDERATED_SUM`."""
    found = INTRINSICS.get(name.lower()) if name.isupper() else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def definition_of(uri: str) -> IntrinsicDefinition | None:
    """Return the operator registered under `uri`, or None."""
    return INTRINSICS.get(uri)


def check_instance(uri: str, concrete: Type) -> None:
    """Check that `concrete` instantiates the signature registered under `uri`, if there is one.

    A type variable is bound where it stands in a defining position, which is inside an odd number
    of function parameters.  Further defining uses must be equivalent to the binding and the other
    uses assignable from it; a variable that is never defined stands once only.

    Raises:
      LanguageTypeError: it does not, or it still holds type variables.
    """
    definition = INTRINSICS.get(uri)
    if definition is None:
        return
    if concrete.is_abstract:
        raise LanguageTypeError("E134", f"the type `{concrete}` of {uri} is not concrete")
    match = _Match(uri, definition.signature, concrete)
    match.check()


class _Match:
    """One concrete type held against one signature."""

    def __init__(self, uri: str, signature: Type, concrete: Type) -> None:
        self.uri = uri
        self.signature = signature
        self.concrete = concrete
        self.defined: dict[str, Type] = {}
        self.used: dict[str, list[Type]] = {}

    def check(self) -> None:
        stack = [(self.signature, self.concrete, False)]
        while stack:
            template, concrete, defining = stack.pop()
            if isinstance(template, AbstractType):
                self._meet(template.name, concrete, defining)
            else:
                stack.extend(self._parts(template, concrete, defining))
        for name, uses in self.used.items():
            self._check_uses(name, uses)

    def _meet(self, name: str, concrete: Type, defining: bool) -> None:
        if not defining:
            self.used.setdefault(name, []).append(concrete)
        elif not self.defined.setdefault(name, concrete).is_equivalent_to(concrete):
            raise self._refusal(f"`{name}` is both `{self.defined[name]}` and `{concrete}`", "E135")

    def _check_uses(self, name: str, uses: list[Type]) -> None:
        bound = self.defined.get(name)
        for use in uses:
            if bound is not None and not use.is_assignable_from(bound):
                raise self._refusal(f"`{use}` is not assignable from `{name}`=`{bound}`", "E137")

    def _parts(
        self, template: Type, concrete: Type, defining: bool
    ) -> list[tuple[Type, Type, bool]]:
        match template, concrete:
            case TensorType(), TensorType() if template == concrete:
                return []
            case StructType(), StructType() if template.names == concrete.names:
                pairs = zip(template.types, concrete.types, strict=True)
                return [(a, b, defining) for a, b in pairs]
            case SequenceType(), SequenceType():
                return [(template.element, concrete.element, defining)]
            case FederatedType(), FederatedType() if template.own_label() == concrete.own_label():
                return [(template.member, concrete.member, defining)]
            case FunctionType(), FunctionType():
                result = (template.result, concrete.result, defining)
                if template.parameter is None or concrete.parameter is None:
                    if template.parameter is concrete.parameter:
                        return [result]
                else:
                    return [(template.parameter, concrete.parameter, not defining), result]
            case _:
                pass
        raise self._refusal(f"`{concrete}` stands where `{template}` is expected", "E138")

    def _refusal(self, reason: str, code: str) -> LanguageTypeError:
        return LanguageTypeError(
            code,
            f"the type `{self.concrete}` is not an instance of {self.uri}, "
            f"whose signature is `{self.signature}`",
            notes=(reason,),
        )
