"""Likely fixes for mistakes, for the help line of errors."""

from __future__ import annotations

import inspect
from types import FunctionType as PythonFunction
from typing import Any

from tffc.language.traverse import contains
from tffc.language.type_base import first_difference
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)

MAX_SHOWN = 60
"""The most characters of a constant that messages show."""


def likely_fix(target: Type, source: Type) -> str | None:
    """Return the fix if a value of type `source` was given for one of type `target`."""
    fix = _fix_of_whole(target, source)
    if fix is None and isinstance(target, StructType) and isinstance(source, StructType):
        difference = first_difference(target, source)
        return None if difference is None else _fix_of_whole(*difference[1:])
    return fix


def _fix_of_whole(target: Type, source: Type) -> str | None:
    """Return the fix for two types that differ as a whole, not in a part only."""
    match target, source:
        case FederatedType(), FederatedType() if target.placement is not source.placement:
            return move_to(target)
        case FederatedType(), FederatedType() if target.member.is_assignable_from(source.member):
            return "only values made by federated_broadcast or federated_value are all equal"
        case FederatedType(), FederatedType():
            return likely_fix(target.member, source.member)
        case FederatedType(), _ if not contains(source, FederatedType):
            return f"place it first: tff.federated_value(x, tff.{target.placement})"
        case _, FederatedType() if not contains(target, FederatedType):
            return "apply it to each constituent: tff.federated_map(f, x)"
        case TensorType(), TensorType() if target.element_type is not source.element_type:
            return (
                f"convert it in a TensorFlow computation, with tf.cast(x, tf.{target.element_type})"
            )
        case StructType(), StructType():
            return _struct_fix(target, source)
        case SequenceType(), StructType():
            return (
                "make it a sequence in a TensorFlow computation, with "
                "tf.data.Dataset.from_tensor_slices(x)"
            )
        case _, FunctionType() if not isinstance(target, FunctionType):
            return "call the function and give its result"
        case _:
            pass
    return None


def _struct_fix(target: StructType, source: StructType) -> str | None:
    """Return the fix for structs whose elements differ in number or names."""
    names = target.fields()
    if len(target) != len(source):
        return f"give a struct of {len(target)}, not of {len(source)}"
    if names == source.fields():
        return None
    if sorted(names) == sorted(source.fields()):
        return f"give the elements in the order {', '.join(names)}"
    if source.fields() and len(names) == len(target):
        return f"name the elements {', '.join(names)}, or leave out the names"
    return None


def instead_of(banned: Type) -> str:
    """Return what a one-participant computation can take instead of a type that it cannot take."""
    match banned:
        case FederatedType():
            return (
                f"declare the type of one constituent, `{banned.member}`, and apply the "
                "computation with tff.federated_map"
            )
        case SequenceType():
            return (
                "take the whole sequence as one array, such as (np.int32, [10]), or use TensorFlow"
            )
        case FunctionType():
            return "call the function in a tff.federated_computation, and take its result here"
        case _:
            return "use it in a tff.federated_computation"


def addition_fix(left: Type, right: Type) -> str | None:
    """Return the fix if values of these types were to be added."""
    match left, right:
        case FederatedType(), FederatedType() if left.placement is not right.placement:
            return (
                "bring both to one place: the server's value to the clients with "
                "tff.federated_broadcast, or the clients' to the server with tff.federated_sum"
            )
        case FederatedType(), _ if not contains(right, FederatedType):
            return likely_fix(left, right)
        case _, FederatedType() if not contains(left, FederatedType):
            return likely_fix(right, left)
        case _:
            pass
    return None


def operator_fix(type: Type) -> str:
    """Return the fix if a Python operator was used on a value of this type."""
    if isinstance(type, FederatedType):
        return (
            "write it in a TensorFlow computation `f`, and apply that to each constituent: "
            "tff.federated_map(f, x)"
        )
    return "write it in a TensorFlow computation, and call that"


def change_fix(type: Type) -> str:
    """Return the fix if an element of a value of this type was assigned to."""
    value = "collections.OrderedDict(a=..., b=x.b)"
    if isinstance(type, FederatedType):
        value = f"tff.federated_zip({value})"
    return f"make a new value of the elements that stay and those that differ: {value}"


def move_to(target: FederatedType) -> str:
    """Return how to move a value to the placement of `target` from the other one."""
    if target.placement is SERVER:
        return (
            "it is at the clients; bring it to the server with an aggregation, such as "
            "tff.federated_sum or tff.federated_mean"
        )
    assert target.placement is CLIENTS
    return "it is at the server; bring it to the clients with tff.federated_broadcast"


def constant_fix(target: Type) -> str | None:
    """Return the fix if a constant was given for a value of type `target`."""
    match target:
        case FederatedType():
            return f"place it first: tff.federated_value(x, tff.{target.placement})"
        case SequenceType():
            return "make the sequence in a TensorFlow computation, as a tf.data.Dataset"
        case StructType():
            return f"give a list or mapping of {len(target)} elements"
        case FunctionType():
            return "give a computation"
        case _:
            pass
    return None


def shown(item: object) -> str:
    """Return a constant in Python's notation, on one line and abridged."""
    text = " ".join(repr(item).split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def described(item: Any) -> str:
    """Describe a Python object briefly and without its address."""
    if item is None:
        return "None"
    if _is_lambda(item):
        return "a Python lambda"
    # Nothing asks the object itself, which may be a proxy for something that is not there.
    is_class = issubclass(type(item), type)
    name = inspect.getattr_static(item, "__name__", None)
    if callable(item) and not is_class and name is not None:
        return f"the Python function {item.__name__!r}"
    if is_class:
        return f"the class {item.__name__!r}"
    return f"an object of class {type(item).__name__!r}"


def alternative(item: object) -> str | None:
    """Return what to give instead of a Python object that has no meaning in a program."""
    module = type(item).__module__
    if _is_lambda(item):
        return "make it a computation: tff.tensorflow.computation(lambda x: ..., T) for x of type T"
    if callable(item) and not isinstance(item, type):
        return (
            "decorate it with @tff.tensorflow.computation(...) or "
            "@tff.federated_computation(...), with the types of its parameters"
        )
    if isinstance(item, (set, frozenset, range)) or hasattr(item, "__next__"):
        return "give a list or tuple"
    if module.partition(".")[0] in ("tensorflow", "keras"):
        return "make it inside a TensorFlow computation; a constant can be given as NumPy array"
    return None


def _is_lambda(item: Any) -> bool:
    return issubclass(type(item), PythonFunction) and item.__name__ == "<lambda>"
