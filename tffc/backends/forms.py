"""The deployable forms: what each is made of, and the rules that hold between its parts.

One round of a MapReduceForm, for state `s` and clients' data `d1 ... dn`:

    c    = prepare(s)
    ui   = work((di, c))                        each: (update, bitwidth, max_input, modulus)
    a    = fold(accumulate, zero(), [ui[0]])    in shards, joined by merge
    r    = report(a)
    b    = sum of ui[1]                         each below 2 ** secure_sum_bitwidth()
    m    = sum of ui[2]                         each at most secure_sum_max_input()
    q    = sum of ui[3] mod secure_modular_sum_modulus()
    s, x = update((s, (r, b, m, q)))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from tffc.errors import FormError
from tffc.ir.nodes import Compiled, Node
from tffc.ir.types import (
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
    contains,
    transform,
)

WORK_UPDATE, WORK_BITWIDTH, WORK_MAX_INPUT, WORK_MODULUS = range(4)
"""Positions in the result of `work`: the plain update and the three secure sums."""


@dataclasses.dataclass(frozen=True, slots=True)
class MapReduceForm:
    """A round as ten local computations; see the picture at the top of this module.

    `type_signature` is that of the round: `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.

    Raises:
      FormError: a part's type does not fit those it is connected to.
    """

    type_signature: FunctionType
    prepare: Compiled
    work: Compiled
    zero: Compiled
    accumulate: Compiled
    merge: Compiled
    report: Compiled
    secure_sum_bitwidth: Compiled
    secure_sum_max_input: Compiled
    secure_modular_sum_modulus: Compiled
    update: Compiled

    def __post_init__(self) -> None:
        check_sections(self.components())
        work = signature(self.work)
        data = pair(work.parameter, "work", "parameter")
        connect("prepare's result", signature(self.prepare).result, "work", data[1])
        outputs = struct_of(work.result, 4, "work", "result")
        self._check_aggregation(outputs[WORK_UPDATE])
        self._check_update(outputs)

    def _check_aggregation(self, update: Type) -> None:
        zero, accumulate = signature(self.zero).result, signature(self.accumulate)
        accumulator, value = pair(accumulate.parameter, "accumulate", "parameter")
        connect("zero's result", zero, "accumulate", accumulator)
        connect("work's update", update, "accumulate", value)
        connect("accumulate's result", accumulate.result, "accumulate", accumulator)
        merge = signature(self.merge)
        for side in pair(merge.parameter, "merge", "parameter"):
            connect("accumulate's result", accumulate.result, "merge", side)
            connect("merge's result", merge.result, "merge", side)
        connect("merge's result", merge.result, "report", signature(self.report).parameter)

    def _check_update(self, outputs: StructType) -> None:
        state, _ = pair(self.type_signature.parameter, "the round", "parameter")
        state = local_type(state)
        aggregate = (signature(self.report).result, *outputs.types[1:])
        update = signature(self.update)
        argument = StructType([state, StructType(aggregate)])
        connect("state and aggregates", argument, "update", update.parameter)
        new_state, _ = pair(update.result, "update", "result")
        connect("update's new state", new_state, "prepare", signature(self.prepare).parameter)

    def components(self) -> dict[str, Node]:
        """The ten parts by name, in the order in which they are documented."""
        return _components(self)

    @property
    def securely_aggregates_tensors(self) -> bool:
        """Whether any tensor goes through a secure sum."""
        outputs = struct_of(signature(self.work).result, 4, "work", "result")
        return any(contains(output, TensorType) for output in outputs.types[1:])

    def summary(self) -> str:
        """One line a part: its name and its type."""
        return summarize(self.components())


Form: TypeAlias = MapReduceForm


def _components(form: Form) -> dict[str, Node]:
    names = [field.name for field in dataclasses.fields(form)]
    return {name: getattr(form, name) for name in names if name != "type_signature"}


def summarize(components: Mapping[str, Node]) -> str:
    """One line a component, the names padded to the longest."""
    width = max(map(len, components))
    return "\n".join(f"{name:<{width}}: {node.type}" for name, node in components.items())


def signature(section: Node) -> FunctionType:
    """The function type of a part that `check_sections` has passed."""
    assert isinstance(section.type, FunctionType)
    return section.type


def check_sections(components: Mapping[str, Node]) -> None:
    """Raises FormError unless every part is a TensorFlow section with a function type."""
    for name, node in components.items():
        found = f"a {type(node).__name__} of type `{node.type}`"
        is_section = isinstance(node, Compiled) and node.kind == "tensorflow"
        if not is_section or not isinstance(node.type, FunctionType):
            raise FormError("E501", f"{name} has to be a TensorFlow computation, found {found}")


def pair(found: Type | None, part: str, side: str) -> tuple[Type, Type]:
    """The two elements of a type that has to be a struct of two."""
    first, second = struct_of(found, 2, part, side).types
    return first, second


def struct_of(found: Type | None, size: int, part: str, side: str) -> StructType:
    """`found`, which has to be a struct of `size` elements; raises FormError otherwise."""
    if isinstance(found, StructType) and len(found) == size:
        return found
    raise FormError("E502", f"the {side} of {part} has to be a struct of {size}, found `{found}`")


def connect(origin: str, source: Type, part: str, target: Type | None) -> None:
    """Raises FormError unless what `origin` gives can be handed to `part`."""
    if target is not None and target.is_assignable_from(source):
        return
    raise FormError(
        "E503", f"{origin} of type `{source}` does not fit {part}, which takes `{target}`"
    )


def local_type(placed: Type) -> Type:
    """`placed` with every federated type replaced by its member."""
    return transform(placed, lambda t: t.member if isinstance(t, FederatedType) else None)
