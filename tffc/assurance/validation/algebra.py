"""The algebraic laws that let systems merge partial aggregates in any order.

Zero must be an identity of `merge`, and `merge` associative and commutative, up to rounding and as
far as `report` shows.  The predefined operators satisfy this; `federated_aggregate` does if its
author's functions do.  Aggregations that draw random numbers are not tested: their laws are about
distributions, not values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tffc.assurance.validation.compare import first_difference, rounding_of_sums
from tffc.assurance.validation.draws import Draws
from tffc.assurance.validation.watched import AGGREGATE, Watched
from tffc.language.nodes import Intrinsic
from tffc.language.types import FunctionType, StructType
from tffc.support.errors import Span, ValidationError
from tffc.support.trampoline import Task


class AlgebraWatch(Watched):
    """An interpreter that tests the laws on the values that are aggregated.

    `warn` is called with a `ValidationError` for each law that does not hold.
    """

    def __init__(self, clients: int, warn: Callable[[ValidationError], None]) -> None:
        super().__init__(clients, Draws())
        self._warn = warn

    def apply_operator(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        if operator.uri == AGGREGATE:
            yield self._check(operator, argument)
        return (yield super().apply_operator(operator, argument))

    def _check(self, operator: Intrinsic, argument: Any) -> Task[None]:
        value, zero, accumulate, merge, report = argument
        drawn = self._drawn()
        members = value.at_each(self.clients)[:3]
        parts: list[Any] = []
        for member in members:
            parts.append((yield self.apply(accumulate, (zero, member))))

        def merged(one: Any, other: Any) -> Task[Any]:
            return self.apply(merge, (one, other))

        pairs: list[tuple[str, Any, Any]] = []
        if parts:
            first = parts[0]
            pairs.append(("zero is not an identity of merge", first, (yield merged(zero, first))))
            pairs.append(("zero is not an identity of merge", first, (yield merged(first, zero))))
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
        broken = yield self._broken(operator, report, parts, pairs)
        if self._drawn() == drawn:
            for law in broken:
                self._warn(violation(law, self.span))

    def _broken(
        self, operator: Intrinsic, report: Any, parts: list[Any], pairs: list[tuple[str, Any, Any]]
    ) -> Task[list[str]]:
        """Return the laws whose two sides differ, both as partial aggregates and after `report`."""
        type = _report_type(operator)
        assert type.parameter is not None
        shown: list[Any] = []
        for part in parts:
            shown.append((yield self.apply(report, part)))
        broken: list[str] = []
        for law, one, other in pairs:
            if first_difference(one, other, type.parameter, rounding_of_sums, parts) is not None:
                one, other = (yield self.apply(report, one)), (yield self.apply(report, other))
                if first_difference(one, other, type.result, rounding_of_sums, shown) is not None:
                    broken.append(law)
        return broken

    def _drawn(self) -> int:
        """Return the number of draws so far."""
        return self.draws.calls().total() + self.draws.loose.total()


def violation(law: str, span: Span | None) -> ValidationError:
    """Return the warning that the aggregation at a source position breaks a law."""
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
