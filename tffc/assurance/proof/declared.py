"""The types that a program declares for terms, and those that a form declares for others.

Graphs do not tell the types of what passes between them. Systems and TensorFlow believe those that
a section declares, so a form declares only what the program does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from tffc.assurance.proof.constants import kind_of_constant
from tffc.assurance.proof.terms import Slot, Terms, has_parts
from tffc.graphs.resources import ResourceNode
from tffc.language.dtypes import BY_NUMBER
from tffc.language.types import SequenceType, TensorType, Type
from tffc.language.wire.resources import resource_type


class Declared:
    """The types that the program declares.

    `of_form_alone` is a type that the form declares for a term that is not known to have it.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._types: dict[int, set[Type]] = {}
        self._alike: dict[int, set[int]] = {}
        self._is_form = False
        self.of_form_alone: Type | None = None

    def begin_form(self) -> None:
        """From here on, types are declared by the form."""
        self._is_form = True

    def declare(self, kinds: Iterable[Type], terms: Iterable[int]) -> None:
        """Note that the leaves of a value are declared to be of these types."""
        for leaf, term in zip(kinds, terms, strict=True):
            if not self._is_form:
                self.define(leaf, term)
            elif self.of_form_alone is None and not self.has(term, leaf.is_assignable_from):
                self.of_form_alone = leaf

    def define(self, leaf: Type, term: int) -> None:
        """Note that a term of the program, or of the law that a form has to hold, is of a type."""
        self._types.setdefault(term, set()).add(leaf)
        self._alike.setdefault(self._terms.structures[term], set()).add(term)

    def has(self, term: int, fits: Callable[[Type], bool]) -> bool:
        """Tell whether one of the types that a term is known to have fits.

        A run of the form is the same as none of the program, but all that are like it have it.
        """
        own = _type_of_label(self._terms.labels[term])
        if own is not None:
            return fits(own)
        if term in self._types:
            return any(map(fits, self._types[term]))
        alike = self._alike.get(self._terms.structures[term], ())
        return bool(alike) and all(any(map(fits, self._types[other])) for other in alike)

    def elements_like(self, term: int) -> list[Type]:
        """Return the types that the program declares for the elements of the sequences that are
        like this one."""
        alike = self._alike.get(self._terms.structures[term], ())
        return [element for other in alike for element in self.elements_of(other)]

    def elements_of(self, term: int) -> list[Type]:
        """Return the types that the program declares for the elements of a sequence."""
        kinds = self._types.get(term, ())
        return [kind.element for kind in kinds if isinstance(kind, SequenceType)]


def _type_of_label(label: Hashable) -> TensorType | None:
    """Return the type of a constant, of a resource, or of an element of an accumulator or of an
    update; None for what may have any type."""
    kind = None
    if isinstance(label, ResourceNode):
        return resource_type(label)
    if isinstance(label, Slot):
        kind = label.kind
    elif has_parts(label) and len(label) == 2 and label[0] == "Const":
        kind = kind_of_constant(label[1])
    if kind is None or kind[0] not in BY_NUMBER:
        return None
    return TensorType(BY_NUMBER[kind[0]], kind[1])
