"""Conversion of Python objects to values of a program.

traced values, nodes                                  themselves
tff.CLIENTS, tff.SERVER                               placements
computations                                          functions
tff.structure.Struct, mappings, namedtuples, objects  structs with names
  of attrs classes and dataclasses
lists and tuples                                      structs without names
bool, int, float, complex, str, bytes, NumPy values   constants
"""

from __future__ import annotations

import abc
import sys
from typing import Any, ClassVar, NamedTuple

from tffc.frontend import context as contexts
from tffc.frontend.context import FederatedContext
from tffc.frontend.hints import alternative, constant_fix, described, likely_fix, shown
from tffc.frontend.value import Value, scope_of, struct_value
from tffc.frontend.zipping import names_fit, zip_to
from tffc.language import nodes
from tffc.language.array import infer_dtype, to_array
from tffc.language.containers.named import is_named_container, named_items
from tffc.language.containers.struct import Struct
from tffc.language.nodes import Literal, Node
from tffc.language.shapes import shape_is_assignable
from tffc.language.type_base import TypeNotAssignableError
from tffc.language.types import (
    FunctionType,
    Placement,
    SequenceType,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
    to_type,
)
from tffc.language.values.access import AccessPath, access_text
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import (
    ContextError,
    LanguageTypeError,
    LanguageValueError,
    TffcError,
    UnsupportedError,
)
from tffc.support.guards import is_listing
from tffc.support.trampoline import Task, run


class Convertible(abc.ABC):
    """An object that can be converted to a function of a program: a computation."""

    # AutoGraph rewrites all code that a tf.function calls, unless it finds this attribute.
    autograph_info__: ClassVar[dict[str, Any]] = {}

    @abc.abstractmethod
    def as_value(self, parameter: Type | None) -> Value:
        """Return the function, for arguments of type `parameter` if it is polymorphic.

        Raises:
          LanguageTypeError: it is polymorphic, and `parameter` is None.
        """


class Container(NamedTuple):
    """The content of a Python container: its elements' names, the elements and its class."""

    names: tuple[str | None, ...]
    members: tuple[object, ...]
    container: type | None


def open_container(source: object) -> Container | None:
    """Return the content of a Python container that converts to a struct, or None for anything
    else.

    A list of (str, x) pairs is a struct of pairs, and its container is not kept.

    Raises:
      LanguageTypeError: a mapping's key is not a string.
    """
    if isinstance(source, Struct):
        items = list(source.items())
        return Container(tuple(n for n, _ in items), tuple(v for _, v in items), None)
    if is_named_container(source):
        items = named_items(source)
        return Container(tuple(n for n, _ in items), tuple(v for _, v in items), type(source))
    if not is_listing(source):
        return None
    pairs = bool(source) and all(
        is_listing(item) and len(item) == 2 and isinstance(item[0], str) for item in source
    )
    return Container((None,) * len(source), tuple(source), None if pairs else type(source))


@entry_point
def to_value(source: object, type_spec: object = None) -> Value:
    """Convert `source` to a value, of type `type_spec` if that is given.

    Raises:
      LanguageTypeError: `source` is none of the forms at the top of this module, or its type cannot
        be assigned to `type_spec`.
      LanguageValueError: it is a constant that does not fit `type_spec`.
    """
    target = None if type_spec is None else to_type(type_spec)
    context = contexts.current()
    return convert(source, target, context if isinstance(context, FederatedContext) else None)


def convert(
    source: object,
    target: Type | None,
    context: FederatedContext | None,
    *,
    zipping: bool = False,
) -> Value:
    """Convert as `to_value` does, in the trace `context`; `zipping` also zips structs of federated
    values."""
    return run(_Conversion(context, zipping).convert(source, target, None))


class _Conversion:
    """One conversion of a whole object, with the settings that all its elements share."""

    def __init__(self, context: FederatedContext | None, zipping: bool) -> None:
        self.context = context
        self.zipping = zipping
        self.around: set[int] = set()
        """The ids of the containers being converted, to detect cycles."""

    def convert(self, item: object, wanted: Type | None, place: AccessPath) -> Task[Value]:
        """Return the value of the object at `place` in the whole."""
        try:
            opened = open_container(item)
            if opened is None:
                return _fit(_leaf(item, wanted, self.context), wanted, self.zipping)
            _enter(item, self.around)
        except TffcError as error:
            _add_place(error, place)
            raise
        targets = _element_targets(opened, wanted)
        parts: list[Value] = []
        for index, member in enumerate(opened.members):
            step = index if opened.names[index] is None else opened.names[index]
            target = targets[index] if targets else None
            parts.append((yield self.convert(member, target, (place, step))))
        self.around.discard(id(item))
        struct = struct_value(parts, opened.names, opened.container)
        if targets:
            return struct
        try:
            return _fit(struct, wanted, self.zipping)
        except TffcError as error:
            _add_place(error, place)
            raise


def _add_place(error: TffcError, place: AccessPath) -> None:
    """Make an error say which part of the whole object it is about."""
    if place is not None:
        error.notes += (f"it stands at `{access_text(place)}`",)


