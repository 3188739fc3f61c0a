"""Objects of a user's that raise when they are looked at, given as clients' data."""

from __future__ import annotations

import pathlib

import pytest

from tffc.runtime.data.python_function import PythonFunction
from tffc.support.errors import DataError

CLIENTS = """
class Lacking:
    def __getattr__(self, name):
        raise ZeroDivisionError(name)

class Hiding:
    def __getattribute__(self, name):
        raise ZeroDivisionError(name)

class Nameless(type):
    def __getattribute__(cls, name):
        raise ZeroDivisionError(name)

class Client(metaclass=Nameless):
    pass

lacking = Lacking()
hiding = Hiding()

def given():
    return lacking

def of_no_class():
    return Client()

def named_so():
    return {Client(): 1}
"""


@pytest.mark.parametrize(
    "name", ["lacking", "hiding", "given", "Client", "of_no_class", "named_so"]
)
def test_what_raises_is_an_error_of_the_data(name: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clients.py"
    path.write_text(CLIENTS)
    with pytest.raises(DataError) as caught:
        PythonFunction(f"{path}:{name}")
    assert (caught.value.code, "ZeroDivisionError" in caught.value.message) == ("E692", True)


def test_an_object_in_the_place_of_the_module(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replaced.py").write_text("import sys\nsys.modules[__name__] = object()\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        PythonFunction("replaced:clients")
    assert caught.value.code == "E439"
