"""Which names are free, and what each binder's name is used for."""

from __future__ import annotations

import numpy as np

from tffc.language.nodes import Binding, Block, Lambda, Node, Reference, StructNode
from tffc.language.scope import Uses, bound_names, free_references
from tffc.language.types import TensorType

INT, FLOAT = TensorType(np.int32), TensorType(np.float32)
X, Y = Reference("x", INT), Reference("y", INT)


def described(root: Node, *, only_needed: bool = False) -> list[str]:
    """The scopes as `name: types`, and the free names after them."""
    free: Uses = {}
    found = [
        f"{scope.name}: {' '.join(sorted(map(str, scope.uses)))}"
        for scope in bound_names(root, free, only_needed=only_needed)
    ]
    return [*found, *(f"free {name}" for name in sorted(free))]


def test_a_local_is_visible_after_it_only() -> None:
    block = Block((Binding("x", X), Binding("y", X), Binding("x", Y)), X)
    assert described(block) == ["x: int32", "y: int32", "x: int32", "free x"]


def test_a_name_has_all_the_types_that_it_is_used_at() -> None:
    inside = StructNode((X, Reference("x", FLOAT), Y))
    assert described(Lambda("x", INT, inside)) == ["x: float32 int32", "free y"]


def test_what_is_shared_is_free_in_each_place() -> None:
    shared = StructNode((X, Y))
    root = StructNode((Lambda("x", INT, shared), shared, Lambda("y", INT, shared)))
    assert described(root) == ["x: int32", "y: int32", "free x", "free y"]
    assert free_references(shared) == {("x", INT), ("y", INT)}


def test_what_is_bound_and_not_used_counts_unless_only_what_is_needed_does() -> None:
    block = Block((Binding("a", X), Binding("b", Reference("a", INT))), Y)
    assert described(block) == ["b: ", "a: int32", "free x", "free y"]
    assert described(block, only_needed=True) == ["b: ", "a: ", "free y"]
