"""Names of older releases of TFF, which say what they are called today."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest

import tffc
import tffc as tff

tffc.install_as_tensorflow_federated()


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("type_at_clients", "types.at_clients"),
        ("type_at_server", "types.at_server"),
        ("NamedTupleType", "StructType"),
        ("NamedTupleTypeWithPyContainerType", "StructWithPythonType"),
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
    with pytest.raises(AttributeError, match="a TensorType has no attribute 'is_round'"):
        types[0].is_round()


def test_a_field_of_a_struct_comes_before_a_question() -> None:
    assert tff.StructType([("is_struct", np.int32)]).is_struct == tff.to_type(np.int32)


def test_names_that_never_were() -> None:
    former: Any = tff
    with pytest.raises(AttributeError, match="E469"):
        former.type_at_nowhere  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'tff\.utils' has no attribute 'nothing'"):
        former.utils.nothing  # noqa: B018
