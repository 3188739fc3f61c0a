"""What `import tffc as tff` gives, and that it costs nothing until it is used."""

from __future__ import annotations

from typing import Any

import pytest

import tffc as tff
from tests.processes import run_python
from tffc.tff.backends import mapreduce


@pytest.mark.parametrize("name", dir(tff))
def test_every_name_is_there(name: str) -> None:
    assert getattr(tff, name) is not None
    assert name in dir(tff)


def test_the_names_of_the_documents() -> None:
    assert tff.tensorflow.computation is tff.tf_computation
    assert tff.structure.Struct is tff.Struct
    assert str(tff.types.at_server(int)) == "int32@SERVER"
    backends: Any = tff.backends
    assert callable(backends.mapreduce.federated_secure_modular_sum)


@pytest.mark.parametrize(
    ("type_", "floats", "integers", "tensors"),
    [
        (int, False, True, True),
        ([float, {"a": float}], True, False, True),
        ([], True, True, True),
        (tff.types.at_server([float, int]), False, False, False),
        (complex, False, False, True),
        (tff.SequenceType(int), False, False, False),
        (tff.FunctionType(None, int), False, False, False),
    ],
)
def test_questions_about_types(type_: object, floats: bool, integers: bool, tensors: bool) -> None:
    converted = tff.to_type(type_)
    assert tff.types.is_structure_of_floats(converted) is floats
    assert tff.types.is_structure_of_integers(converted) is integers
    assert tff.types.is_structure_of_tensors(converted) is tensors


# Looking up what is not there is what is tried, so its types and its use are not checked.
def test_unknown_names() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = tff.federated_som  # type: ignore[attr-defined]  # missing on purpose
    line = test_unknown_names.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        "module 'tffc' has no attribute 'federated_som' [E469]\n"
        f"  at {__file__}:{line}\n"
        "  help: did you mean 'federated_sum'?"
    )
    with pytest.raises(AttributeError, match=r"did you mean 'types\.at_clients'\?"):
        _ = tff.types_at_clients  # type: ignore[attr-defined]  # missing on purpose
    with pytest.raises(AttributeError, match=r"did you mean 'templates\.IterativeProcess'\?"):
        _ = tff.IterativeProcess  # type: ignore[attr-defined]  # missing on purpose
    with pytest.raises(AttributeError):
        _ = mapreduce.nothing  # type: ignore[attr-defined]  # missing on purpose


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import tffc", ["numpy", "tensorflow", "tffc.frontend", "google.protobuf"]),
        (
            "import tffc as tff; tff.federated_computation(lambda x: x, tff.types.at_server(int))",
            ["tensorflow"],
        ),
    ],
)
def test_what_is_imported(program: str, absent: list[str]) -> None:
    check = f"{program}; import sys; print([m for m in {absent!r} if m in sys.modules])"
    done = run_python("-c", check, check=True)
    assert done.stdout == "[]\n"
