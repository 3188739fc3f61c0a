"""Terms: symbolic values, hash-consed.

A term is a number.  It has a label, which names an operation, and children, the terms to which the
operation is applied.  Equal labels with equal children are the same term.  Operations that draw,
keep state or have effects are an exception: their results differ from run to run, so each run is
another term.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeGuard

from tffc.assurance.proof.undecided import Undecided
from tffc.language.size import max_size
from tffc.support.errors import Span

PURE, OWN, DRAWN, IMPURE = range(4)
"""The taint of a term: computed from values alone, from state that is new in each run, from a draw,
or from another effect.  A term has at least the taint of its children."""

SLOT = "slot"
GROUP = "group"
OUTPUT = "output"
ELEMENTS = "elements"
"""The elements of a dataset, computed once, see `tffc.assurance.proof.iterations`."""


Kind: TypeAlias = tuple[int, tuple[int | None, ...] | None]
"""An element type, by its number, and the sizes of a shape, which may be None."""


class Slot(NamedTuple):
    """The label of a symbol to be substituted later: one of a kind, in what `which` names."""

    operation: str
    which: str
    kind: Kind
    number: int


def has_parts(label: Hashable) -> TypeGuard[tuple[Hashable, ...]]:
    """Tell whether a label, or a part of one, consists of parts."""
    return isinstance(label, tuple)


class Terms:
    """All terms of one proof.

    `span` is the user's source line being evaluated, if known.  `origins` maps each term that is a
    run to the first term of that run, since substitution can make several terms of one run.
    `strict` holds the runs that draw or have effects; the others only use state that is new in each
    run, and each component may have a copy of it.  `run` is the number of the current component,
    and `runs` has for each run the number of its component.  The first `of_program` terms belong to
    the program, and `of_law` holds the structures of those of the law that its form has to hold
    besides.  `is_open` is true for terms with a symbol that can still be substituted.  `fails`
    is true for terms whose computation may fail.  `acts` holds the runs whose effects can be seen
    from outside, which draws cannot.  `structures` has a number for each term, the same for terms
    that differ only in the run, in the element of an accumulator that a symbol represents, or in
    whether the elements of a dataset are computed once: the first of them.  `branches` holds the
    operations of which only some outputs exist, so that also those who wait for an output wait for
    that one.
    """

    def __init__(self) -> None:
        self.labels: list[Hashable] = []
        self.children: list[tuple[int, ...]] = []
        self.taints: list[int] = []
        self.is_open: list[bool] = []
        self.fails: list[bool] = []
        self.acts: list[int] = []
        self.branches: set[int] = set()
        self.spans: dict[int, Span] = {}
        self.origins: dict[int, int] = {}
        self.strict: set[int] = set()
        self.runs: dict[int, int] = {}
        self.run = 0
        self.span: Span | None = None
        self.count: int | None = None
        self.structures: list[int] = []
        self._known: dict[tuple[Hashable, tuple[int, ...]], int] = {}
        self._structures: dict[tuple[Hashable, tuple[int, ...]], int] = {}
        self.of_program = 0
        self.of_law: set[int] = set()
        self._most = self._left = max_size()

    def value(
        self,
        label: Hashable,
        children: tuple[int, ...] = (),
        taint: int = PURE,
        *,
        fails: bool = True,
    ) -> int:
        """Return the term of a deterministic operation; `taint` is that of the operation itself,
        and `fails` tells whether it may fail for any inputs."""
        key = (label, children)
        term = self._known.get(key)
        if term is None:
            term = self._known[key] = self._add(label, children, taint, fails)
        return term

    def output(self, term: int, port: int) -> int:
        """Return an output of an operation; the first one is the operation itself, unless it does
        not always exist."""
        if port or term in self.branches:
            return self.value((OUTPUT, port), (term,), fails=False)
        return term

    def slot(self, which: str, kind: Kind, number: int) -> int:
        """Return a symbol of a type, to be substituted later."""
        symbol = self.value(Slot(SLOT, which, kind, number), fails=False)
        self.is_open[symbol] = True
        return symbol

    def slot_at(self, slot: int, number: int) -> int:
        """Return the symbol with another number, but otherwise like `slot`."""
        label = self.labels[slot]
        assert isinstance(label, Slot)
        return self.slot(label.which, label.kind, number)

    def instance(
        self, label: Hashable, children: tuple[int, ...], taint: int, *, fails: bool = True
    ) -> int:
        """Return a new run of an operation.

        In the body of a function, it is identified by the number of runs before it there, because
        each call runs the whole body again.
        """
        if self.count is not None:
            self.count += 1
            return self.value((label, "run", self.count), children, taint, fails=fails)
        term = self._add(label, children, taint, fails)
        self.origins[term] = term
        self.runs[term] = self.run
        if taint >= DRAWN:
            self.strict.add(term)
        if taint >= IMPURE:
            self.acts.append(term)
        return term

    def _add(self, label: Hashable, children: tuple[int, ...], taint: int, fails: bool) -> int:
        taints, is_open = self.taints, False
        for child in children:
            if taints[child] > taint:
                taint = taints[child]
            is_open = is_open or self.is_open[child]
            fails = fails or self.fails[child]
        term = len(self.labels)
        if term >= self._most:
            raise Undecided("size", f"more than {self._most} operations")
        self.labels.append(label)
        self.children.append(children)
        self.is_open.append(is_open)
        taints.append(taint)
        self.fails.append(fails)
        alike = label[:-1] if isinstance(label, Slot) else label
        numbers = tuple([self.structures[child] for child in children])
        is_alike = label == ELEMENTS
        self.structures.append(
            numbers[0] if is_alike else self._structures.setdefault((alike, numbers), term)
        )
        if self.span is not None:
            self.spans[term] = self.span
        return term

    def spend(self, steps: int) -> None:
        """Count evaluation steps, which may be many more than terms, against the limit."""
        self._left -= steps
        if self._left < 0:
            raise Undecided("size", f"more than {self._most} steps")

    def replaced(self, roots: Iterable[int], new: Mapping[int, int]) -> tuple[int, ...]:
        """Return the roots with symbols substituted.

        A run with other inputs is still the same run.
        """
        roots = tuple(roots)
        copies = dict(new)
        stack = list(roots)
        while stack:
            term = stack[-1]
            if term in copies:
                stack.pop()
            elif not self.is_open[term]:
                copies[stack.pop()] = term
            elif missing := [child for child in self.children[term] if child not in copies]:
                stack.extend(missing)
            else:
                children = tuple(copies[child] for child in self.children[term])
                copies[stack.pop()] = self._again(term, children)
        return tuple(copies[root] for root in roots)

    def _again(self, term: int, children: tuple[int, ...]) -> int:
        """Return a term with other children."""
        label = self.labels[term]
        if children == self.children[term]:
            return term
        if term not in self.origins:
            copy = self.value(label, children, fails=self.fails[term])
            if term in self.branches:
                self.branches.add(copy)
            return copy
        origin = self.origins[term]
        # The same run with the same inputs must be the same term.
        key = ((label, origin), children)
        if key not in self._known:
            self._known[key] = self._add(label, children, self.taints[origin], self.fails[origin])
            self.origins[self._known[key]] = origin
        return self._known[key]