def _enter(item: object, around: set[int]) -> None:
    """Record that a container is being converted; refuse one that contains itself."""
    if id(item) in around:
        raise LanguageValueError(
            "E460",
            f"a {type(item).__name__} that contains itself is not a struct",
            help="take the container out of itself; copy it where a second one is meant",
        )
    around.add(id(item))


def _element_targets(opened: Container, wanted: Type | None) -> tuple[Type, ...] | None:
    """Return the types that a container's elements must have for it to convert to `wanted`.

    None if the container cannot convert to it whatever its elements are, or no type is wanted.
    """
    if isinstance(wanted, StructType) and names_fit(wanted.names, opened.names):
        return wanted.types
    return None


def _fit(value: Value, wanted: Type | None, zipping: bool) -> Value:
    if wanted is None or wanted.is_assignable_from(value.type_signature):
        return value
    zipped = zip_to(value, wanted) if zipping else None
    if zipped is not None:
        return zipped
    try:
        wanted.check_assignable_from(value.type_signature)
    except TypeNotAssignableError as error:
        error.help = likely_fix(wanted, value.type_signature)
        raise
    return value


def _leaf(item: object, wanted: Type | None, context: FederatedContext | None) -> Value:
    match item:
        case Value():
            check_scope(scope_of(item), context)
            return item
        case Convertible():
            value = item.as_value(wanted.parameter if isinstance(wanted, FunctionType) else None)
            check_scope(scope_of(value), context)
            return value
        case Placement():
            node = nodes.PlacementNode(item)
            return Value(node, node.type, None)
        case _:
            pass
    if isinstance(item, Node):
        return Value(item, item.type, None)
    if is_constant(item):
        return _constant(item, wanted)
    raise UnsupportedError(
        "E460",
        f"{described(item)} cannot be a value of a program",
        notes=(
            "values are computations, constants of Python and NumPy, placements, and lists, "
            "tuples, mappings, namedtuples, attrs objects and dataclasses of these",
        ),
        help=alternative(item),
    )


def check_scope(scope: FederatedContext | None, context: FederatedContext | None) -> None:
    """Check that a value of the trace `scope` may be used in `context`: that the latter is nested
    in it."""
    if context is None or scope is None:
        return
    if not context.is_within(scope):
        raise ContextError(
            "E431",
            f"a value of the trace of {scope.name!r} is used in that of {context.name!r}, where it "
            "means nothing",
            help=f"give it to {context.name!r} as an argument, or return it from {scope.name!r}",
        )
    context.capture(scope)


def is_constant(item: object) -> bool:
    """Return whether a Python object is a scalar, string or NumPy value."""
    if isinstance(item, (bool, int, float, complex, str, bytes)):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(item, (numpy.generic, numpy.ndarray))


def _constant(item: object, wanted: Type | None) -> Value:
    if wanted is not None and not isinstance(wanted, TensorType):
        raise LanguageValueError(
            "E461",
            f"the constant {shown(item)} stands where a value of type `{wanted}` is needed",
            help=constant_fix(wanted),
        )
    _check_objects(item)
    array = to_array(item, None if wanted is None else wanted.element_type)
    type = array.type if wanted is None else wanted
    # TFF cannot read a scalar whose type has an unknown rank.
    open_scalar = array.shape == () and type.shape is None
    if open_scalar or not shape_is_assignable(type.shape, array.shape):
        raise LanguageValueError(
            "E461",
            f"the constant {shown(item)} of shape {list(array.shape)} is not of type `{type}`",
            help=f"give one of this shape, or declare the type as `{array.type}`",
        )
    return Value(Literal(array, type), type, None)


def _check_objects(item: Any) -> None:
    """Check that an array of Python objects holds strings, the only objects of the language."""
    if getattr(getattr(item, "dtype", None), "kind", None) != "O":
        return
    strange = [x for x in item.ravel().tolist() if not isinstance(x, (str, bytes))]
    if strange:
        raise LanguageTypeError(
            "E460",
            "a NumPy array of objects is not a tensor of strings: it holds "
            f"{described(strange[0])}",
            help="put values of a program into a list" if isinstance(strange[0], Value) else None,
        )


def infer_type(source: object) -> Type:
    """Return the type of a Python object used as an argument: a value, constant or TensorFlow
    object.

    Raises:
      LanguageTypeError: the object has no type in the language.
    """
    return run(_inferred(source, set()))


def _inferred(item: object, around: set[int]) -> Task[Type]:
    opened = open_container(item)
    if opened is None:
        return _leaf_type(item)
    _enter(item, around)
    types: list[Type] = []
    for member in opened.members:
        types.append((yield _inferred(member, around)))
    around.discard(id(item))
    return StructWithPythonType.with_container(opened.names, tuple(types), opened.container)


def _leaf_type(item: Any) -> Type:
    if isinstance(item, (Value, Convertible)):
        return _leaf(item, None, None).type_signature
    if is_constant(item):
        return TensorType(infer_dtype(item), getattr(item, "shape", ()))
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and hasattr(tensorflow, "Tensor"):
        if isinstance(item, (tensorflow.Tensor, tensorflow.Variable)):
            return TensorType(item.dtype, item.shape)
        if isinstance(item, tensorflow.data.Dataset):
            return SequenceType(item.element_spec)
    raise LanguageTypeError(
        "E460", f"{described(item)} has no type in the language", help=alternative(item)
    )
