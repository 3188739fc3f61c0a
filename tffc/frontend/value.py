"""Traced values, the placeholders for arguments during tracing, and operations on them.

    operation            on a struct value           on a federated value of structs
    v.a  v["a"]  v[2]    a selection                 a map of the selection
    v[a:b]               a list of selections        a map, names kept
    iteration, len       over the elements           over the member's elements
    v + w                generic_plus, bound         likewise
    f(...)               a call, bound (of values that are functions)

All other operators are refused: numeric work belongs in a TensorFlow computation.  Assignments to
elements are refused too, because values are immutable.  `==` and `!=` compare identities, as for
any Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from tffc.frontend.context import FederatedContext, federated_context, innermost
from tffc.frontend.hints import change_fix, operator_fix
from tffc.language import nodes
from tffc.language.calls import apply
from tffc.language.nodes import Lambda, Node, Reference, Selection
from tffc.language.types import SERVER, FederatedType, StructType, StructWithPythonType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import (
    LanguageTypeError,
    LanguageValueError,
    MissingElementError,
    OutOfRangeError,
)
from tffc.support.near import did_you_mean

OWN_FIELDS = frozenset({"_Value__node", "_Value__scope", "_Value__type"})
"""The attributes of a value itself, with Python's name mangling; all others are elements."""


def _refused(symbol: str) -> Callable[..., NoReturn]:
    """Return the method for a Python operator that values do not support."""

    @entry_point
    def refuse(self: Value, *_: object) -> NoReturn:
        raise LanguageTypeError(
            "E443",
            f"the operator {symbol} cannot be applied to a value of type "
            f"`{self.type_signature}` while its program is traced",
            help=operator_fix(self.type_signature),
        )

    return refuse


def _unchangeable(use: str) -> Callable[..., NoReturn]:
    """Return the method for a Python statement that would change a value."""

    @entry_point
    def refuse(self: Value, key: object, *_: object) -> NoReturn:
        raise LanguageTypeError(
            "E165",
            f"the element {key!r} of a value of type `{self.type_signature}` cannot be {use}: "
            "values of a program do not change",
            help=change_fix(self.type_signature),
        )

    return refuse


def _check_position(key: object) -> None:
    if not isinstance(key, int):
        raise LanguageTypeError(
            "E441",
            f"an element is selected by an int, a name or a slice, not by {key!r} of type "
            f"{type(key).__name__}",
            help="selections are made while tracing; convert it with int(...) if it is known",
        )


class Value:
    """A value of a program being traced: a node, and its type with Python containers.

    The fields of a struct are its attributes; `comp` and `type_signature` always mean the node and
    the type.  Nodes hold no containers, so that a program is the same before and after it was
    written to a file.
    """

    __slots__ = ("__node", "__scope", "__type")

    def __init__(
        self, comp: Node, type: Type | None = None, scope: FederatedContext | None = None
    ) -> None:
        self.__node = comp
        self.__type = comp.type if type is None else type
        self.__scope = scope

    @property
    def comp(self) -> Node:
        """The node that computes this value."""
        return self.__node

    @property
    def type_signature(self) -> Type:
        """The type of this value."""
        return self.__type

    @entry_point
    def __getattr__(self, name: str) -> Value:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.__field(name)

    @entry_point
    def __getitem__(self, key: int | str | slice) -> Value:
        if isinstance(key, str):
            return self.__field(key)
        struct = self.__elements("selected from by position")
        if isinstance(key, slice):
            return _slice(self, struct, key)
        _check_position(key)
        if not 0 <= key < len(struct):
            refusal = OutOfRangeError if struct is self.__type else LanguageValueError
            raise refusal(
                "E441",
                f"no element {key} in a value of type `{self.__type}`, which has {len(struct)} "
                "elements",
                help="positions count from 0 and cannot be negative",
            )
        return _select(self, struct, int(key))

    @entry_point
    def __iter__(self) -> Iterator[Value]:
        struct = self.__elements("iterated over")
        return iter([_select(self, struct, index) for index in range(len(struct))])

    @entry_point
    def __len__(self) -> int:
        return len(self.__elements("measured with len()"))

    def __setattr__(self, name: str, value: object) -> None:
        if name not in OWN_FIELDS:
            self.__setitem__(name, value)
        object.__setattr__(self, name, value)

    __setitem__ = _unchangeable("assigned to")
    __delitem__ = __delattr__ = _unchangeable("deleted")

    def __dir__(self) -> list[str]:
        struct = element_struct(self.__type)
        return sorted({"comp", "type_signature", *(struct.fields() if struct else ())})

    @entry_point
    def __bool__(self) -> bool:
        raise LanguageTypeError(
            "E443",
            f"a value of type `{self.__type}` has no truth value while its program is traced",
            help="make the decision in a TensorFlow computation, for example with tf.cond or "
            "tf.where",
        )

    @entry_point
    def __call__(self, /, *args: object, **kwargs: object) -> Value:
        return federated_context("a function value").call(self, args, kwargs)

    @entry_point
    def __add__(self, other: object) -> Value:
        return federated_context("the operator +").add(self, other)

    @entry_point
    def __radd__(self, other: object) -> Value:
        return federated_context("the operator +").add(other, self)

    __array_ufunc__ = None
    """Makes NumPy values defer operators to this class."""

    @entry_point
    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise LanguageTypeError(
            "E166",
            f"NumPy and TensorFlow cannot compute with a value of type `{self.__type}` while its "
            "program is traced",
            help=operator_fix(self.__type),
        )

    __tf_tensor__ = __array__

    __sub__ = __rsub__ = __neg__ = _refused("-")
    __mul__ = __rmul__ = _refused("*")
    __matmul__ = __rmatmul__ = _refused("@")
    __truediv__ = __rtruediv__ = _refused("/")
    __floordiv__ = __rfloordiv__ = _refused("//")
    __mod__ = __rmod__ = _refused("%")
    __pow__ = __rpow__ = _refused("**")
    __and__ = __rand__ = _refused("&")
    __or__ = __ror__ = _refused("|")
    __xor__ = __rxor__ = _refused("^")
    __lshift__ = __rlshift__ = _refused("<<")
    __rshift__ = __rrshift__ = _refused(">>")
    __lt__ = _refused("<")
    __le__ = _refused("<=")
    __gt__ = _refused(">")
    __ge__ = _refused(">=")
    __pos__ = _refused("+")
    __invert__ = _refused("~")

    def __str__(self) -> str:
        return str(self.__node)

    def __repr__(self) -> str:
        return repr(self.__node)

    def __elements(self, use: str) -> StructType:
        struct = element_struct(self.__type)
        if struct is None:
            raise LanguageTypeError(
                "E444",
                f"a value of type `{self.__type}` has no elements, so it cannot be {use}",
                help=operator_fix(self.__type),
            )
        return struct

    def __field(self, name: str) -> Value:
        struct = element_struct(self.__type)
        index = None if struct is None else struct.index_of(name)
        if struct is None or index is None:
            raise _unknown_field(self.__type, struct, name)
        return _select(self, struct, index)


