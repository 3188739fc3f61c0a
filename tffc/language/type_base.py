"""The base of all types: printed forms, assignability and equivalence.

    tensors     equal element types; the target's dimensions equal or unknown
    structs     equal length; a source element is unnamed or has the target's name
    functions   contravariant in the parameter, covariant in the result
    federated   equal placement; an all-equal target needs an all-equal source

Python containers make no difference there.  Formatted text breaks inside every struct that has
elements and nowhere else; there is no limit on the width of a line.
"""

from __future__ import annotations

import itertools
import operator
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from tffc.language.notation.pieces import Mark, expanded, layout
from tffc.language.size import size_text, tree_size
from tffc.language.term import Term, set_hash
from tffc.support.errors import LanguageTypeError
from tffc.support.printable import printable

LONGEST, SHOWN = 2**18, 1000
"""Of a text with more than `LONGEST` pieces, the first `SHOWN` are shown."""

MESSAGE_WIDTH = 100
"""Types whose compact text is longer than this are shown with a difference."""

MAX_FORMATTED = 500
"""Types whose formatted text is longer than this are shown on one line."""

MAX_TEXT = 10_000
"""Types whose compact text is longer than this are shown without a difference, which takes long to
compute; the place that differs is named anyway."""

FLAGS = {
    name: operator.attrgetter(name) for name in ("has_container", "has_placement", "is_abstract")
}
"""Properties of a type that hold if they hold for a type inside it."""

PIECES = operator.methodcaller("pieces")
PYTHON_PIECES = operator.methodcaller("python_pieces")


