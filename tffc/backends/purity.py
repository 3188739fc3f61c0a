"""Which steps of a round always give the same, and where the others may run.

A step that draws random numbers, reads a clock or keeps state outside itself has to run once in a
round, or once at every client if that is where it was placed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tffc.backends.stages import Stage, Step, describe
from tffc.errors import FormError
from tffc.graphs.inspect import is_pure
from tffc.ir.nodes import Compiled, Node
from tffc.ir.traverse import walk

AT_EVERY_CLIENT = frozenset({"work", "client_work", "client_processing"})
"""The parts that run once a client."""


def is_pure_node(root: Node) -> bool:
    """Whether every compiled section in `root` is pure."""
    return all(is_pure(node) for node in walk(root) if isinstance(node, Compiled))


class Purity:
    """Which part runs which impure step: none may run in two, or at every client unasked."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}

    def record(self, part: str, steps: Iterable[Step]) -> None:
        """Notes that `part` runs these steps.

        Raises:
          FormError: an impure one runs elsewhere too, or would run anew at every client.
        """
        for step in steps:
            first = self.parts.setdefault(step.name, part)
            repeated = step.stage is Stage.ANYWHERE and part in AT_EVERY_CLIENT
            if (first != part or repeated) and not is_pure_node(step.call):
                raise _drawn_for_each_client(step) if repeated else _needed_twice(step, first, part)


def _needed_twice(step: Step, *parts: str) -> FormError:
    return _refusal(
        step,
        f"both {' and '.join(parts)} need it",
        "the form has no channel that carries one result to all that need it",
        "compile to distribute-aggregate, or pass --allow-impure-duplicates",
    )


def _drawn_for_each_client(step: Step) -> FormError:
    return _refusal(
        step,
        "every client would run it anew",
        "it has no placement, and what is at the clients needs it",
        "make the value at the server with tff.federated_eval and broadcast it, let each client "
        "make its own with tff.federated_eval(f, tff.CLIENTS), or pass --allow-impure-duplicates",
    )


def _refusal(step: Step, reason: str, note: str, help: str) -> FormError:
    return FormError(
        "E532",
        f"`{describe(step.binding)}` does not always give the same, and {reason}",
        notes=(note,),
        help=help,
        span=step.binding.span,
    )
