"""The number of calls after inlining the functions of a program, found without inlining them.

The calls do not depend on data.  So the program is evaluated on abstract values: structs and
lambdas are known, and everything else is one unknown.  A function applied again to the same value
makes as many calls as before, so each such pair is evaluated once, and counts are added where
inlining would repeat the work.
"""

from __future__ import annotations

from typing import Any

from tffc.language.nodes import Node, Reference, StructNode
from tffc.language.size import CALL, COUNTED_BITS, GROWTH, max_size
from tffc.passes.symbolic import NO_HINT, Atom, Evaluator, Frame, Hint, SymbolicClosure, Value
from tffc.support.errors import VerificationError
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run


def check_calls(root: Node) -> None:
    """Check that inlining the functions of a closed program makes no more calls than it may.

    Raises:
      VerificationError: it makes more, or counting them takes too many steps.
    """
    counter = _Counter()
    run(counter.reify(run(counter.evaluate(root, Frame()))))
    if counter.calls > counter.most:
        raise counter.refusal(str(counter.calls))


UNKNOWN = Atom(StructNode(()))
"""Any value that is not known to be a struct or a closure; its node is not used."""

TERM = object()
"""The key, in place of a frame, for the calls that the term of a value holds."""


class _Counter(Evaluator):
    """Counts calls, those of a function once for each argument."""

    repeats_calls = False

    def __init__(self) -> None:
        super().__init__()
        self.most = max_size() // CALL
        self._first: tuple[str, int] | None = None
        """The innermost function that makes too many calls, and how many."""

    def look_up(self, node: Reference, frame: Frame) -> Value:
        return frame.find(node.name) or UNKNOWN

    def atom(self, node: Node) -> Atom:
        return UNKNOWN

    def select(self, value: Any, index: int) -> Value:
        return UNKNOWN

    def emit(self, function: Value, argument: Value | None, hint: Hint) -> Task[Any]:
        self.calls += 1
        if argument is not None:
            yield self.reify(argument)
        return UNKNOWN

    def inline(self, function: SymbolicClosure, argument: Value | None, hint: Hint) -> Task[Any]:
        before = self.calls
        value = yield super().inline(function, argument, hint)
        made = self.calls - before
        if made > self.most and self._first is None:
            self._first = self.name_of(function), made
        if made.bit_length() > COUNTED_BITS:
            # Everything evaluated is counted, so the program makes at least as many calls.
            raise self.refusal(f"at least 2^{COUNTED_BITS}")
        return value

    def reify(self, value: Value) -> Task[Any]:
        """Count the calls that the term of a value holds: those in its lambdas."""
        if isinstance(value, Atom) or self.recall(value, TERM) is not None:
            return
        before = self.calls
        if isinstance(value, SymbolicClosure):
            argument = None if value.node.parameter_name is None else UNKNOWN
            yield self.reify((yield self.apply(value, argument, NO_HINT)))
        elif value.has_closure:
            for inner in value.values:
                yield self.reify(inner)
        self.keep(value, TERM, before, value)

    def refusal(self, calls: str) -> VerificationError:
        """Return the refusal of a program that makes so many calls."""
        notes: tuple[str, ...] = ()
        if self._first is not None:
            name, number = self._first
            notes = (f"`{printable(name)}` alone makes {number} calls each time it is called",)
        return VerificationError(
            "E321",
            f"the program makes {calls} calls when its functions are inlined, "
            f"more than the {self.most} that are made",
            notes=notes,
            help=GROWTH,
        )
