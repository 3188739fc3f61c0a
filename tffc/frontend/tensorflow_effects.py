"""What a TensorFlow graph does besides giving its result: prints, checks, calls into Python."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import Any

VISIBLE_EFFECTS = frozenset({"Assert", "EagerPyFunc", "Print", "PrintV2", "PyFunc", "WriteFile"})
"""Operations that are noticed outside of the graph, unlike changes of its own variables."""


def require_visible_effects(graph_def: Any, results: Iterable[str]) -> None:
    """Makes the operations `results` wait for every visible effect, which nothing else may need.

    Without that TensorFlow leaves out a check whose outcome no result depends on.
    """
    functions = _functions_with_effects(graph_def)
    effects = [node.name for node in graph_def.node if _has_effect(node, functions)]
    if not effects:
        return
    taken = {node.name for node in graph_def.node}
    name = "side_effects"
    while name in taken:
        name += "_"
    waiting = set(results)
    for node in graph_def.node:
        if node.name in waiting:
            node.input.append(f"^{name}")
    graph_def.node.add(name=name, op="NoOp", input=[f"^{effect}" for effect in effects])


def _functions_with_effects(graph_def: Any) -> set[str]:
    """The functions of the library that have a visible effect, themselves or in what they call."""
    callers: dict[str, list[str]] = collections.defaultdict(list)
    pending: list[str] = []
    for function in graph_def.library.function:
        name = function.signature.name
        if any(_has_effect(node, ()) for node in function.node_def):
            pending.append(name)
        for node in function.node_def:
            for called in _called_functions(node):
                callers[called].append(name)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(callers[name])
    return found


def _has_effect(node: Any, functions: Iterable[str]) -> bool:
    return node.op in VISIBLE_EFFECTS or any(name in functions for name in _called_functions(node))


def _called_functions(node: Any) -> Iterator[str]:
    """The names of the functions that a node calls, or hands on to be called."""
    yield node.op
    for attribute in node.attr.values():
        if attribute.HasField("func"):
            yield attribute.func.name
        for function in attribute.list.func:
            yield function.name
