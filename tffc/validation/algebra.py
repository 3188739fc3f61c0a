"""Whether aggregations are what systems take them for that merge partial results in any order.

Zero has to be an identity of `merge`, and `merge` associative and commutative, up to rounding and
as far as `report` shows.  The other operators are like that; `federated_aggregate` is what its
author made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tffc.errors import Span, ValidationError
from tffc.ir.nodes import Intrinsic
from tffc.ir.trampoline import Task
from tffc.ir.types import FunctionType, StructType
from tffc.validation.bounded import Bounded
from tffc.validation.compare import first_difference
from tffc.validation.watched import AGGREGATE


class AlgebraWatch(Bounded):
    """An interpreter that tries the laws on the values that aggregations are given.

    `warn` is told of each law that does not hold.
    """

    def __init__(self, clients: int, warn: Callable[[ValidationError], None]) -> None:
        super().__init__(clients)
        self._warn = warn

    def apply_operator(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        if operator.uri == AGGREGATE:
            yield self._check(operator, argument)
        return (yield super().apply_operator(operator, argument))

    def _check(self, operator: Intrinsic, argument: Any) -> Task[None]:
        value, zero, accumulate, merge, report = argument
        members = value.at_each(self.clients)[:3]
        parts = []
        for member in members:
            parts.append((yield self.apply(accumulate, (zero, member))))

        def merged(one: Any, other: Any) -> Task[Any]:
            return self.apply(merge, (one, other))

        pairs: list[tuple[str, Any, Any]] = []
        if parts:
            first = parts[0]
            pairs.append(("zero is no identity of merge", first, (yield merged(zero, first))))
            pairs.append(("zero is no identity of merge", first, (yield merged(first, zero))))
        if len(parts) > 1:
            one, other = parts[:2]
            both = yield merged(one, other)
            pairs.append(("merge is not commutative", both, (yield merged(other, one))))
            grown = yield self.apply(accumulate, (one, members[1]))
            law = "merging two clients is not the same as accumulating both"
            pairs.append((law, both, grown))
        if len(parts) > 2:
            left = yield merged((yield merged(parts[0], parts[1])), parts[2])
            right = yield merged(parts[0], (yield merged(parts[1], parts[2])))
            pairs.append(("merge is not associative", left, right))
        yield self._compare(operator, report, pairs)

    def _compare(
        self, operator: Intrinsic, report: Any, pairs: list[tuple[str, Any, Any]]
    ) -> Task[None]:
        type = _report_type(operator)
        for law, one, other in pairs:
            shown = yield self.apply(report, one)
            again = yield self.apply(report, other)
            if first_difference(shown, again, type.result, exact=False) is not None:
                self._warn(violation(law, self.span))


def violation(law: str, span: Span | None) -> ValidationError:
    """The finding that a law does not hold for the aggregation at a place."""
    return ValidationError(
        "E901",
        f"in this aggregation, {law}",
        notes=(
            "a system that merges partial results in any order may give any of several results",
        ),
        help="write merge so that neither order nor grouping matters, and zero so that merging "
        "with it changes nothing",
        span=span,
    )


def _report_type(operator: Intrinsic) -> FunctionType:
    assert isinstance(operator.type, FunctionType)
    assert isinstance(operator.type.parameter, StructType)
    type = operator.type.parameter.types[-1]
    assert isinstance(type, FunctionType)
    return type
