"""Buffered rounds over a MergeableForm: contributions of single clients, discounted by age.

    u    = up_to_merge((s, d))          for one client, on the state that it was given
    u    = discount(age) u              in floating-point sums, when it arrives
    t    = merge((t, u))                with the contributions that have arrived before
    s, x = after_merge(((s, d), t))     once enough have, with the state of now

The age of a contribution is the number of steps that the server has made since the client was given
its state.  Sums of integers, minima and maxima are merged as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tffc.backends.forms.discount import is_discounted
from tffc.backends.forms.form import struct
from tffc.backends.forms.mergeable import MergeableForm
from tffc.backends.forms.steps import Runtime, Value
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Intrinsic,
    Node,
    Reference,
    StructNode,
)
from tffc.language.type_parts import leaves, local_type
from tffc.language.values.concrete import flatten, unflatten
from tffc.support.errors import ExecutionError, FormError

SUM, EXTREMES = "federated_sum", ("federated_min", "federated_max")


class BufferedSteps:
    """The steps of buffered rounds; `group` are those of one client's contribution.

    Raises:
      FormError: the results of an aggregation cannot be discounted.
    """

    def __init__(self, form: MergeableForm, discount: Compiled, runtime: Runtime) -> None:
        self._steps = form.steps(runtime)
        self._runtime = runtime
        self._section = discount
        self._partial = local_type(form.up_to_merge.type.result)
        self._scaled = list(_scaled(form))
        self.group = self._steps.group
        self.join = self._steps.join
        self.conclude = self._steps.conclude
        self._weights: dict[int, Any] = {}

    def weight(self, age: int) -> Any:
        """Return the weight of contributions of an age, a float32.

        Raises:
          ExecutionError: it cannot be computed, or is negative or not finite.
        """
        if age not in self._weights:
            weight = np.float32(self._runtime.run(self._section, np.int32(age)))
            if not (np.isfinite(weight) and weight >= 0):
                raise ExecutionError(
                    "E534",
                    f"the discount of a buffered round is {weight} for the age {age}",
                    help="let it give a finite number from 0 on for every age from 0 on",
                )
            self._weights[age] = weight
        return self._weights[age]

    def discounted(self, partial: Value, weight: Value) -> Value:
        """Return a contribution with its floating-point sums multiplied by a weight."""
        pairs = zip(flatten(partial, self._partial), self._scaled, strict=True)
        parts = (_times(part, weight) if scaled else part for part, scaled in pairs)
        return unflatten(parts, self._partial)


def _times(value: Any, weight: Any) -> Any:
    array = np.asarray(value)
    with np.errstate(all="ignore"):
        return np.multiply(array, np.asarray(weight).astype(array.dtype), dtype=array.dtype)[()]


def _scaled(form: MergeableForm) -> Iterator[bool]:
    """Yield whether each tensor of what `up_to_merge` gives is discounted."""
    body = form.up_to_merge.result
    values = {b.name: b.value for b in body.locals} if isinstance(body, Block) else {}
    parts = _followed(body.result if isinstance(body, Block) else body, values)
    types = struct(local_type(form.up_to_merge.type.result)).types
    elements = _elements(parts, values)
    for index, type in enumerate(types):
        call = _followed(elements[index], values) if index < len(elements) else None
        operator = call.function if isinstance(call, Call) else None
        uri = operator.uri if isinstance(operator, Intrinsic) else ""
        if uri not in (SUM, *EXTREMES):
            raise FormError(
                "E534",
                f"the element {index} of what up_to_merge gives cannot be discounted by age: it is "
                f"the result of {uri or 'no operator'}",
                help="run the bundle without a buffer",
            )
        yield from (uri == SUM and is_discounted(leaf) for leaf in leaves(type))


def _elements(node: Node, values: dict[str, Node]) -> tuple[Node, ...]:
    """Return the elements that are zipped at the server."""
    while isinstance(node, Call) and node.argument is not None:
        node = _followed(node.argument, values)
    return node.values if isinstance(node, StructNode) else ()


def _followed(node: Node, values: dict[str, Node]) -> Node:
    """Return the expression that a name stands for."""
    while isinstance(node, Reference) and node.name in values:
        node = values[node.name]
    return node
