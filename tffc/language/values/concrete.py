"""Values of programs in memory, and their conversion from and to Python objects.

    type          in the interpreter                       in Python
    tensor        NumPy scalar or array of its dtype       the same
    string        bytes, or an object array of bytes       the same
    struct        tuple of the elements                    the container that the type names
    sequence      list of the elements, or `Endless`       list, or what the caller makes of it
    federated     Federated                                one member if all are equal, else a list
                                                           with one member for each client
    placement     the placement                            the placement
    function      a closed node                            (none)

A struct without a container is an OrderedDict if all its elements have names, a tuple if none has
one, and a `Struct` otherwise.

`to_value` converts strictly: it never changes an element type or extends a shape.  A Python number
is accepted for a tensor of its kind that can represent it, a NumPy value for one that it can be
cast to safely.  Elements of a sequence that come in a list may also be integers where floating
numbers are needed, or integers of another size if they fit.  Structs with names are read by name,
others by position.  TensorFlow's eager tensors and datasets are read as their contents.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from tffc.language.array import MAX_RANK, is_compatible
from tffc.language.containers.named import is_named_container, named_items
from tffc.language.containers.struct import Struct
from tffc.language.dtypes import DType
from tffc.language.nodes import Node
from tffc.language.shapes import shape_is_assignable
from tffc.language.type_parts import check_parts
from tffc.language.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    Placement,
    PlacementType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.language.values.access import AccessPath, access_text
from tffc.language.values.containers import default_container, package_of
from tffc.language.values.foreign import EagerDataset, FunctionValue
from tffc.language.values.misfits import (
    array_help,
    clients_help,
    describe,
    listing_help,
    number_help,
)
from tffc.support.errors import LanguageTypeError
from tffc.support.guards import (
    Array,
    is_array,
    is_listing,
    is_mapping,
    is_numpy,
)
from tffc.support.trampoline import Task, run

INFINITE = -1
"""TensorFlow's cardinality of a dataset that never ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Federated:
    """A federated value: one member for each client, or a single member that all hold."""

    members: tuple[Any, ...]
    all_equal: bool

    @classmethod
    def everywhere(cls, member: object) -> Federated:
        """Return the value whose member is the same for everyone at the placement."""
        return cls((member,), all_equal=True)

    def at_each(self, clients: int) -> tuple[Any, ...]:
        """Return the members held by that many clients."""
        return self.members * clients if self.all_equal else self.members


class Endless:
    """An infinite sequence: a dataset that can only be passed on to sections."""

    def __init__(self, dataset: EagerDataset) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[object]:
        raise LanguageTypeError(
            "E708",
            "the elements of a dataset without an end are to be read one after another",
            help="take a part of it: dataset.take(n)",
        )


class Stacked(Sequence[Any]):
    """The elements of a sequence, kept as arrays; the list of elements is made only when needed.

    `columns` has one array for each tensor of an element, in the order of the type, with the
    elements along the first axis; there is at least one.  `rows` makes the list of elements.
    Neither is ever changed.
    """

    def __init__(self, columns: Iterable[Any], rows: Callable[[], list[Any]]) -> None:
        self.columns = tuple(columns)
        self._rows = rows

    @functools.cached_property
    def _elements(self) -> list[Any]:
        return self._rows()

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: Any) -> Any:
        return self._elements[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Stacked, list)):
            return NotImplemented
        return self._elements == list(cast("Sequence[object]", other))

    # Pyright objects to None, which is how Python declares a class as not hashable.
    __hash__ = None  # pyright: ignore[reportAssignmentType]  # Python's way to have none

    def __repr__(self) -> str:
        return repr(self._elements)


def to_value(
    source: object, type: Type, what: str = "the argument", *, endless: bool = False
) -> Any:
    """Convert a Python object to a value of `type`; errors call the object `what`.

    With `endless`, an infinite dataset is accepted as an `Endless` sequence.

    Raises:
      LanguageTypeError: the object is not a value of `type`.
    """
    return run(ValueReader(what, endless=endless).read(source, type, None))


