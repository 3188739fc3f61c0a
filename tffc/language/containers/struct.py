"""The generic container of struct values: ordered elements, each with or without a name."""

from __future__ import annotations

import abc
import collections
import types
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run

T = TypeVar("T")

RESERVED_NAMES = frozenset(
    {"_asdict", "_hash", "_element_array", "_name_to_index", "_name_array", "_elements_cache"}
)
"""Element names that TFF's struct container keeps for itself, so that files stay readable there."""


def check_element_names(names: Iterable[str | None]) -> None:
    """Raise LanguageValueError for a name that occurs twice or that is reserved."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise LanguageValueError(
                "E107",
                f"a struct cannot have two elements named {name!r}",
                help="give each element a name of its own",
            )
        if name in RESERVED_NAMES:
            raise LanguageValueError(
                "E107",
                f"the element name {name!r} is reserved",
                help="give the element another name; those reserved begin with an underscore",
            )
        seen.add(name)


class Elements(Generic[T]):
    """Ordered elements, each with or without a name: access by position, by name and as attributes.

    `e[0]`, `e["a"]` and `e.a` give elements, `e[a:b]` a tuple of them; iteration gives all.
    """

    __slots__ = ()

    @abc.abstractmethod
    def _parts(self) -> tuple[tuple[str | None, ...], tuple[T, ...]]:
        """Return the names, None where there is none, and the elements."""

    def _described(self) -> str:
        """Return what messages call the struct."""
        return "this struct"

    def items(self) -> Iterator[tuple[str | None, T]]:
        """Yield the (name or None, element) pairs, in order."""
        return zip(*self._parts(), strict=True)

    def __len__(self) -> int:
        return len(self._parts()[1])

    def __iter__(self) -> Iterator[T]:
        return iter(self._parts()[1])

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return self._named(key)
        elements = self._parts()[1]
        if isinstance(key, int) and not 0 <= key < len(elements):
            raise IndexError(f"no element {key} in a struct of {len(elements)}")
        return elements[key]

    def __getattr__(self, name: str) -> T:
        if name.startswith("_") and (name.startswith("__") or name not in self._parts()[0]):
            raise AttributeError(name)
        return self._named(name)

    def __dir__(self) -> list[str]:
        return sorted(name for name in self._parts()[0] if name is not None)

    def _named(self, name: str) -> T:
        names, elements = self._parts()
        if name not in names:
            known = ", ".join(repr(n) for n in names if n is not None) or "no names"
            raise AttributeError(f"no element {name!r} in {self._described()}; it has {known}")
        return elements[names.index(name)]

    def _asdict(self, recursive: bool = False) -> collections.OrderedDict[str, Any]:
        """Return the elements by their names; with `recursive`, those of structs inside as well.

        Raises:
          LanguageValueError: an element has no name.
        """
        return elements_by_name(self, recursive=recursive)


class Struct(Elements[Any], metaclass=abc.ABCMeta):
    """Ordered (name or None, value) pairs.

    Names obey the rules of struct types: none occurs twice, and some are reserved.  Struct types
    count as structs of types.
    """

    __slots__ = ("_names", "_values")

    def __class_getitem__(cls, item: Any) -> types.GenericAlias:
        """Let annotations say what is in a struct."""
        return types.GenericAlias(cls, item)

    def __init__(self, elements: Iterable[tuple[str | None, Any]]) -> None:
        pairs: list[Any] = list(elements)
        for pair in pairs:
            if not _is_named_value(pair):
                raise LanguageTypeError("E159", f"expected a (name, value) pair, found {pair!r}")
        self._names = tuple(name for name, _ in pairs)
        check_element_names(self._names)
        self._values = tuple(value for _, value in pairs)

    @classmethod
    def unnamed(cls, *values: Any) -> Struct:
        """Return the struct of these values, none of them named."""
        return cls((None, value) for value in values)

    @classmethod
    def named(cls, **values: Any) -> Struct:
        """Return the struct of these values under their keywords."""
        return cls(values.items())

    def _parts(self) -> tuple[tuple[str | None, ...], tuple[Any, ...]]:
        return self._names, self._values

    def __eq__(self, other: object) -> bool:
        if Struct not in type(other).__mro__:
            return NotImplemented
        other = cast("Struct", other)
        return self._names == other._names and self._values == other._values

    def __hash__(self) -> int:
        return hash((self._names, self._values))

    def __str__(self) -> str:
        items = (str(v) if n is None else f"{printable(n)}={v}" for n, v in self.items())
        return f"<{','.join(items)}>"

    def __repr__(self) -> str:
        return f"Struct({list(self.items())!r})"


def _is_named_value(pair: Any) -> bool:
    if not isinstance(pair, (list, tuple)):
        return False
    items = cast("list[Any]", pair)
    return len(items) == 2 and (items[0] is None or isinstance(items[0], str))


def elements_by_name(
    struct: Elements[Any], *, recursive: bool
) -> collections.OrderedDict[str, Any]:
    """Return the elements of a struct by their names; with `recursive`, those of structs inside as
    well.

    Raises:
      LanguageValueError: an element has no name.
    """
    return opened(struct, recursive=recursive, named_only=True)


def opened(struct: Any, *, recursive: bool, named_only: bool) -> Any:
    """Return the elements of a struct by their names; as a tuple where none has one, unless
    `named_only`.

    Raises:
      LanguageValueError: some elements have names and others do not.
    """

    def unwrapped(part: Any) -> Task[Any]:
        if not isinstance(part, Struct):
            return part
        names, values = [name for name, _ in part.items()], list(part)
        if recursive:
            for index, inner in enumerate(part):
                values[index] = yield unwrapped(inner)
        if None not in names and (names or named_only):
            return collections.OrderedDict(zip(names, values, strict=True))
        is_mixed = any(name is not None for name in names)
        if named_only or is_mixed:
            raise LanguageValueError(
                "E161",
                f"the elements of `{part}` cannot be put into a dictionary: "
                + ("there are named and unnamed ones" if is_mixed else "they are unnamed"),
                help=None if is_mixed else "use to_odict_or_tuple",
            )
        return tuple(values)

    return run(unwrapped(struct))
