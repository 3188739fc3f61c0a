"""Comparison of what no result needs: effects, initializations, and nodes.

`Comparison` follows the results.  What else a component does must be what the program does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from tffc.assurance.proof.compare import Comparison, Mismatch
from tffc.assurance.proof.runs import Owed
from tffc.assurance.proof.sections import AFTER
from tffc.assurance.proof.sequences import operation_of
from tffc.assurance.proof.terms import DRAWN, ELEMENTS, GROUP, OUTPUT, PURE, Slot, Terms
from tffc.assurance.proof.text import expression
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.operations.failing import may_fail, operations_under


class Unneeded:
    """The comparison of what both sides do besides the results.

    Each effect that can be seen from outside must be done by both sides, also if no result needs
    it.  The initialization of a section may fail or have effects even if no result needs the state
    that it makes.  Draws of the program that no result needs may be left out.
    """

    def __init__(self, comparison: Comparison, terms: Terms) -> None:
        self._comparison = comparison
        self._terms = terms
        self._acts = set(terms.acts)

    def check(
        self, program: Iterable[int], form: Iterable[int], owed: Sequence[Owed], of_form: int
    ) -> None:
        """Check what both sides do besides their results, which have been compared.

        Raises:
          Undecided: it may differ.
        """
        terms = self._terms
        acts = [terms.origins.get(term, term) for term in terms.acts]
        ours = [term for term in acts if term < terms.of_program]
        theirs = [term for term in acts if term >= terms.of_program]
        if not (owed or terms.strict):
            return
        if owed:
            needed = _reached(terms, [*program, *ours])
            done = [owing for owing in owed[:of_form] if not needed.isdisjoint(owing.results)]
            self._pair(_terms_of(done), _terms_of(owed[of_form:]), "an initialization", copies=True)
        comparison = self._comparison
        self._pair(
            [term for term in ours if term not in comparison.of_program],
            [term for term in theirs if term not in comparison.of_form],
            "an effect that no result needs",
            copies=False,
        )
        draws = sorted(terms.strict - self._acts)
        self._pair(
            [
                term
                for term in draws
                if term < terms.of_program and term not in comparison.of_program
            ],
            [term for term in draws if term >= terms.of_program and term not in comparison.of_form],
            "a draw that no result needs",
            copies=False,
            fewer=True,
        )
        self._check_failures([*form, *theirs, *_terms_of(owed)])

    def _check_failures(self, roots: list[int]) -> None:
        """Check that nothing of the form may fail where nothing of the program does.

        What the form computes without need, the program computes from other draws or from other
        elements of an accumulator; from the same values, both would fail.
        """
        terms = self._terms
        needed = _reached(terms, roots)
        for term in range(terms.of_program, len(terms.labels)):
            if term in needed or not terms.fails[term] or not self._may_differ(term):
                continue
            raise Undecided("a failure that no result needs", self._text(term))

    def _may_differ(self, term: int) -> bool:
        """Tell whether a term may fail where one of the same structure does not."""
        terms = self._terms
        op = operation_of(terms.labels[term])
        if op in (GROUP, AFTER, OUTPUT, ELEMENTS, "NoOp"):
            return False
        children = terms.children[term]
        if terms.taints[term] < DRAWN and not terms.is_open[term]:
            return False
        if term in terms.strict and term not in self._acts:
            return any(terms.taints[child] != PURE or terms.is_open[child] for child in children)
        if not may_fail(op):
            return False
        return op not in operations_under("fails by shapes alone") or not all(
            _has_sizes(terms.labels[child]) for child in children
        )

    def _pair(
        self, ours: list[int], theirs: list[int], what: str, *, copies: bool, fewer: bool = False
    ) -> None:
        """Check that two lists have the same terms.

        With `copies`, several terms of the form may correspond to one of the program, such as those
        of components that all have a copy of its state.  With `fewer`, the form may leave out some.
        """
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for side, side_terms in enumerate((ours, theirs)):
            for term in dict.fromkeys(side_terms):
                groups.setdefault(self._terms.structures[term], ([], []))[side].append(term)
        for one, other in groups.values():
            if fewer:
                del one[len(other) :]
                if not other:
                    continue
            if not one or not other or not (copies or len(one) == len(other)):
                raise Undecided(what, self._text((one or other)[0]))
            pairs = self._by_run(one, other) if copies and len({*one, *other}) > 2 else None
            if pairs is None:
                if len(one) != len(other):
                    raise Undecided(what, f"not done as often: {self._text(one[0])}")
                pairs = list(zip(one, other, strict=True))
            for first, second in pairs:
                self._same(first, second, what)

    def _by_run(self, ours: list[int], theirs: list[int]) -> list[tuple[int, int]] | None:
        """Return pairs of terms whose runs correspond already, if all terms are in pairs."""
        of_form = self._comparison.of_form
        by_run = {self._first_run(term): term for term in ours}
        pairs: list[tuple[int, int]] = []
        for term in theirs:
            run = self._first_run(term)
            mine = by_run.get(of_form.get(run, run))
            if mine is None:
                return None
            pairs.append((mine, term))
        return pairs if {mine for mine, _ in pairs} == set(ours) else None

    def _first_run(self, root: int) -> int:
        """Return the first run that a term depends on, or the term itself if it depends on none."""
        terms, stack, seen = self._terms, [root], set[int]()
        while stack:
            term = stack.pop()
            if term in terms.origins and not terms.children[term]:
                return terms.origins[term]
            if term not in seen and terms.taints[term] != PURE:
                seen.add(term)
                stack.extend(reversed(terms.children[term]))
        return root

    def _same(self, one: int, other: int, what: str) -> None:
        try:
            self._comparison.check(one, other)
        except Mismatch:
            raise Undecided(what, self._text(one)) from None

    def _text(self, term: int) -> str:
        return expression(self._terms, term)


def _terms_of(owed: Iterable[Owed]) -> list[int]:
    return [term for owing in owed for term in owing.terms]


def _reached(terms: Terms, roots: Iterable[int]) -> set[int]:
    """Return the terms that some terms depend on, themselves included."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            stack.extend(terms.children[term])
    return seen


def surplus(terms: Terms) -> int | None:
    """Return the first term of the form without an equal in the program or the form's law, or None.

    Terms that no result needs are not compared, but TensorFlow loads them and may refuse them.
    Here, terms are equal if they have the same structure.
    """
    for term in range(terms.of_program, len(terms.labels)):
        structure = terms.structures[term]
        is_own = structure >= terms.of_program and structure not in terms.of_law
        if is_own and terms.labels[term] != GROUP:
            return term
    return None


def _has_sizes(label: Hashable) -> bool:
    """Tell whether a label is not that of a symbol of unknown size."""
    if not isinstance(label, Slot):
        return True
    _, shape = label.kind
    return shape is not None and None not in shape
