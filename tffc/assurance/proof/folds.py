"""Aggregations as symbolic folds over the clients, split into independent ones.

In a fold, a system starts partial aggregates from zero, accumulates clients' updates into them, and
merges them in any grouping.  The accumulator is split: two leaves belong to one fold if
accumulating or merging one of them uses the other.  So an aggregation is the same term whether it
runs alone or beside others in a component.
"""

from __future__ import annotations

from collections.abc import Sequence

from tffc.assurance.proof import arithmetic
from tffc.assurance.proof.attributes import number
from tffc.assurance.proof.sequences import Place
from tffc.assurance.proof.terms import Kind, Slot, Terms
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import Value, elements_of, from_leaves, leaf_terms, leaves_of
from tffc.language.types import StructType, TensorType, Type

ACCUMULATE, MERGE = Place("accumulate"), Place("merge")
ONE, OTHER, UPDATE = "one", "other", "update"


class Symbols:
    """The symbols that the functions of a fold are applied to, one for each leaf: `one` and `other`
    accumulator, and the `update` of a client."""

    def __init__(self, terms: Terms, accumulator: Type, update: Type) -> None:
        self.terms = terms
        self.accumulator = accumulator
        kinds = accumulator, accumulator, update
        self.slots = [
            [terms.slot(which, _kind(leaf), i) for i, leaf in enumerate(leaves_of(kind))]
            for which, kind in zip((ONE, OTHER, UPDATE), kinds, strict=True)
        ]
        self.one, self.other, self.update = map(from_leaves, kinds, self.slots)


def _kind(leaf: Type) -> Kind:
    """Return the element type of a leaf, and the sizes of its shape, which may be None."""
    return number(leaf), leaf.shape if isinstance(leaf, TensorType) else ()


def fold(
    symbols: Symbols, *, zero: Value, accumulated: Value, merged: Value, update: Value
) -> Value:
    """Return the accumulator after all clients.

    It starts from `zero`.  `accumulated` and `merged` are expressed in `symbols`, and `update` is
    the value of an arbitrary client.

    Raises:
      Undecided: the accumulator's structure changes.
    """
    parts = tuple(map(leaf_terms, (zero, accumulated, merged, update)))
    zeros, steps, joined, _ = parts
    if not len(zeros) == len(steps) == len(joined):
        raise Undecided("an accumulator whose structure changes")
    terms, uses = symbols.terms, _Uses(symbols.terms)
    results: dict[int, int] = {}
    for group in _groups([uses.of(pair) for pair in zip(steps, joined, strict=True)]):
        taken = uses.updates([steps[leaf] for leaf in group])
        whole = _fold_of_group(symbols, group, taken, parts)
        for place, leaf in enumerate(group):
            results[leaf] = terms.value(("folded", place), (whole,), fails=False)
    return from_leaves(symbols.accumulator, (results[leaf] for leaf in range(len(zeros))))


def _fold_of_group(
    symbols: Symbols, group: list[int], taken: list[int], parts: tuple[Sequence[int], ...]
) -> int:
    """Return the term of the fold of a group of leaves, which uses the update's leaves in `taken`.

    Symbols are renumbered by their position in the group, so that the term does not depend on which
    other leaves the accumulator and the update have.
    """
    zero, accumulate, merge, values = parts
    terms, new = symbols.terms, dict[int, int]()
    for slots, numbers in zip(symbols.slots, (group, group, taken), strict=True):
        for place, index in enumerate(numbers):
            new[slots[index]] = terms.slot_at(slots[index], place)
    steps = terms.replaced([accumulate[leaf] for leaf in group], new)
    joined = terms.replaced([merge[leaf] for leaf in group], new)
    zeros = [zero[leaf] for leaf in group]
    children = (*zeros, *steps, *joined, *(values[index] for index in taken))
    whole = terms.value(("fold", len(group), len(taken)), children)
    # The symbols inside are bound by the fold: substitution must not reach them from outside.
    terms.is_open[whole] = False
    return whole


