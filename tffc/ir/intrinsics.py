"""The operators of the language: one table, by URI.

Each has a signature over type variables and says how it communicates: it broadcasts, it
aggregates, or it works where its operands are.
"""

from __future__ import annotations

import dataclasses
import enum

from tffc.errors import LanguageTypeError
from tffc.ir.dtypes import DType
from tffc.ir.types import (
    AbstractType,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
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
    """An operator: its URI, its signature and how it communicates."""

    uri: str
    signature: Type
    communication: Communication = Communication.LOCAL

    @property
    def communicates(self) -> bool:
        return self.communication is not Communication.LOCAL

    @property
    def is_broadcast(self) -> bool:
        return self.communication in (Communication.BROADCAST, Communication.SECURE_BROADCAST)

    @property
    def is_aggregation(self) -> bool:
        return self.communication in (Communication.AGGREGATION, Communication.SECURE_AGGREGATION)


def _signatures() -> tuple[IntrinsicDefinition, ...]:
    t, u, r, v = (AbstractType(name) for name in "TURV")
    bound, keys = AbstractType("M"), AbstractType("Ks")
    scalar_int = TensorType(DType.INT32)
    same = FunctionType(StructType([t, t]), t)
    reduce_clients = FunctionType(at_clients(t), at_server(t))
    select = FunctionType(
        StructType(
            [
                at_clients(keys),
                at_server(scalar_int),
                at_server(t),
                FunctionType(StructType([t, scalar_int]), u),
            ]
        ),
        at_clients(SequenceType(u)),
    )
    secure_sum = FunctionType(StructType([at_clients(v), bound]), at_server(v))
    aggregate = FunctionType(
        StructType(
            [
                at_clients(t),
                u,
                FunctionType(StructType([u, t]), u),
                FunctionType(StructType([u, u]), u),
                FunctionType(u, r),
            ]
        ),
        at_server(r),
    )
    weighted = FunctionType(StructType([at_clients(t), at_clients(u)]), at_server(t))
    local, aggregation = Communication.LOCAL, Communication.AGGREGATION
    secure, broadcast = Communication.SECURE_AGGREGATION, Communication.BROADCAST
    map_ = FunctionType(t, u)
    t_everywhere, u_everywhere = at_clients(t, all_equal=True), at_clients(u, all_equal=True)

    def define(uri: str, signature: Type, how: Communication = local) -> IntrinsicDefinition:
        return IntrinsicDefinition(uri, signature, how)

    return (
        define("federated_aggregate", aggregate, aggregation),
        define("federated_apply", FunctionType([map_, at_server(t)], at_server(u))),
        define(
            "federated_broadcast",
            FunctionType(at_server(t), t_everywhere),
            broadcast,
        ),
        define("federated_eval_at_clients", FunctionType(FunctionType(None, t), at_clients(t))),
        define("federated_eval_at_server", FunctionType(FunctionType(None, t), at_server(t))),
        define("federated_map", FunctionType([map_, at_clients(t)], at_clients(u))),
        define(
            "federated_map_all_equal",
            FunctionType([map_, t_everywhere], u_everywhere),
        ),
        define("federated_mean", reduce_clients, aggregation),
        define("federated_min", reduce_clients, aggregation),
        define("federated_max", reduce_clients, aggregation),
        define("federated_sum", reduce_clients, aggregation),
        define("federated_weighted_mean", weighted, aggregation),
        define("federated_secure_sum", secure_sum, secure),
        define("federated_secure_sum_bitwidth", secure_sum, secure),
        define("federated_secure_modular_sum", secure_sum, secure),
        define("federated_select", select, broadcast),
        define("federated_secure_select", select, Communication.SECURE_BROADCAST),
        define("federated_value_at_clients", FunctionType(t, t_everywhere)),
        define("federated_value_at_server", FunctionType(t, at_server(t))),
        define("federated_zip_at_clients", FunctionType(t, at_clients(u))),
        define("federated_zip_at_server", FunctionType(t, at_server(u))),
        define("generic_plus", same),
        define("generic_multiply", same),
        define("generic_divide", FunctionType([t, t], u)),
        define("generic_zero", t),
        define("sequence_map", FunctionType([map_, SequenceType(t)], SequenceType(u))),
        define(
            "sequence_reduce",
            FunctionType([SequenceType(t), u, FunctionType(StructType([u, t]), u)], u),
        ),
        define("sequence_sum", FunctionType(SequenceType(t), t)),
    )


INTRINSICS = {definition.uri: definition for definition in _signatures()}


def definition_of(uri: str) -> IntrinsicDefinition | None:
    """The operator registered under `uri`, or None."""
    return INTRINSICS.get(uri)


def check_instance(uri: str, concrete: Type) -> None:
    """Checks that `concrete` instantiates the signature registered under `uri`, if there is one.

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
            case FederatedType(), FederatedType() if template.label() == concrete.label():
                return [(template.member, concrete.member, defining)]
            case FunctionType(), FunctionType():
                result = (template.result, concrete.result, defining)
                if template.parameter is None or concrete.parameter is None:
                    if template.parameter is concrete.parameter:
                        return [result]
                else:
                    return [(template.parameter, concrete.parameter, not defining), result]
        raise self._refusal(f"`{concrete}` stands where `{template}` is expected", "E138")

    def _refusal(self, reason: str, code: str) -> LanguageTypeError:
        return LanguageTypeError(
            code,
            f"the type `{self.concrete}` is no instance of {self.uri}, "
            f"whose signature is `{self.signature}`",
            notes=(reason,),
        )
