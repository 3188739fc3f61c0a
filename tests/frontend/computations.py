"""Containers that computations take and return in the tests of the front end, and their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tffc as tff


class Point(NamedTuple):
    x: Any
    y: Any


class Field(NamedTuple):
    name: str


class Pair:
    """What the attrs library makes of a class, as far as anyone can see."""

    __attrs_attrs__ = (Field("left"), Field("right"))

    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right


def traced(body: Callable[..., Any], *types: Any) -> str:
    """Return the text of the federated computation of a function, under the name `f`."""
    body.__name__ = "f"
    return str(tff.federated_computation(body, *types).to_building_block())
