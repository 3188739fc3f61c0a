"""The module `tff.structure`: the struct container, and functions on nested structures.

A structure is a Struct, list, tuple, mapping, namedtuple, attrs object or dataclass, whose elements
may be structures again; everything else in it is a leaf.  Elements of mappings are ordered by key,
not by insertion.
"""

from __future__ import annotations

import collections
import copy
import operator
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, cast

from tffc.frontend.conversion import open_container
from tffc.frontend.hints import described
from tffc.language.containers.named import is_named_container
from tffc.language.containers.struct import Struct as Struct
from tffc.language.containers.struct import elements_by_name, opened
from tffc.support.errors import (
    LanguageTypeError,
    MissingFieldError,
    StructureMismatchError,
    WrongCountError,
)
from tffc.support.guards import is_mapping
from tffc.support.near import did_you_mean
from tffc.support.trampoline import Task, run


def iter_elements(struct: Struct) -> Iterator[tuple[str | None, Any]]:
    """Return the (name or None, value) pairs of a struct, in order."""
    return struct.items()


def to_elements(struct: Struct) -> list[tuple[str | None, Any]]:
    """Return the (name or None, value) pairs of a struct, as a list."""
    return list(struct.items())


def name_list(struct: Struct) -> list[str]:
    """Return the names of a struct's elements, in order, without those that have none."""
    return [name for name, _ in struct.items() if name is not None]


def name_list_with_nones(struct: Struct) -> list[str | None]:
    """Return the names of a struct's elements, in order, with None for each that has none."""
    return [name for name, _ in struct.items()]


def name_to_index_map(struct: Struct) -> dict[str, int]:
    """Return the position of each element of a struct that has a name, by its name."""
    return {name: index for index, (name, _) in enumerate(struct.items()) if name is not None}


def has_field(struct: Struct, field: str) -> bool:
    """Return whether an element of a struct has this name."""
    return field in name_list(struct)


def flatten(structure: object) -> list[Any]:
    """Return the leaves of a structure, in order."""
    leaves: list[Any] = []
    stack = [structure]
    while stack:
        part = stack.pop()
        items = _items(part)
        if items is None:
            leaves.append(part)
        else:
            stack.extend(inner for _, inner in reversed(items))
    return leaves


def _items(part: object) -> list[tuple[Any, object]] | None:
    """Return the elements of a structure with their names or keys, or None for a leaf."""
    if is_mapping(part):
        return sorted(part.items(), key=operator.itemgetter(0))
    return _elements(part)


def _elements(part: object) -> list[tuple[str | None, object]] | None:
    """Return the elements of a structure with their names, in their own order."""
    opened = open_container(part)
    return None if opened is None else list(zip(opened.names, opened.members, strict=True))


def is_same_structure(first: object, second: object) -> bool:
    """Return whether two structures have leaves in the same places, under the same names.

    A Struct matches Structs only, a list lists only.
    """
    stack = [(first, second)]
    while stack:
        one, other = stack.pop()
        if any(isinstance(one, kind) != isinstance(other, kind) for kind in (Struct, list)):
            return False
        ones, others = _items(one), _items(other)
        if ones is None or others is None:
            if ones is not others:
                return False
            continue
        if [name for name, _ in ones] != [name for name, _ in others]:
            return False
        stack.extend((x, y) for (_, x), (_, y) in zip(ones, others, strict=True))
    return True


def map_structure(function: Callable[..., Any], *structures: object) -> Any:
    """Return the structure of the results of `function` for corresponding leaves.

    Raises:
      StructureMismatchError: the structures differ, or there are none.
    """
    if not structures or not all(is_same_structure(structures[0], s) for s in structures[1:]):
        raise StructureMismatchError(
            "E157",
            "map_structure takes structures whose leaves have the same places and names, but got "
            + (" and ".join(f"`{structure}`" for structure in structures) or "none"),
        )
    leaves = zip(*map(flatten, structures), strict=True)
    return _packed(structures[0], [function(*together) for together in leaves])


