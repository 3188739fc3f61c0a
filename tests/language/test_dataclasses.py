"""Dataclasses as structs: their types, and their values on the way in and out."""

from __future__ import annotations

import collections
import dataclasses
import pickle
from typing import Any, ClassVar

import numpy as np

from tffc.language import TensorType, to_type
from tffc.language.containers.named import is_named_container
from tffc.language.types import CLIENTS, SequenceType, StructWithPythonType
from tffc.language.values.concrete import to_python, to_value
from tffc.language.wire import type_from_bytes, type_to_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    kernel: Any
    bias: Any = np.float32


@dataclasses.dataclass(kw_only=True)
class State:
    rounds: Any = np.int32
    weights: Any


@dataclasses.dataclass
class Longer(State):
    momentum: Any = None
    classes: ClassVar[int] = 3


def test_dataclasses() -> None:
    type_ = to_type(Longer(weights=Weights((np.float32, [2])), momentum=[bool, bool]))
    assert isinstance(type_, StructWithPythonType)
    text = "<rounds=int32,weights=<kernel=float32[2],bias=float32>,momentum=<bool,bool>>"
    assert (str(type_), type_.container) == (text, Longer)
    assert pickle.loads(pickle.dumps(type_)) == type_
    read = type_from_bytes(type_to_bytes(type_))
    assert (str(read), isinstance(read, StructWithPythonType)) == (text, False)
    value = Longer(weights=Weights(np.ones(2, np.float32), 0.5), momentum=[True, False])
    value.rounds = 1
    there = to_value(value, type_)
    back = to_python(there, type_)
    assert (type(back), type(back.weights), back.weights.bias) == (Longer, Weights, 0.5)
    assert (back.rounds, back.momentum) == (1, [True, False])
    # They are read by name, so any container of the names gives the same.
    fields = {"momentum": [True, False], "weights": value.weights, "rounds": 1}
    assert repr(to_value(fields, type_)) == repr(there)


def test_elements_of_sequences_are_not_dataclasses() -> None:
    # A dataset could not hold them.
    sequence = SequenceType(Weights(np.int32))
    assert isinstance(sequence.element, StructWithPythonType)
    assert sequence.element.container is collections.OrderedDict
    assert to_value([Weights(1, 0.5)], sequence) == [(1, 0.5)]


def test_what_is_a_dataclass_of_this_package_is_no_container() -> None:
    for own in (CLIENTS, TensorType(np.int32)):
        assert not is_named_container(own)
