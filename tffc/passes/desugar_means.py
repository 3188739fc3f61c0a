"""Writes means as sums and quotients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tffc.ir.alpha import Names
from tffc.ir.calls import add, apply, expand_calls, pack, zip_placed
from tffc.ir.invariants import MEANS
from tffc.ir.nodes import (
    Binding,
    Call,
    Compiled,
    Intrinsic,
    Node,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.types import CLIENTS, SERVER, FederatedType, StructType, Type
from tffc.linking.arithmetic import divide, multiply
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor, map_tensors

Operation = Callable[[GraphBuilder, Operand, Operand], Operand]


def desugar_means(root: Node) -> Node:
    """Write every mean as a sum of values, a sum of weights and their quotient.

    For systems that add but do not average.  A plain mean has ones as weights, in the shape of
    each client's value.  What is bound anew is named after the mean.

        m=federated_mean(v)   becomes   m_total=federated_sum(v), ..., m=federated_apply(<...>)

    Raises:
      GraphError: there is no mean of such values, as of integers.
    """
    names = Names.outside(root)
    return expand_calls(root, MEANS, lambda mean: _desugared(mean, names))


def _desugared(mean: Binding, names: Names) -> list[Binding]:
    made: list[Binding] = []

    def bind(stem: str, value: Node) -> Reference:
        name = names.fresh(f"{mean.name}_{stem}")
        made.append(dataclasses.replace(mean, name=name, value=value))
        return Reference(name, value.type)

    value, weights = _operands(mean.value)
    if weights is None:
        weights = bind("weights", apply(_ones(_member(value)), value))
    else:
        pairs = bind("pairs", zip_placed(pack((value, weights)), CLIENTS))
        value = bind("products", apply(_scaled(multiply, value, weights), pairs))
    total, weight = bind("total", add(value)), bind("weight", add(weights))
    both = bind("both", zip_placed(pack((total, weight)), SERVER))
    quotient = apply(_scaled(divide, total, weight), both)
    return [*made, dataclasses.replace(mean, value=quotient)]


def _operands(mean: Node) -> tuple[Node, Node | None]:
    """The values and the weights of a mean."""
    assert isinstance(mean, Call)
    assert isinstance(mean.function, Intrinsic)
    assert mean.argument is not None
    if mean.function.uri == "federated_mean":
        return mean.argument, None
    if isinstance(mean.argument, Struct):
        value, weights = mean.argument.values
        return value, weights
    return Selection(mean.argument, 0), Selection(mean.argument, 1)


def _member(value: Node) -> Type:
    assert isinstance(value.type, FederatedType)
    return value.type.member


def _ones(member: Type) -> Compiled:
    """The section `(T -> T)` that gives ones of the shape of a value."""
    builder = GraphBuilder()

    def like(tensor: Tensor) -> Tensor:
        return builder.add_typed("OnesLike", [tensor])

    return builder.finish(map_tensors(builder.parameter(member), like), member)


def _scaled(operation: Operation, value: Node, weight: Node) -> Compiled:
    """The section `(<T,W> -> T)` that multiplies or divides values by weights."""
    builder = GraphBuilder()
    operands = builder.parameter(StructType([_member(value), _member(weight)]))
    assert isinstance(operands, tuple)
    return builder.finish(operation(builder, *operands), _member(value))