class _Uses:
    """The symbols that terms depend on, as bit sets; each term is visited once."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, roots: Sequence[int]) -> int:
        """Return the leaves of the two accumulators that terms depend on, as a bit set."""
        return self._all(roots)[0]

    def updates(self, roots: Sequence[int]) -> list[int]:
        """Return the indices of the leaves of a client's update that terms depend on."""
        bits = self._all(roots)[1]
        return [index for index in range(bits.bit_length()) if bits >> index & 1]

    def _all(self, roots: Sequence[int]) -> tuple[int, int]:
        """Return the bit sets of accumulator leaves and of update leaves that terms depend on."""
        terms, known = self._terms, self._known
        stack = list(roots)
        while stack:
            term = stack[-1]
            label = terms.labels[term]
            if term in known:
                stack.pop()
            elif not terms.is_open[term]:
                # A closed term contains no symbol.
                known[stack.pop()] = 0, 0
            elif isinstance(label, Slot):
                bit = 1 << label.number
                known[stack.pop()] = (0, bit) if label.which == UPDATE else (bit, 0)
            elif missing := [child for child in terms.children[term] if child not in known]:
                stack.extend(missing)
            else:
                held = updated = 0
                for child in terms.children[term]:
                    held |= known[child][0]
                    updated |= known[child][1]
                known[stack.pop()] = held, updated
        held = updated = 0
        for root in roots:
            held |= known[root][0]
            updated |= known[root][1]
        return held, updated


def _groups(uses: list[int]) -> list[list[int]]:
    """Return the groups of leaves that use one another, given the bit set of the leaves that each
    uses."""
    # Union-find, with path halving.
    leader = list(range(len(uses)))

    def find(leaf: int) -> int:
        while leader[leaf] != leaf:
            leader[leaf] = leader[leader[leaf]]
            leaf = leader[leaf]
        return leaf

    for leaf, bits in enumerate(uses):
        while bits:
            lowest = bits & -bits
            bits ^= lowest
            leader[find(lowest.bit_length() - 1)] = find(leaf)
    groups: dict[int, list[int]] = {}
    for leaf in range(len(uses)):
        groups.setdefault(find(leaf), []).append(leaf)
    return list(groups.values())


def plain(
    terms: Terms, op: str, value: Value, zero: Value, kind: Type
) -> tuple[Value, tuple[Value, Value]]:
    """Return a fold that combines each leaf separately by one operation on its type, and the values
    of accumulating and merging."""
    results: list[int] = []
    steps: tuple[list[int], list[int]] = [], []
    for leaf, start, tensor in zip(
        leaf_terms(value), leaf_terms(zero), leaves_of(kind), strict=True
    ):
        symbols = (terms.slot(which, _kind(tensor), 0) for which in (ONE, OTHER, UPDATE))
        one, other, update = symbols
        step = arithmetic.operation(terms, op, (one, update), tensor)
        joined = arithmetic.operation(terms, op, (one, other), tensor)
        whole = terms.value(("fold", 1, 1), (start, step, joined, leaf))
        terms.is_open[whole] = False
        results.append(terms.value(("folded", 0), (whole,)))
        steps[0].append(step)
        steps[1].append(joined)
    accumulated, merged = (from_leaves(kind, leaves) for leaves in steps)
    return from_leaves(kind, results), (accumulated, merged)


def nothing(terms: Terms, kind: Type) -> Value:
    """Return zeros; for a leaf of unknown shape, a term for the missing start value of its sum."""
    zeros: list[int] = []
    for leaf in leaves_of(kind):
        if isinstance(leaf, TensorType) and leaf.is_fully_defined():
            zeros.append(arithmetic.leaf_zeros(terms, leaf))
        else:
            zeros.append(terms.value(("no value yet", str(leaf))))
    return from_leaves(kind, zeros)


def secure(terms: Terms, uri: str, value: Value, bound: Value, types: tuple[Type, Type]) -> Value:
    """Return a secure sum under a bound; one bound may apply to all leaves of a struct."""
    kind, bound_type = types
    sums: list[int] = []
    stack: list[tuple[Value, Type, Value, Type]] = [(value, kind, bound, bound_type)]
    while stack:
        part, part_type, limit, limit_type = stack.pop()
        if isinstance(limit_type, StructType) and isinstance(part_type, StructType):
            if len(part_type) != len(limit_type):
                raise Undecided("a bound of another structure than the values")
            parts, limits = elements_of(part), elements_of(limit)
            rows = zip(parts, part_type.types, limits, limit_type.types, strict=True)
            stack.extend(reversed(list(rows)))
        elif not isinstance(limit, int):
            raise Undecided("a bound of another structure than the values")
        else:
            sums.extend(terms.value((uri,), (leaf, limit)) for leaf in leaf_terms(part))
    return from_leaves(kind, sums)
