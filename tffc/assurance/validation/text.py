"""Values as text, in the notation of types: `<state=0,data={[1,2],[]}>`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.language.types import FederatedType, SequenceType, StructType, Type
from tffc.language.values.concrete import to_value
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run

MAX_ELEMENTS = 32
"""The most elements of a tensor that are written out."""


def text_of(value: Any, type: Type) -> str:
    """Return the text of a Python value of a type: clients' values in braces, sequences in
    brackets."""
    return run(_text(to_value(value, type), type))


def _text(value: Any, type: Type) -> Task[str]:
    match type:
        case StructType():
            parts: list[str] = []
            for name, part, inner in zip(type.names, value, type.types, strict=True):
                text = yield _text(part, inner)
                parts.append(text if name is None else f"{printable(name)}={text}")
            return f"<{','.join(parts)}>"
        case SequenceType():
            return f"[{yield _join(value, type.element)}]"
        case FederatedType(all_equal=True):
            return (yield _text(value.members[0], type.member))
        case FederatedType():
            return f"{{{yield _join(value.members, type.member)}}}"
        case _:
            return _tensor(np.asarray(value))


def _join(values: Any, type: Type) -> Task[str]:
    texts: list[str] = []
    for value in values:
        texts.append((yield _text(value, type)))
    return ",".join(texts)


def _tensor(array: np.ndarray) -> str:
    if array.size <= MAX_ELEMENTS:
        return str(array.tolist())
    flat = array.reshape(-1)
    ends = ", ".join(map(str, flat[:3].tolist())), ", ".join(map(str, flat[-3:].tolist()))
    return f"{array.dtype}{list(array.shape)} [{ends[0]}, ..., {ends[1]}]"
