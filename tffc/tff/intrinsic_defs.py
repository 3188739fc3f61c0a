"""The operators under the names that TFF has for them, such as `FEDERATED_SUM`."""

from __future__ import annotations

import enum
from typing import Any

from tffc.language.intrinsics import INTRINSICS, Communication
from tffc.language.intrinsics import definition_of as definition_of
from tffc.language.types import Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError


class AggregationKind(enum.Enum):
    """How an operator aggregates values of clients."""

    DEFAULT = 1
    SECURE = 2


class BroadcastKind(enum.Enum):
    """How an operator brings values of the server to clients."""

    DEFAULT = 1
    SECURE = 2


class IntrinsicDef:
    """An operator: its name, its URI, its type over type variables and how it communicates.

    tffc runs only those of the language; a further one can be looked up by its URI.
    """

    @entry_point
    def __init__(
        self,
        name: str,
        uri: str,
        type_signature: Any,
        aggregation_kind: AggregationKind | None = None,
        broadcast_kind: BroadcastKind | None = None,
    ) -> None:
        """Take the parts of the definition.

        Raises:
          LanguageTypeError: the type is none.
        """
        if not isinstance(type_signature, Type):
            raise LanguageTypeError(
                "E110",
                f"the type of {name} is no type: {type_signature!r}",
                help="give a type, such as what to_type returns",
            )
        self.name, self.uri = str(name), str(uri)
        self.type_signature: Type = type_signature
        self.aggregation_kind = aggregation_kind
        self.broadcast_kind = broadcast_kind
        _definitions[self.uri] = self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"IntrinsicDef({self.uri!r})"


_definitions: dict[str, IntrinsicDef] = {}

AGGREGATIONS = {
    Communication.AGGREGATION: AggregationKind.DEFAULT,
    Communication.SECURE_AGGREGATION: AggregationKind.SECURE,
}
BROADCASTS = {
    Communication.BROADCAST: BroadcastKind.DEFAULT,
    Communication.SECURE_BROADCAST: BroadcastKind.SECURE,
}

for _uri, _operator in INTRINSICS.items():
    IntrinsicDef(
        _uri.upper(),
        _uri,
        _operator.signature,
        AGGREGATIONS.get(_operator.communication),
        BROADCASTS.get(_operator.communication),
    )


def uri_to_intrinsic_def(uri: str) -> IntrinsicDef | None:
    """Return the definition of the operator with a URI, or None."""
    return _definitions.get(uri)


def get_aggregation_intrinsics() -> list[IntrinsicDef]:
    """Return the operators that aggregate."""
    return [each for each in _definitions.values() if each.aggregation_kind is not None]


def get_broadcast_intrinsics() -> list[IntrinsicDef]:
    """Return the operators that broadcast."""
    return [each for each in _definitions.values() if each.broadcast_kind is not None]


def __getattr__(name: str) -> IntrinsicDef:
    definition = _definitions.get(name.lower()) if name.isupper() else None
    if definition is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return definition


def __dir__() -> list[str]:
    return sorted([*globals(), *(uri.upper() for uri in INTRINSICS)])