class ValueReader:
    """Converts one Python object to a value.

    `in_sequence` says that it reads an element of a sequence, `converts` that the element came in a
    list and may be converted.
    """

    def __init__(
        self,
        what: str,
        *,
        endless: bool = False,
        in_sequence: bool = False,
        converts: bool = False,
    ) -> None:
        self.what = what
        self.endless = endless
        self.in_sequence = in_sequence
        self.converts = converts

    def read(self, source: object, type: Type, place: AccessPath) -> Task[object]:
        match type:
            case TensorType():
                return self._tensor(source, type, place)
            case StructType():
                return (yield self._struct(source, type, place))
            case SequenceType():
                return (yield self._sequence(source, type, place))
            case FederatedType(all_equal=False) if type.placement is CLIENTS:
                if not is_listing(source):
                    raise self._misfit(source, type, place, clients_help(source))
                members = yield self._each(source, type.member, place)
                return Federated(tuple(members), all_equal=False)
            case FederatedType():
                return Federated.everywhere((yield self.read(source, type.member, place)))
            case FunctionType():
                return self._function(source, type, place)
            case PlacementType() if isinstance(source, Placement):
                return source
            case _:
                raise self._misfit(source, type, place)

    def _each(self, sources: Iterable[object], type: Type, place: AccessPath) -> Task[list[object]]:
        values: list[object] = []
        for index, source in enumerate(sources):
            values.append((yield self.read(source, type, (place, index))))
        return values

    def _check_stacked(self, source: object, type: SequenceType, place: AccessPath) -> None:
        """Refuse a struct of arrays given for a sequence of structs, and say what to give
        instead."""
        if is_listing(source) and isinstance(type.element, StructType):
            arrays = list(source)
        elif is_mapping(source):
            arrays = list(source.values())
        else:
            return
        if arrays and all(is_array(array) and array.ndim for array in arrays):
            help = (
                "a sequence takes its elements one by one: "
                "give tf.data.Dataset.from_tensor_slices(x) in place of these arrays x"
            )
            raise self._misfit(source, type, place, help)

    def _sequence(
        self, source: object, type: SequenceType, place: AccessPath
    ) -> Task[list[object] | Endless]:
        """Return the elements of a list or a dataset, converted one by one."""
        self._check_stacked(source, type, place)
        if is_listing(source) or isinstance(source, Stacked):
            return (yield self._of_elements()._each(source, type.element, place))
        if not hasattr(source, "as_numpy_iterator"):
            raise self._misfit(source, type, place, listing_help(source))
        dataset = cast("EagerDataset", source)
        if dataset.cardinality() != INFINITE:
            reader = ValueReader(self.what, in_sequence=True)
            return (yield reader._each(dataset.as_numpy_iterator(), type.element, place))
        if not self.endless:
            raise LanguageTypeError(
                "E708",
                f"{self._named(place)} is a dataset without an end, and sequences are finite",
                help="take a part of it: dataset.take(n)",
            )
        if not type.is_assignable_from(SequenceType(dataset.element_spec)):
            raise self._misfit(source, type, place)
        return Endless(dataset)

    def _of_elements(self) -> ValueReader:
        """Return the reader of the elements of a list."""
        return ValueReader(self.what, in_sequence=True, converts=True)

    def _struct(
        self, source: object, type: StructType, place: AccessPath
    ) -> Task[tuple[object, ...]]:
        pairs = _open(source, type)
        if pairs is None:
            raise self._misfit(source, type, place)
        if not self.in_sequence and not type.fields() and is_named_container(source):
            pairs = [(None, value) for _, value in pairs]
        names = [name for name, _ in pairs]
        if names and None not in names and None not in type.names:
            self._check_names(names, type, place)
            by_name = dict(pairs)
            sources = [by_name[name] for name in type.names]
        else:
            sources = [value for _, value in pairs]
            fits = len(pairs) == len(type)
            if not fits or any(n not in (None, t) for n, t in zip(names, type.names, strict=True)):
                raise self._misfit(source, type, place)
        values: list[object] = []
        for step, inner, element in zip(_steps(type), type, sources, strict=True):
            values.append((yield self.read(element, inner, (place, step))))
        return tuple(values)

    def _check_names(self, names: list[str | None], type: StructType, place: AccessPath) -> None:
        missing = [name for name in type.fields() if name not in names]
        extra = [name for name in names if name not in type.names]
        if missing or extra:
            wrong = f"has no element {missing[0]!r}" if missing else f"has an element {extra[0]!r}"
            raise LanguageTypeError(
                "E711",
                f"{self._named(place)} {wrong}, but should be of type `{type}`",
                notes=(f"it has {', '.join(map(repr, names))}",),
                help=f"give it the elements {', '.join(map(repr, type.fields()))}",
            )

    def _function(self, source: object, type: FunctionType, place: AccessPath) -> Node:
        node = source
        if hasattr(source, "to_building_block"):
            # Function values of other packages have no such method.
            getattr(source, "check_effects", lambda: None)()
            node = cast("FunctionValue", source).to_building_block()
        if not isinstance(node, Node):
            raise self._misfit(source, type, place, "give a computation")
        type.check_assignable_from(node.type)
        return node

    def _tensor(self, source: object, type: TensorType, place: AccessPath) -> object:
        if callable(numpy := getattr(source, "numpy", None)):
            source = numpy()
        elif hasattr(source, "__array__") and not is_numpy(source):
            source = self._as_array(source, type, place)
        if is_listing(source):
            array = self._nested_array(source, type, place)
        else:
            array = self._array(source, type.element_type)
        if array is None or not shape_is_assignable(type.shape, array.shape):
            help = number_help(source, type) or array_help(source, type, self.in_sequence)
            raise self._misfit(source, type, place, help)
        return array[()] if array.shape == () else array

    def _nested_array(
        self, source: Sequence[object], type: TensorType, place: AccessPath
    ) -> Array | None:
        """Return the array of the numbers or strings in nested lists."""
        if not _is_shallow(source):
            return None
        try:
            items = np.array(source, dtype=object)
        except (ValueError, MemoryError):
            return None
        result = np.empty(items.shape, type.element_type.dtype)
        for index, item in np.ndenumerate(items):
            array = self._array(item, type.element_type)
            if array is None or array.shape != ():
                inner = place
                for step in index:
                    inner = inner, step
                scalar = TensorType(type.element_type)
                raise self._misfit(item, scalar, inner, number_help(item, scalar))
            result[index] = array[()]
        return result

    def _array(self, source: object, dtype: DType) -> Array | None:
        array = _array(source, dtype)
        return _converted(source, dtype) if array is None and self.converts else array

    def _as_array(self, source: object, type: TensorType, place: AccessPath) -> Array:
        try:
            return np.asarray(source)
        except (NotImplementedError, TypeError, ValueError):
            # A symbolic tensor of a graph under construction has no value yet.
            raise self._misfit(source, type, place) from None

    def _named(self, place: AccessPath) -> str:
        return self.what + (f" at {access_text(place)}" if place is not None else "")

    def _misfit(
        self, source: object, type: Type, place: AccessPath, help: str | None = None
    ) -> LanguageTypeError:
        return LanguageTypeError(
            "E711",
            f"{self._named(place)} is {describe(source)}, but should be of type `{type}`",
            help=help,
        )


