"""Names of older releases of TFF, which say what they are called today."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest

import tffc
import tffc as tff
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError

tffc.install_as_tensorflow_federated()


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("type_at_clients", "types.at_clients"),
        ("type_at_server", "types.at_server"),
        ("NamedTupleType", "StructType"),
        ("NamedTupleTypeWithPyContainerType", "StructWithPythonType"),
        ("experimental.jax_computation", "jax.computation"),
        ("federated_apply", "federated_map"),
        ("utils.IterativeProcess", "templates.IterativeProcess"),
        ("utils.update_state", "structure.update_struct"),
    ],
)
@pytest.mark.parametrize("package", ["tffc", "tensorflow_federated"])
def test_former_names(package: str, name: str, today: str) -> None:
    program = f"import {package} as tff\nfound = tff.{name}\nexpected = tff.{today}"
    scope: dict[str, Any] = {"__name__": "a_program"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "program.py", "exec"), scope)
    assert scope["found"] is scope["expected"]
    ((message, category, file, line),) = (
        (str(w.message), w.category, w.filename, w.lineno) for w in caught
    )
    assert message == f"tff.{name} is now tff.{today}"
    assert (category, file, line) == (DeprecationWarning, "program.py", 2)


def test_programs_with_them_are_traced() -> None:
    former: Any = tff
    with pytest.deprecated_call():
        clients = former.type_at_clients(np.int32)
    total = tff.federated_computation(tff.federated_sum, clients)
    assert total([1, 2]) == 3


FORMER_QUESTIONS = {
    "is_tensor": [np.int32],
    "is_struct": [[np.int32], collections.OrderedDict(a=np.int32)],
    "is_struct_with_python": [[np.int32], collections.OrderedDict(a=np.int32)],
    "is_sequence": [tff.SequenceType(np.int32)],
    "is_federated": [tff.FederatedType(np.int32, tff.CLIENTS)],
    "is_function": [tff.FunctionType(None, np.int32)],
    "is_placement": [tff.types.PlacementType()],
}


def test_questions_that_types_answered() -> None:
    types: list[Any] = [tff.to_type(each) for kinds in FORMER_QUESTIONS.values() for each in kinds]
    unnamed: Any = tff.StructType([np.int32])
    for question, kinds in FORMER_QUESTIONS.items():
        holds = {tff.to_type(each) for each in kinds}
        for type in [*types, unnamed]:
            with pytest.warns(DeprecationWarning, match=rf"{question}\(\) is now isinstance"):
                found = getattr(type, question)()
            assert found == (type in holds or (question == "is_struct" and type is unnamed))
    with pytest.raises(AttributeError, match="'TensorType' object has no attribute 'is_round'"):
        types[0].is_round()


def test_a_field_of_a_struct_comes_before_a_question() -> None:
    assert tff.StructType([("is_struct", np.int32)]).is_struct == tff.to_type(np.int32)


def test_names_that_never_were() -> None:
    former: Any = tff
    with pytest.raises(AttributeError, match="E469"):
        _ = former.type_at_nowhere
    with pytest.raises(AttributeError, match=r"module 'tff\.utils' has no attribute 'nothing'"):
        _ = former.utils.nothing


CLIENTS = tff.types.at_clients(np.int32)
PAIR = tff.types.at_clients(collections.OrderedDict(a=np.str_, b=tff.TensorType(np.float32, [2])))


def half_more(all: Any, one: Any) -> Any:
    return all + load_tensorflow().cast(one, "float32") / 2


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_are_collected_and_reduced_in_order() -> None:
    former: Any = tff
    digits = tff.tf_computation(lambda all, one: all * 10 + one, np.int32, np.int32)
    halves = tff.tf_computation(half_more, np.float32, np.int32)

    @tff.federated_computation(CLIENTS)
    def number(values: Any) -> Any:
        # The state may be of another type than the values, and zero of either is used once.
        reduce = former.federated_reduce
        return reduce(values, 5, digits), reduce(values, 0.5, halves)

    assert number([3, 1, 2]) == (5312, 3.5)
    assert number([]) == (5, 0.5)
    collect = tff.federated_computation(lambda values: former.federated_collect(values), PAIR)
    assert str(collect.type_signature.result) == "<a=str,b=float32[2]>*@SERVER"
    found = list(collect([{"a": "x", "b": [1.0, 2.0]}, {"a": "y", "b": [3.0, 4.0]}]))
    assert [(bytes(row["a"].numpy()), row["b"].numpy().tolist()) for row in found] == [
        (b"x", [1, 2]),
        (b"y", [3, 4]),
    ]


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_only_tensors_of_known_shape_are_collected() -> None:
    former: Any = tff
    for member in (tff.SequenceType(np.int32), tff.TensorType(np.int32, [None])):
        with pytest.raises(LanguageTypeError) as caught:
            tff.federated_computation(former.federated_collect, tff.types.at_clients(member))
        assert (caught.value.code, caught.value.message) == (
            "E739",
            "only tensors of known shape can be collected from the clients, not "
            f"`{{{member}}}@CLIENTS`",
        )