def pack_sequence_as(structure: object, flat_sequence: Iterable[object]) -> Any:
    """Return a structure like `structure` with these leaves.

    Raises:
      WrongCountError: there are too few leaves or too many.
    """
    leaves, places = list(flat_sequence), len(flatten(structure))
    if len(leaves) != places:
        raise WrongCountError(
            "E157", f"a structure of {places} leaves cannot be made of {len(leaves)}"
        )
    return _packed(structure, leaves)


def _packed(structure: object, leaves: list[object]) -> Any:
    remaining = iter(leaves)

    def packed(part: object) -> Task[object]:
        items = _items(part)
        if items is None:
            return next(remaining)
        elements: list[tuple[Any, object]] = []
        for name, inner in items:
            elements.append((name, (yield packed(inner))))
        return _like(part, elements)

    return run(packed(structure))


def _like(part: Any, elements: list[tuple[Any, object]]) -> Any:
    """Return a container of the kind of `part` with these elements."""
    if isinstance(part, Struct):
        return Struct(elements)
    if is_mapping(part):
        values = dict(elements)
        if isinstance(part, MutableMapping):
            # Copying keeps other state, such as the default of a defaultdict.
            like = copy.copy(cast("MutableMapping[Any, Any]", part))
            like.update(values)
            return like
        # Any class of mapping is constructed from pairs.
        make = cast("Callable[[Iterable[tuple[object, object]]], object]", type(part))
        return make((key, values[key]) for key in part)
    if is_named_container(part):
        return type(part)(**dict(elements))
    return type(part)(value for _, value in elements)


def from_container(value: object, recursive: bool = False) -> Struct:
    """Convert a list, tuple, mapping, namedtuple, attrs object or dataclass to a struct.

    With `recursive`, containers in it become structs as well.

    Raises:
      LanguageTypeError: it is not a container.
    """

    def unwrapped(part: object) -> Task[object]:
        items = _elements(part)
        if items is None:
            return part
        elements: list[tuple[str | None, object]] = []
        for name, inner in items:
            elements.append((name, (yield unwrapped(inner)) if recursive else inner))
        return Struct(elements)

    struct = run(unwrapped(value))
    if not isinstance(struct, Struct):
        raise LanguageTypeError(
            "E159",
            f"{described(value)} is not a container of elements",
            help="give a list, tuple, mapping, namedtuple, attrs object or dataclass",
        )
    return struct


def to_odict(struct: object, recursive: bool = False) -> collections.OrderedDict[str, Any]:
    """Return the elements of a struct by name; with `recursive`, also those of structs in it.

    Raises:
      LanguageTypeError: it is not a struct.
      LanguageValueError: an element has no name.
    """
    if not isinstance(struct, Struct):
        raise LanguageTypeError(
            "E159",
            f"{described(struct)} is not a struct",
            help="make one of it: tff.structure.from_container(x)",
        )
    return elements_by_name(struct, recursive=recursive)


def to_odict_or_tuple(
    struct: Struct, recursive: bool = True
) -> collections.OrderedDict[str, Any] | tuple[Any, ...]:
    """Return the elements of a struct by name, or as a tuple if none has a name.

    Raises:
      LanguageValueError: some elements have names and others do not.
    """
    return opened(struct, recursive=recursive, named_only=False)


def update_struct(structure: Any, **changes: object) -> Any:
    """Return a copy of a struct, mapping, namedtuple, attrs object or dataclass with some fields
    changed.

    Raises:
      LanguageTypeError: its elements have no names.
      MissingFieldError: it has no element of one of the names.
    """
    items = _elements(structure) or []
    if not (isinstance(structure, Struct) or is_named_container(structure)):
        raise LanguageTypeError(
            "E159",
            f"{described(structure)} has no elements with names to be changed",
            help="give a struct, mapping, namedtuple, attrs object or dataclass",
        )
    names = [name for name, _ in items if name is not None]
    for name in changes:
        if name not in names:
            raise MissingFieldError(
                "E122",
                f"there is no element {name!r} to be changed",
                notes=(f"there are {', '.join(map(repr, names))}",) if names else (),
                help=did_you_mean(name, names),
            )
    changed = [(name, changes.get(name or "", value)) for name, value in items]
    return _like(structure, changed)


# The libraries of today's TFF call these by private names.
_from_container = from_container
_is_same_structure = is_same_structure
_map_structure = map_structure
_to_elements = to_elements
_update_struct = update_struct
