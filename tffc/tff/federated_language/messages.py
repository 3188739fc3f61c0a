"""The messages of `federated_language.proto`, and the numbers of element types."""

from __future__ import annotations

from typing import Any

from google.protobuf.internal import enum_type_wrapper

from tffc.graphs.proto import message
from tffc.graphs.proto.computation import Computation as Computation

ARRAY: Any = message("tffc.v0.Array").DESCRIPTOR
FILES = (Computation.DESCRIPTOR.file, ARRAY.file)
_NUMBERS: Any = ARRAY.fields_by_name["dtype"].enum_type

DataType: Any = enum_type_wrapper.EnumTypeWrapper(_NUMBERS)
"""The element types by their names, such as `DT_INT32`."""


def __getattr__(name: str) -> Any:
    if any(name in file.message_types_by_name for file in FILES):
        return message(f"tffc.v0.{name}")
    if name in _NUMBERS.values_by_name:
        return _NUMBERS.values_by_name[name].number
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    messages = (name for file in FILES for name in file.message_types_by_name)
    return sorted([*globals(), *messages, *_NUMBERS.values_by_name])