class FormerQuestion:
    """A method of types in releases of TFF before 0.60, which tells whether a type is of a class.

    In a struct, an element of the same name comes first.  These are descriptors, because a
    `__getattr__` makes Python look up all attributes of types slowly.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    def __get__(self, asked: Type | None, owner: Any) -> Any:
        if asked is None:
            return self
        element = asked.element_named(self._name)
        if element is not None:
            return element
        warnings.warn(
            f"{self._name}() is now isinstance(..., tff.{self._kind})",
            DeprecationWarning,
            stacklevel=2,
        )
        return lambda: any(base.__name__ == self._kind for base in type(asked).__mro__)


class Interning(type):
    """Gives equal types the same object."""

    _known: ClassVar[weakref.WeakKeyDictionary[Any, weakref.ref[Any]]] = weakref.WeakKeyDictionary()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        type = super().__call__(*args, **kwargs)
        type.seal()
        return Interning.interned(type)

    @staticmethod
    def interned(type: Any) -> Any:
        """Return the one object for all types equal to this one."""
        known = Interning._known.get(type)
        first = None if known is None else known()
        if first is None:
            Interning._known[type] = weakref.ref(type)
            return type
        return first


class Type(Term, metaclass=Interning):
    """A type.  `str` gives the compact text, `repr` the Python expression that makes it; a text of
    more than 262,144 pieces is cut short.

    `is_abstract` tells whether it is or holds a type variable, `has_placement` a federated type and
    `has_container` a struct with a Python container.
    """

    __slots__ = ("__weakref__", "has_container", "has_placement", "is_abstract")
    __match_args__: tuple[str, ...] = ()
    has_container: bool
    has_placement: bool
    is_abstract: bool
    _flag: ClassVar[str] = ""  # the flag that is set for every type of the class

    is_federated = FormerQuestion("FederatedType")
    is_function = FormerQuestion("FunctionType")
    is_placement = FormerQuestion("PlacementType")
    is_sequence = FormerQuestion("SequenceType")
    is_struct = FormerQuestion("StructType")
    is_struct_with_python = FormerQuestion("StructWithPythonType")
    is_tensor = FormerQuestion("TensorType")

    def __dir__(self) -> list[str]:
        """Return the names of attributes, without those of former releases."""
        return [
            name
            for name in super().__dir__()
            if not isinstance(getattr(Type, name, None), FormerQuestion)
        ]

    def element_named(self, name: str) -> Type | None:
        """Return the element of a struct of this name, or None."""
        return None

    def pieces(self, spell: Callable[[str], str] = printable) -> list[Any]:
        """Return the pieces of the text, the types inside among them; `spell` writes names."""
        raise AssertionError(f"{type(self).__name__} does not define its text")

    def python_pieces(self) -> list[Any]:
        """Return the pieces of the Python expression, the types inside among them."""
        pieces: list[Any] = [f"{type(self).__name__}("]
        for index, name in enumerate(type(self).__match_args__):
            value = getattr(self, name)
            pieces += (", " if index else "", value if isinstance(value, Type) else repr(value))
        return [*pieces, ")"]

    def pairs_with(self, source: Any) -> list[tuple[Type, Type, str]] | None:
        """Return what must be assignable so that this type is assignable from `source`: pairs of
        target and source with the step that leads to them; None if it never is."""
        raise AssertionError(f"{type(self).__name__} does not define what is assignable to it")

    def seal(self) -> None:
        children = self.children()
        for flag, ask in FLAGS.items():
            object.__setattr__(self, flag, flag == self._flag or any(map(ask, children)))
        # Every type is looked up by its hash, and the types in it have theirs.
        set_hash(self, children)

    def __str__(self) -> str:
        return self.compact_representation()

    def __repr__(self) -> str:
        """Return the Python expression that makes the type, containers after `as`."""
        return "".join(_shown(self, PYTHON_PIECES))

    def compact_representation(self) -> str:
        """Return the type on one line."""
        return "".join(_shown(self, PIECES))

    def formatted_representation(self) -> str:
        """Return the type with the elements of every struct on lines of their own."""
        return layout(_cut(self, expanded([self], PIECES)))

    def _repr_html_(self) -> str:
        from tffc.language.notation.cell import notation_cell

        return notation_cell("Type", self.formatted_representation())

    def is_assignable_from(self, source: Type) -> bool:
        """Tell whether a value of type `source` can stand where this type is needed.

        Raises:
          LanguageTypeError: an abstract type is met, which is not comparable.
        """
        return first_difference(self, source) is None

    def is_equivalent_to(self, other: Type) -> bool:
        """Tell whether each of the two types is assignable from the other."""
        return self.is_assignable_from(other) and other.is_assignable_from(self)

    def is_identical_to(self, other: Type) -> bool:
        """Tell whether the two types are the same, names and Python containers included."""
        return self == other

    def check_assignable_from(self, source: Type) -> None:
        """Raise TypeNotAssignableError, which names the first place that differs."""
        difference = first_difference(self, source)
        if difference is not None:
            raise TypeNotAssignableError(source, self, notes=_place_notes(difference[0]))

    def check_equivalent_to(self, other: Type) -> None:
        """Raise TypesNotEquivalentError unless each type is assignable from the other."""
        if self == other:
            return
        difference = first_difference(other, self) or first_difference(self, other)
        if difference is not None:
            raise TypesNotEquivalentError(self, other, notes=_place_notes(difference[0]))

    def check_identical_to(self, other: Type) -> None:
        """Raise TypesNotIdenticalError unless the two types are the same."""
        if self != other:
            raise TypesNotIdenticalError(self, other)


class TypeNotAssignableError(LanguageTypeError):
    """A value of one type stands where a value of another type is needed."""

    def __init__(self, source_type: Type, target_type: Type, notes: tuple[str, ...] = ()) -> None:
        text = mismatch(source_type, target_type, "assignable", is_expected=True)
        super().__init__("E101", text, notes=notes)
        self.source_type, self.target_type = source_type, target_type


class TypesNotEquivalentError(LanguageTypeError):
    """Two types that must be assignable both ways are not."""

    def __init__(self, first_type: Type, second_type: Type, notes: tuple[str, ...] = ()) -> None:
        super().__init__("E102", mismatch(first_type, second_type, "equivalent"), notes=notes)
        self.first_type, self.second_type = first_type, second_type


class TypesNotIdenticalError(LanguageTypeError):
    """Two types that must be the same are not."""

    def __init__(self, first_type: Type, second_type: Type) -> None:
        super().__init__("E102", mismatch(first_type, second_type, "identical"))
        self.first_type, self.second_type = first_type, second_type


def _shown(root: Type, pieces: Callable[[Any], list[Any]]) -> Iterator[str]:
    return _cut(root, (p for p in expanded([root], pieces) if not isinstance(p, Mark)))


def _cut(root: Type, pieces: Iterator[Any]) -> Iterator[Any]:
    """Return the pieces, or the first ones and the number of parts if there are too many."""
    first = list(itertools.islice(pieces, LONGEST + 1))
    if len(first) <= LONGEST:
        return iter(first)
    return iter([*first[:SHOWN], f" ...{size_text(tree_size(root))} parts in all"])


def first_difference(target: Type, source: Type) -> tuple[str, Type, Type] | None:
    """Return the path to the first place where `source` cannot stand for `target`, and what the two
    have there; None where it can.

    The path is written like an expression on the value, such as `.weights[0]*`; the root is the
    empty path.

    Raises:
      LanguageTypeError: an abstract type is met.
    """
    if target is source and not target.is_abstract:
        return None
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Type, Type, tuple[Any, ...] | None]] = [(target, source, None)]
    while stack:
        wanted, actual, path = stack.pop()
        if (wanted is actual and not wanted.is_abstract) or (id(wanted), id(actual)) in seen:
            continue
        seen.add((id(wanted), id(actual)))
        pairs = wanted.pairs_with(actual)
        if pairs is None:
            return _path_text(path), wanted, actual
        stack.extend((w, f, (path, step)) for w, f, step in reversed(pairs))
    return None


def _path_text(path: tuple[Any, ...] | None) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps))


def _place_notes(place: str) -> tuple[str, ...]:
    return (f"the first place that differs is `{place}`",) if place else ()


def mismatch(
    first: Type, second: Type, relation: str, *, is_expected: bool = False, as_of_tff: bool = False
) -> str:
    """Return a message about two types that are not `relation`; for long types it shows a
    difference.

    `is_expected` says that the second one is what was expected; with `as_of_tff`, the difference
    has the headers and context lines that TFF gives it.
    """
    one, two = first.compact_representation(), second.compact_representation()
    difference = ""
    if one == two:
        one, two = repr(first), repr(second)
    elif MESSAGE_WIDTH < max(len(one), len(two)) <= MAX_TEXT:
        import difflib  # which few messages need

        texts = first.formatted_representation(), second.formatted_representation()
        old, new = (text.splitlines() for text in texts)
        if as_of_tff:
            lines = list(difflib.unified_diff(old, new))
        else:
            lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
        difference = "\n\nDiff:\n" + "\n".join(lines)
        if max(len(text) for text in texts) <= MAX_FORMATTED:
            one, two = texts
    expected = "expected type" if is_expected else "type"
    parts = ["Type", f"`{one}`", f"is not {relation} to {expected}", f"`{two}`"]
    text = " ".join(parts)
    if len(text) > MESSAGE_WIDTH or "\n" in text:
        text = "\n".join(parts)
    return text + difference
