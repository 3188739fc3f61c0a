"""Arrays that a program uses and does not train, such as the weights of a pretrained model."""

from __future__ import annotations

from typing import Any

from tffc.frontend.computation import Computation
from tffc.frontend.conversion import is_constant, open_container
from tffc.frontend.hints import described
from tffc.graphs.resources import ResourceNode
from tffc.language.array import infer_dtype
from tffc.language.dtypes import DType, to_dtype
from tffc.language.type_parts import without_containers
from tffc.language.types import FunctionType, StructWithPythonType, TensorType, Type
from tffc.language.values.resources import STORE
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, TffcError
from tffc.support.guards import Array
from tffc.support.trampoline import Task, run


@entry_point
def resource(values: object) -> Computation:
    """Return a computation `( -> T)` that gives arrays, which are copied now.

    `values` is an array of numbers, or a mapping, list, tuple or struct of arrays.  A program that
    calls the computation names the arrays by their digests: a bundle has each array once, and
    messages, graphs and broadcasts have none of them.

    Raises:
      LanguageTypeError: a part of the values is not an array of numbers.
    """
    builder = GraphBuilder()
    type, operand = run(_held(values, builder, set()))
    section = builder.finish(operand, without_containers(type))
    return Computation(section, FunctionType(None, type))


def _held(source: object, builder: GraphBuilder, around: set[int]) -> Task[tuple[Type, Operand]]:
    """Return the type of values, and what stands for them in a graph; `around` has the ids of the
    containers that they are in."""
    opened = open_container(source)
    if opened is None:
        array = _array(source)
        kind = TensorType(to_dtype(array.dtype), array.shape)
        node = ResourceNode(STORE.add(array), kind.element_type.number, tuple(array.shape))
        return kind, builder.resource(node)
    if id(source) in around:
        raise _refusal("a container that contains itself")
    types: list[Type] = []
    operands: list[Operand] = []
    for member in opened.members:
        type, operand = yield _held(member, builder, around | {id(source)})
        types.append(type)
        operands.append(operand)
    struct = StructWithPythonType.with_container(opened.names, tuple(types), opened.container)
    return struct, tuple(operands)


def _array(source: Any) -> Array:
    """Return an array of numbers of NumPy, TensorFlow, JAX or PyTorch, or a number, for NumPy."""
    import numpy as np

    try:
        array = np.asarray(source, infer_dtype(source).dtype if is_constant(source) else None)
        dtype = to_dtype(array.dtype)
    except (TffcError, TypeError, ValueError, RuntimeError, NotImplementedError):
        raise _refusal(described(source)) from None
    if dtype is DType.STRING:
        raise _refusal(described(source))
    return array


def _refusal(what: str) -> LanguageTypeError:
    return LanguageTypeError(
        "E342",
        f"a resource is made of arrays of numbers, not of {what}",
        help="give an array, or a mapping, list, tuple or struct of arrays",
    )