def scope_of(value: Value) -> FederatedContext | None:
    """Return the innermost trace whose names the value uses; None for a closed value."""
    # The field is mangled so that it cannot clash with an element's name, hence the type: ignore.
    return value._Value__scope  # type: ignore[attr-defined]  # see above


def element_struct(type: Type) -> StructType | None:
    """Return the struct that element access on a value of this type selects from, or None."""
    if isinstance(type, FederatedType):
        type = type.member
    return type if isinstance(type, StructType) else None


def struct_value(
    values: Iterable[Value],
    names: tuple[str | None, ...] | None = None,
    container: type | None = None,
) -> Value:
    """Return a struct of values, with a Python container if given."""
    parts = tuple(values)
    names = (None,) * len(parts) if names is None else names
    node = nodes.StructNode(tuple(part.comp for part in parts), names)
    types = tuple(part.type_signature for part in parts)
    scope: FederatedContext | None = None
    for part in parts:
        scope = innermost(scope, scope_of(part))
    return Value(node, StructWithPythonType.with_container(names, types, container), scope)


def _select(value: Value, struct: StructType, index: int) -> Value:
    """Return element `index` of a value, whose elements are those of `struct`.

    If the value's node is a struct literal, that is the element itself.
    """
    node, scope = value.comp, scope_of(value)
    if struct is value.type_signature:
        chosen = (
            node.values[index] if isinstance(node, nodes.StructNode) else Selection(node, index)
        )
        return Value(chosen, struct.types[index], scope)
    parameter = _member_reference(value)
    return _mapped(value, parameter, Selection(parameter, index), struct.types[index])


def _member_reference(value: Value) -> Reference:
    """Return the parameter of a mapped function that takes a member of a federated value."""
    type = value.comp.type
    assert isinstance(type, FederatedType)
    return Reference("x", type.member)


def _slice(value: Value, struct: StructType, key: slice) -> Value:
    indices = range(len(struct))[key]
    if struct is value.type_signature:
        if not indices:
            raise OutOfRangeError(
                "E441",
                f"a slice of a value of type `{struct}` selects none of its elements",
                help="select at least one element, or write [] for a struct without elements",
            )
        return struct_value([_select(value, struct, index) for index in indices], container=list)
    names = tuple(struct.names[index] for index in indices)
    parameter = _member_reference(value)
    chosen = nodes.StructNode(tuple(Selection(parameter, index) for index in indices), names)
    member = StructType.of(names, tuple(struct.types[index] for index in indices))
    return _mapped(value, parameter, chosen, member)


def _mapped(value: Value, parameter: Reference, result: Node, member: Type) -> Value:
    """Return the map of `(parameter -> result)` over a federated value, inline.

    It gets no symbol, so that element access costs no binding if it is not used.
    """
    source = value.type_signature
    assert isinstance(source, FederatedType)
    if source.placement is SERVER and not source.all_equal:
        raise LanguageTypeError(
            "E446",
            f"elements of a value of type `{source}` cannot be selected: its constituents at the "
            "server may differ",
            help="declare the type of the value with tff.types.at_server",
        )
    function = Lambda(parameter.name, parameter.type, result)
    call = apply(function, value.comp, all_equal=source.all_equal)
    type = FederatedType(member, source.placement, source.all_equal)
    return Value(call, type, scope_of(value))


def _unknown_field(type: Type, struct: StructType | None, name: str) -> MissingElementError:
    if struct is None:
        return MissingElementError(
            "E444",
            f"a value of type `{type}` has no elements, so none is named {name!r}",
            help="work on tensors and sequences belongs in a TensorFlow computation"
            + (", applied with tff.federated_map" if isinstance(type, FederatedType) else ""),
        )
    fields = struct.fields()
    help = did_you_mean(name, fields)
    if not fields:
        help = "its elements have no names; select them by position"
    return MissingElementError(
        "E441",
        f"no element named {name!r} in a value of type `{type}`",
        notes=(f"it has {', '.join(map(repr, fields))}",) if fields else (),
        help=help,
    )
