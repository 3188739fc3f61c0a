"""The messages of types as methods of the types, as `federated_language` has them."""

from __future__ import annotations

import weakref
from typing import Any

from google.protobuf.message import Message

from tffc.frontend.hints import described
from tffc.frontend.type_queries import deserialize_type, serialize_type
from tffc.language import types
from tffc.language.types import StructType, StructWithPythonType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.tff.federated_language import messages

KINDS: dict[type[Type], str | None] = {
    Type: None,
    types.AbstractType: "abstract",
    types.FederatedType: "federated",
    types.FunctionType: "function",
    types.PlacementType: "placement",
    types.SequenceType: "sequence",
    StructType: "struct",
    types.TensorType: "tensor",
}
"""The classes of types, and the fields of a message `Type` for them; None for any."""


class NoTypeError(LanguageValueError, NotImplementedError):
    """A message `Type` has none."""


def _check(message: Any, kind: str | None) -> None:
    """Check that a message `Type` holds a type, of a kind if one is wanted; see `read_type`."""
    if not isinstance(message, Message):
        raise LanguageTypeError(
            "E198",
            f"a type is read from a message `Type`, not from {described(message)}",
            help="give what to_proto of a type returns",
        )
    own = message.WhichOneof("type")
    if kind is not None and own != kind:
        raise LanguageValueError("E168", f"expected a message of a {kind} type, found {own}")
    if own is None:
        raise NoTypeError(
            "E168", "the message `Type` holds no type", help="give what to_proto of a type returns"
        )


def read_type(message: Any, kind: str | None = None) -> Type:
    """Return the type in a message `Type`, of a kind if one is wanted.

    Raises:
      LanguageTypeError: it is no message.
      LanguageValueError: it holds another kind of type.
      NoTypeError: it holds none.
    """
    _check(message, kind)
    return deserialize_type(message)


def _reader(kind: str | None) -> Any:
    @entry_point
    def read(type_pb: Any) -> Type:
        return read_type(type_pb, kind)

    read.__doc__ = "Return the type in a message `Type`."
    return staticmethod(read)


@entry_point
def _with_container(type_pb: Any, *, container_type: type) -> StructWithPythonType:
    """Return the struct type in a message `Type`, with a container for its values."""
    _check(type_pb, "struct")
    type = deserialize_type(type_pb)
    assert isinstance(type, StructType)
    return StructWithPythonType(list(type.items()), container_type)


@entry_point
def _variable(type_pb: Any) -> types.AbstractType:
    """Return the type variable in a message `Type`; no program can hold one."""
    _check(type_pb, "abstract")
    return types.AbstractType(type_pb.abstract.label)


_messages: weakref.WeakKeyDictionary[Type, Any] = weakref.WeakKeyDictionary()


def _to_proto(type: Type) -> Any:
    """Return the type as a message `Type`: the same one at each call."""
    if type not in _messages:
        if isinstance(type, types.AbstractType):
            variable = messages.AbstractType(label=type.name)
            _messages[type] = messages.Type(abstract=variable)
        else:
            _messages[type] = serialize_type(type)
    return _messages[type]


for _class, _kind in KINDS.items():
    _class.from_proto = _reader(_kind)  # type: ignore[attr-defined]  # a name of the mirror
StructWithPythonType.from_proto = staticmethod(_with_container)  # type: ignore[attr-defined]  # likewise
types.AbstractType.from_proto = staticmethod(_variable)  # type: ignore[attr-defined]  # likewise
Type.to_proto = _to_proto  # type: ignore[attr-defined]  # likewise
