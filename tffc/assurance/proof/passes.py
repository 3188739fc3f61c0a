"""Elements of datasets that a graph computes once, for all iterations.

They are recognized by the nodes in which tffc writes them, which may differ in nothing but the
types and shapes of the elements: a cache in memory, which is new in each run, and a pass over all
of it, for which all readers wait.  Nothing else may use the cache, nor wait for a part of this.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Hashable, Mapping

from tffc.assurance.proof.attributes import (
    AttrValue,
    flag_attribute,
    shapes_attribute,
    type_attribute,
    types_attribute,
    types_in,
)
from tffc.assurance.proof.constants import constant
from tffc.assurance.proof.fields import Message, encoded
from tffc.assurance.proof.graph import Library, Plan
from tffc.assurance.proof.values import in_dataset_order, leaves_of
from tffc.graphs.operations.iterations import INFINITE, WITHOUT_END
from tffc.graphs.proto import FunctionDef
from tffc.language.dtypes import DType
from tffc.language.types import SequenceType, TensorType, Type

NUMBER, TEXT = TensorType(DType.INT64), TensorType(DType.STRING)


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    """A pass over a dataset, which is a value of a plan and one of its outputs.

    `shapes` and `types` are attributes with those of the elements, and `function` is the name of
    the function that is applied to them.
    """

    dataset: tuple[int, int]
    shapes: bytes
    types: bytes
    function: str

    def is_of(self, element: Type) -> bool:
        """Tell whether these are the types and shapes of elements of a type."""
        kinds = in_dataset_order(element, leaves_of(element))
        return (shapes_attribute(kinds), types_attribute(kinds)) == (self.shapes, self.types)


class Passes:
    """The passes in a plan, by the place of the step that gives the elements; `hidden` has the
    places of their other steps."""

    def __init__(self, plan: Plan, library: Library) -> None:
        self.by_place: dict[int, Pass] = {}
        self.hidden: set[int] = set()
        if all(step.facts.op != "CacheDatasetV2" for step in plan.steps):
            return
        users: defaultdict[int, list[int]] = defaultdict(list)
        for place, step in enumerate(plan.steps):
            for index in (*(index for index, _ in step.data), *step.controls):
                users[index].append(plan.arguments + place)
        for index, _ in plan.results:
            users[index].append(-1)
        for place, step in enumerate(plan.steps):
            if step.facts.op == "Identity" and len(step.data) == len(step.controls) == 1:
                self._match(plan, library, place, users)

    def _match(
        self, plan: Plan, library: Library, place: int, users: Mapping[int, list[int]]
    ) -> None:
        """Note the pass before an Identity, if it is one."""
        values = _bound(plan, plan.arguments + place)
        if values is None:
            return
        cache, whole = (plan.steps[values[name][0] - plan.arguments] for name in ("cache", "whole"))
        match cache.facts.label:
            case (_, ("output_shapes", bytes() as shapes), ("output_types", bytes() as types)):
                pass
            case _:
                return
        if len(whole.facts.functions) != 1 or whole.facts.functions[0] in library.gradients:
            return
        (function,) = whole.facts.functions
        if not _returns_first(library.functions.get(function), shapes, types):
            return
        labels = _labels(shapes, types)
        steps = {name: values[name][0] for name in INPUTS}
        others = {index for name, index in steps.items() if name != "elements"}
        if len(others) + 1 != len(INPUTS) or any(
            plan.steps[index - plan.arguments].facts.label != labels[name]
            for name, index in steps.items()
        ):
            return
        inside = {*others, steps["elements"]}
        if all(inside.issuperset(users[index]) for index in others):
            self.by_place[place] = Pass(values["dataset"], shapes, types, function)
            self.hidden.update(index - plan.arguments for index in others)


INPUTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "elements": (("cache",), ("whole",)),
    "whole": (("cache", "zero"), ("check",)),
    "check": (("has an end", "message"), ()),
    "has an end": (("length", "infinite"), ()),
    "length": (("cache",), ()),
    "cache": (("dataset", "file", "memory"), ()),
    "file": ((), ()),
    "infinite": ((), ()),
    "memory": ((), ()),
    "message": ((), ()),
    "zero": ((), ()),
}
"""The steps of a pass, each with its inputs and with what it waits for; the dataset is none."""


def _bound(plan: Plan, elements: int) -> dict[str, tuple[int, int]] | None:
    """Return the values of a plan that the steps of a pass are, each with one of its outputs, or
    None if they are not connected as `INPUTS` says."""
    values = {"elements": (elements, 0)}
    for name, (data, controls) in INPUTS.items():  # each after one that uses it
        place = values[name][0] - plan.arguments
        if place < 0:
            return None
        step = plan.steps[place]
        if len(step.data) != len(data) or len(step.controls) != len(controls):
            return None
        inputs = [*step.data, *((index, 0) for index in step.controls)]
        for other, value in zip((*data, *controls), inputs, strict=True):
            if values.setdefault(other, value) != value or (other != "dataset" and value[1]):
                return None
    return values


def _labels(shapes: bytes, types: bytes) -> dict[str, Hashable]:
    """Return the labels of the steps of a pass."""
    number = ("T", type_attribute(NUMBER))
    minus_one = INFINITE.to_bytes(8, "little", signed=True)
    return {
        "elements": ("Identity", ("T", type_attribute(SequenceType(NUMBER)))),
        "whole": (
            "ReduceDataset",
            ("Targuments", types_attribute([])),
            ("Tstate", types_attribute([NUMBER])),
            ("f", ("function", True)),
            ("output_shapes", shapes_attribute([NUMBER])),
            ("output_types", types_attribute([NUMBER])),
            ("use_inter_op_parallelism", flag_attribute(True)),
        ),
        "check": ("Assert", ("T", types_attribute([TEXT]))),
        "has an end": ("NotEqual", number),
        "length": ("DatasetCardinality",),
        "cache": ("CacheDatasetV2", ("output_shapes", shapes), ("output_types", types)),
        "file": ("Const", constant(DType.STRING.number, (), (b"",))),
        "infinite": ("Const", constant(DType.INT64.number, (), minus_one)),
        "memory": ("DummyMemoryCache",),
        "message": ("Const", constant(DType.STRING.number, (), (WITHOUT_END,))),
        "zero": ("Const", constant(DType.INT64.number, (), bytes(8))),
    }


def _returns_first(function: Message | None, shapes: bytes, types: bytes) -> bool:
    """Tell whether a function takes a number and an element of these types and shapes, and does
    nothing but return the number."""
    if function is None:
        return False
    expected = FunctionDef()
    signature = expected.signature
    signature.name = function.signature.name
    kinds = [DType.INT64.number, *types_in(types)]
    argument_shapes = [
        AttrValue.FromString(shapes_attribute([NUMBER])).list.shape[0],
        *AttrValue.FromString(shapes).list.shape,
    ]
    if len(kinds) != len(argument_shapes):
        return False
    for index, (kind, shape) in enumerate(zip(kinds, argument_shapes, strict=True)):
        signature.input_arg.add(name=f"argument_{index}", type=kind)
        expected.arg_attr[index].attr["_output_shapes"].list.shape.add().CopyFrom(shape)
    signature.output_arg.add(name="result_0", type=DType.INT64.number)
    expected.ret["result_0"] = "argument_0"
    return encoded(expected) == encoded(function)
