"""Writes means as sums and quotients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

from tffc.language.alpha import Names
from tffc.language.calls import apply, expand_calls, federated_sum, pack, uri_of, zip_placed
from tffc.language.invariants import MEANS
from tffc.language.nodes import Binding, Call, Compiled, Node, Reference
from tffc.language.type_parts import local_type
from tffc.language.types import CLIENTS, SERVER, StructType, Type
from tffc.linking.aggregations import PLAIN, Mean
from tffc.linking.emit import Emitter
from tffc.linking.operand import Operand

MakeFunction: TypeAlias = Callable[[Type, Type, Callable[[Any, Any], Any]], Node]
"""Returns the function from one type to another that an arithmetic computes of its parameter."""


def desugar_means(root: Node) -> Node:
    """Rewrite every mean as a sum of values, a sum of weights and their quotient.

    This is for systems that add but do not average.  A plain mean has ones as weights, in the shape
    of each client's value.  New bindings are named after the mean.

        m=federated_mean(v)   becomes   m_total=federated_sum(v), ..., m=federated_apply(<...>)

    Raises:
      GraphError: there is no mean of such values, as of integers.
    """
    return means_as_sums(root, Names.outside(root), section)


def means_as_sums(
    root: Node, names: Names, function: MakeFunction, *, multiplies: bool = False
) -> Node:
    """Do as `desugar_means`, with names that are not taken and functions that `function` makes.

    If it `multiplies`, values of weight one are multiplied too, as MapReduceForm does and as the
    mean is defined in proofs.
    """
    return expand_calls(root, MEANS, lambda mean: _desugared(mean, names, function, multiplies))


def _desugared(
    binding: Binding, names: Names, function: MakeFunction, multiplies: bool
) -> list[Binding]:
    made: list[Binding] = []
    assert isinstance(binding.value, Call)
    mean = PLAIN[uri_of(binding.value)](binding.value)
    assert isinstance(mean, Mean)

    def bind(stem: str, value: Node) -> Reference:
        name = names.fresh(f"{binding.name}_{stem}")
        made.append(dataclasses.replace(binding, name=name, value=value))
        return Reference(name, value.type)

    value, *weights = mean.values
    member = local_type(value.type)
    if not weights:
        ones = function(member, member, mean.weight)
        weight = bind("weights", apply(ones, value))
        if multiplies:
            product = function(member, member, lambda by, v: mean.weigh(by, v, mean.weight(by, v)))
            value = bind("products", apply(product, value))
    else:
        (weight,) = weights
        pairs = bind("pairs", zip_placed(pack((value, weight)), CLIENTS))
        both = StructType([member, local_type(weight.type)])
        product = function(both, member, lambda by, pair: mean.weigh(by, *pair))
        value = bind("products", apply(product, pairs))
    totals = bind("total", federated_sum(value)), bind("weight", federated_sum(weight))
    both = bind("both", zip_placed(pack(totals), SERVER))
    quotient = function(
        StructType([local_type(total.type) for total in totals]), member, mean.conclude
    )
    return [*made, dataclasses.replace(binding, value=apply(quotient, both))]


def section(parameter: Type, result: Type, compute: Callable[[Emitter, Any], Operand]) -> Compiled:
    """Return the TensorFlow section that computes `compute` of its parameter."""
    by = Emitter()
    return by.builder.finish(compute(by, by.builder.parameter(parameter)), result)