def _open(source: object, type: StructType) -> list[tuple[str | None, object]] | None:
    """Return the names and elements of a Python container, or None if it is not a container."""
    if isinstance(source, Struct):
        return list(source.items())
    if is_named_container(source):
        return list(named_items(source))
    if is_listing(source):
        return [(None, value) for value in source]
    if package_of(source.__class__) == "tensorflow" and all(
        hasattr(source, str(n)) for n in type.names
    ):
        return [(name, getattr(source, str(name))) for name in type.names]
    return None


def _steps(type: StructType) -> list[str | int]:
    return [index if name is None else name for index, name in enumerate(type.names)]


def _array(source: object, dtype: DType) -> Array | None:
    """Return a Python or NumPy value as an array of `dtype`, or None if that would change it."""
    if dtype is DType.STRING:
        return _string_array(source)
    if isinstance(source, int) and not isinstance(source, bool):
        limits = np.iinfo(dtype.dtype) if dtype.is_integer else None
        fits = limits is not None and limits.min <= source <= limits.max
        return np.asarray(source, dtype.dtype) if fits else None
    if not isinstance(source, (bool, float, complex)) and not is_numpy(source):
        return None
    try:
        fits = is_compatible(source, dtype)
    except LanguageTypeError:
        # A NumPy value of an element type that the language does not have.
        return None
    return np.asarray(source).astype(dtype.dtype) if fits else None


def _converted(source: object, dtype: DType) -> Array | None:
    """Return integers or floating numbers as an array of `dtype`, or None if they do not fit."""
    array = np.asarray(source) if isinstance(source, int) or is_numpy(source) else None
    if array is None or array.dtype.kind not in ("iuf" if dtype.is_floating else "iu"):
        return None
    if dtype.is_floating:
        return array.astype(dtype.dtype)
    fits = dtype.is_integer and np.array_equal(array.astype(dtype.dtype), array)
    return array.astype(dtype.dtype) if fits else None


def _is_shallow(source: object) -> bool:
    """Return whether nested lists are few enough levels deep; a list that contains itself is
    not."""
    depth = 0
    while is_listing(source) and source:
        depth, source = depth + 1, source[0]
        if depth > MAX_RANK:
            return False
    return True


