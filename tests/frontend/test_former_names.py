"""Names of older releases of TFF, which say what they are called today."""

from __future__ import annotations

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


def test_names_that_never_were() -> None:
    former: Any = tff
    with pytest.raises(AttributeError, match="E469"):
        former.type_at_nowhere  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'tff\.utils' has no attribute 'nothing'"):
        former.utils.nothing  # noqa: B018
