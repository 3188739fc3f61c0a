"""What passes between the server and the clients.

The results of a round do not tell what its sides hand to one another: a form could send the raw
data of its clients beside what the program sends, and use nothing of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tffc.assurance.proof.compare import Comparison
from tffc.assurance.proof.terms import Terms
from tffc.assurance.proof.text import expression
from tffc.assurance.proof.undecided import Undecided


@dataclasses.dataclass(slots=True)
class Carried:
    """The terms that one side hands to the other, in one evaluation of a round.

    `broadcast` go to the clients.  `aggregated` come from each client and may be seen by whoever
    aggregates, and `secured` are those of secure sums.  `collected` are what a client hands on for
    either.
    """

    broadcast: list[int] = dataclasses.field(default_factory=list[int])
    aggregated: list[int] = dataclasses.field(default_factory=list[int])
    secured: list[int] = dataclasses.field(default_factory=list[int])
    collected: list[int] = dataclasses.field(default_factory=list[int])


def check_carried(comparison: Comparison, terms: Terms, program: Carried, form: Carried) -> None:
    """Check that a form hands on only what the program does, after its results were compared.

    Raises:
      Undecided: it hands on something else.
    """
    open_to_all = program.aggregated
    for ours, theirs in (
        (program.broadcast, form.broadcast),
        (open_to_all, form.aggregated),
        (program.secured, form.secured),
        ([*open_to_all, *program.secured], form.collected),
    ):
        other = _first_other(comparison, terms, ours, theirs)
        if other is not None:
            raise Undecided("a value that the program does not send", expression(terms, other))


def _first_other(
    comparison: Comparison, terms: Terms, program: Iterable[int], form: Iterable[int]
) -> int | None:
    """Return the first term of the form that corresponds to none of the program, or None."""
    alike: dict[int, dict[int, None]] = {}
    for term in program:
        alike.setdefault(terms.structures[term], {})[term] = None
    for term in dict.fromkeys(form):
        known = alike.get(terms.structures[term], {})
        if term not in known and not any(comparison.correspond(other, term) for other in known):
            return term
    return None