def _string_array(source: object) -> Array | None:
    """Return a string or array of strings as an array of bytes objects; text is encoded in
    UTF-8."""
    array = np.array(source, dtype=object) if isinstance(source, (str, bytes)) else source
    if not is_array(array) or array.dtype.kind not in "SUO":
        return None
    items = array.ravel().tolist()
    if not all(isinstance(item, (str, bytes)) for item in items):
        return None
    strings: Array = np.empty(len(items), dtype=object)
    try:
        strings[:] = [item.encode() if isinstance(item, str) else item for item in items]
    except UnicodeEncodeError:
        # A lone surrogate, which UTF-8 cannot encode.
        return None
    return strings.reshape(array.shape)


MakeSequence: TypeAlias = Callable[[Any, SequenceType], object]
"""Makes the Python object for a sequence of a type, given as the interpreter holds it."""


def to_python(
    value: object, type: Type, clients: int = 0, sequence: MakeSequence | None = None
) -> Any:
    """Convert a value of `type` to a Python object; `clients` is the number of clients.

    Sequences become what `sequence` makes of them, or lists without it.

    Raises:
      LanguageTypeError: the value is a function, or contains one.
    """
    return run(_Writer(clients, sequence).write(value, type))


class _Writer:
    """Converts a value to a Python object."""

    def __init__(self, clients: int, sequence: MakeSequence | None) -> None:
        self._clients = clients
        self._sequence = sequence

    def write(self, value: Any, type: Type) -> Task[object]:
        match type:
            case StructType():
                elements: list[object] = []
                for element, inner in zip(value, type, strict=True):
                    elements.append((yield self.write(element, inner)))
                return default_container(type, elements)
            case SequenceType() if self._sequence is not None:
                return self._sequence(value, type)
            case SequenceType():
                return (yield self._each(value, type.element))
            case FederatedType(all_equal=False) if type.placement is CLIENTS:
                return (yield self._each(value.at_each(self._clients), type.member))
            case FederatedType():
                return (yield self.write(value.members[0], type.member))
            case FunctionType():
                raise LanguageTypeError(
                    "E712",
                    f"a function of type `{type}` is not a result that Python can be given",
                    help="return what it gives for an argument",
                )
            case _:
                return value

    def _each(self, values: Iterable[object], type: Type) -> Task[list[object]]:
        written: list[object] = []
        for value in values:
            written.append((yield self.write(value, type)))
        return written


def flatten(value: object, type: Type) -> list[Any]:
    """Return the parts of a value that are not structs, in the order of its type."""
    return layout(type).flatten(value)


def unflatten(parts: Iterator[object], type: Type) -> Any:
    """Return the value of `type` made of these parts: the inverse of `flatten`."""
    return layout(type).unflatten(parts)


class StructLayout:
    """The nesting of the structs in a type, computed once to flatten and unflatten many values.

    Raises:
      LanguageValueError: the type is too large when it is written out.
    """

    def __init__(self, type: Type) -> None:
        check_parts(type)
        self._type = type
        self._sizes = _sizes(type)
        self._backwards = self._sizes[::-1]
        self._count = self._sizes.count(PART)

    def flatten(self, value: object) -> list[Any]:
        """Return the parts of a value that are not structs, in the order of its type."""
        parts: list[Any] = []
        stack: list[Any] = [value]
        for size in self._sizes:
            item = stack.pop()
            if size == PART:
                parts.append(item)
            elif len(item) == size:
                stack.extend(reversed(item))
            else:
                raise ValueError(f"a struct of {len(item)} elements is not of type `{self._type}`")
        return parts

    def unflatten(self, parts: Iterator[object]) -> Any:
        """Return the value made of these parts, taking no more of them than it has."""
        values = list(itertools.islice(parts, self._count))
        stack: list[object] = []
        for size in self._backwards:
            if size == PART:
                stack.append(values.pop())
            else:
                start = len(stack) - size
                elements = tuple(reversed(stack[start:]))
                del stack[start:]
                stack.append(elements)
        return stack.pop()


@functools.lru_cache(maxsize=1024)
def layout(type: Type) -> StructLayout:
    """Return the layout of a type, cached because a program has few types and many values."""
    return StructLayout(type)


PART = -1


def _sizes(type: Type) -> tuple[int, ...]:
    """Return the sizes of all structs in a value in pre-order, with `PART` for each part that is
    not a struct."""
    sizes: list[int] = []
    stack = [type]
    while stack:
        kind = stack.pop()
        if isinstance(kind, StructType):
            sizes.append(len(kind))
            stack.extend(reversed(kind.types))
        else:
            sizes.append(PART)
    return tuple(sizes)
