"""What `merge` of MergeableForm has to compute, from what the results of groups are.

Each leaf of the result of a group is a leaf of a fold over its clients, a secure sum, or a value
that does not depend on the clients and is the same in all groups.  Two groups are merged as the
fold merges two accumulators, by adding two secure sums, or by taking the value of either group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tffc.assurance.proof import arithmetic, folds
from tffc.assurance.proof.machine import Machine
from tffc.assurance.proof.operators import EACH
from tffc.assurance.proof.sequences import Place
from tffc.assurance.proof.terms import DRAWN, Slot, Terms, has_parts
from tffc.assurance.proof.text import expression
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import Value, from_leaves, leaf_terms, leaves_of
from tffc.language.types import StructType, Type

MODULAR = "federated_secure_modular_sum"
SECURE = ("federated_secure_sum_bitwidth", "federated_secure_sum", MODULAR)

SIDES = frozenset({EACH.side, folds.ACCUMULATE.side, folds.MERGE.side})
"""The sides of places whose code runs once for each client or each merge, in whatever group."""


class Merging:
    """The merging of the results of groups, of which `partial` is one.

    It is made before `merge` runs.  Its `pair` of symbols stands for the results of two groups.

    Raises:
      Undecided: no rule is about a leaf of the result.
    """

    def __init__(self, machine: Machine, kind: Type, partial: Value) -> None:
        self.terms = terms = machine.terms
        self._declared = machine.sections.declared
        self._type = kind
        self._kinds = leaves_of(kind)
        symbols = folds.Symbols(terms, kind, StructType([]))
        self.pair = symbols.one, symbols.other
        self._slots = symbols.slots[:2]
        self._leaves = leaf_terms(partial)
        for slots in self._slots:
            terms.of_law.update(terms.structures[slot] for slot in slots)
        # One symbol stands for all leaves of a result that are equal.
        self._first = {term: leaf for leaf, term in reversed(list(enumerate(self._leaves)))}
        self._choices = list(map(self._choices_of, self._leaves))

    def law(self, merged: Value) -> tuple[Value, Value, Type]:
        """Return what `merge` has to give for the symbols, what it gave, and the type of both."""
        new = {
            slots[leaf]: slots[self._first[term]]
            for slots in self._slots
            for leaf, term in enumerate(self._leaves)
        }
        given = self.terms.replaced(leaf_terms(merged), new)
        wanted = [
            one if one in choices else choices[0]
            for one, choices in zip(given, self._choices, strict=True)
        ]
        return from_leaves(self._type, wanted), from_leaves(self._type, given), self._type

    def _choices_of(self, term: int) -> list[int]:
        """Return the terms that a merged leaf may be, from what it is for one group."""
        terms, first = self.terms, self._first
        label = terms.labels[term]
        if has_parts(label) and label[0] == "folded" and isinstance(label[1], int):
            return [self._folded(terms.children[term][0], label[1])]
        match label:
            case (str(uri),) if uri == MODULAR:
                modulus = terms.children[term][1]
                carried = (self._slots[0][first[modulus]],) if modulus in first else ()
                return [self._sum_modulo(first[term], known) for known in (*carried, modulus)]
            case (str(uri),) if uri in SECURE:
                return [self._sum(first[term])]
            case _:
                self._check_steady(term)
                return [*(slots[first[term]] for slots in self._slots), term]

    def _folded(self, whole: int, place: int) -> int:
        """Return the merged leaf at a place of a fold, in the symbols of its leaves."""
        terms = self.terms
        label = terms.labels[whole]
        assert has_parts(label)
        size = label[1]
        assert isinstance(size, int)
        joined = terms.children[whole][2 * size + place]
        new: dict[int, int] = {}
        for slot, symbol in _slots(terms, joined):
            leaf = self._first.get(terms.value(("folded", symbol.number), (whole,)))
            if leaf is None:
                raise Undecided("an accumulator of which a group gives a part only")
            side = (folds.ONE, folds.OTHER).index(symbol.which)
            new[slot] = self._slots[side][leaf]
        return terms.replaced([joined], new)[0]

    def _sum(self, leaf: int) -> int:
        pair = self._slots[0][leaf], self._slots[1][leaf]
        return self._operation("AddV2", pair, leaf)

    def _sum_modulo(self, leaf: int, modulus: int) -> int:
        """Return the sum of two remainders, less a modulus before it can overflow."""
        one, other = (slots[leaf] for slots in self._slots)
        less = self._operation("Sub", (other, modulus), leaf)
        total = self._operation("AddV2", (one, less), leaf)
        return self._operation("FloorMod", (total, modulus), leaf)

    def _operation(self, op: str, inputs: tuple[int, ...], leaf: int) -> int:
        """Return an operation on numbers of the type of a leaf."""
        term = arithmetic.operation(self.terms, op, inputs, self._kinds[leaf])
        self._declared.define(self._kinds[leaf], term)
        self.terms.of_law.add(self.terms.structures[term])
        return term

    def _check_steady(self, root: int) -> None:
        """Check that a term is the same in all groups."""
        terms = self.terms
        if terms.taints[root] >= DRAWN or any(map(self._is_of_clients, _within(terms, [root]))):
            raise Undecided("a result of a group that is no aggregation", expression(terms, root))

    def _is_of_clients(self, term: int) -> bool:
        label = self.terms.labels[term]
        return has_parts(label) and label[0] in ("data", "fold", *SECURE)


def check_repeated(terms: Terms, run: int) -> None:
    """Check that what a component draws or does, it does for each client or each merge: whatever it
    does once, it would do for each group.

    Raises:
      Undecided: it does something once.
    """
    for term in sorted(terms.strict):
        label = terms.labels[term]
        place = label[1] if has_parts(label) and len(label) > 1 else None
        if terms.runs.get(term) == run and not (isinstance(place, Place) and place.side in SIDES):
            raise Undecided("a draw or an effect in each group", expression(terms, term))


def _slots(terms: Terms, root: int) -> Iterator[tuple[int, Slot]]:
    """Yield the symbols of accumulators in a term."""
    for term in _within(terms, [root]):
        label = terms.labels[term]
        if isinstance(label, Slot) and label.which in (folds.ONE, folds.OTHER):
            yield term, label


def _within(terms: Terms, roots: Iterable[int]) -> Iterator[int]:
    """Yield the terms that some terms depend on, each once; folds bind the symbols inside them."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            yield term
            stack.extend(terms.children[term])
