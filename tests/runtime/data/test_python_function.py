"""Clients that a Python function gives."""

from __future__ import annotations

import pathlib
import pickle

import numpy as np
import pytest

from tffc.language import SequenceType, TensorType
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.source import check_all
from tffc.support.errors import DataError, LoadError

READINGS = SequenceType(TensorType(np.float32))

MODULE = """\
import functools
import numpy as np

def load(count):
    return [np.float32(n) for n in range(count)]

def lazy():
    return {f"c{n}": functools.partial(load, n) for n in (2, 1)}

def plain():
    return {"ada": [1.5, 2.5]}

def wrong():
    return {"ada": [1.5], "bob": [1.5, "two"]}

def failing():
    return {"ada": lambda: 1 / 0}

def numbered():
    return {1: [1.5]}

def nothing():
    return {}

def broken():
    raise ValueError("no disk")

constant = 3

class Data:
    def __init__(self, **values):
        self.values = values

    @property
    def client_ids(self):
        return sorted(self.values)

    def create_tf_dataset_for_client(self, client):
        return load(self.values[client])

people = Data(ada=2, bob=3)
nobody = Data()

def few():
    return Data(ada=2)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.py").write_text(MODULE)


def refusal(function: str) -> str:
    with pytest.raises(DataError) as caught:
        check_all(open_source(f"python:people.py:{function}", READINGS))
    return str(caught.value)


def test_values_are_made_when_asked_for() -> None:
    source = open_source("python:people.py:lazy", READINGS)
    assert source.clients == ("c1", "c2")
    assert source.read("c2") == [0, 1]
    assert [source.check(client) for client in source.clients] == [(1,), (2,)]


def test_values_may_be_plain() -> None:
    source = open_source("python:people.py:plain", READINGS)
    (first, _) = source.read("ada")
    assert (first, first.dtype) == (1.5, np.float32)
    assert open_data("python:people.py:plain").kinds() == {"ada": "a list of 2 elements"}


@pytest.mark.parametrize("location", ["python:people.py:people", "people.py:people"])
def test_a_client_data_gives_a_dataset_for_each_client(location: str) -> None:
    source = open_source(location, READINGS)
    assert source.clients == ("ada", "bob")
    assert source.read("bob") == [0, 1, 2]
    assert source.origin().options == {"function": "people"}
    again = pickle.loads(pickle.dumps(source))
    assert again.read("ada") == [0, 1]


def test_a_function_may_give_a_client_data() -> None:
    assert open_source("people.py:few", READINGS).clients == ("ada",)


def test_a_client_data_without_clients() -> None:
    assert refusal("nobody") == (
        "people.py:nobody gives an object of class 'Data', expected a mapping with a value for "
        "each client [E689]"
    )


def test_another_process_calls_the_function_itself() -> None:
    source = pickle.loads(pickle.dumps(open_source("python:people.py:lazy", READINGS)))
    assert source.read("c2") == [0, 1]


def test_a_value_of_another_type_is_refused() -> None:
    assert refusal("wrong") == (
        "people.py:wrong: the data of client bob at [1] is 'two', but should be of type `float32` "
        "[E620]"
    )


def test_an_exception_is_the_clients_error() -> None:
    assert refusal("failing") == (
        "making the data of client ada of people.py:failing raised ZeroDivisionError: division by "
        "zero [E692]"
    )
    assert refusal("broken") == "making people.py:broken() raised ValueError: no disk [E692]"


def test_names_are_strings() -> None:
    assert refusal("numbered") == (
        "people.py:numbered() gives a client 1, expected names that are strings [E689]"
    )


def test_there_have_to_be_clients() -> None:
    assert refusal("nothing") == (
        "people.py:nothing() gives a dict of 0 elements, expected a mapping with a value for each "
        "client [E689]"
    )


@pytest.mark.parametrize("name", ["constant", "missing"])
def test_it_has_to_be_a_function(name: str) -> None:
    assert refusal(name) == (
        f"there is no function people.py:{name} [E439]\n"
        "  help: name a function of a module, as in python:clients.py:all_clients"
    )


def test_a_function_of_nearly_that_name_is_suggested() -> None:
    assert refusal("nothin").endswith("[E439]\n  help: did you mean 'nothing'?")


def test_a_module_that_is_missing_is_refused() -> None:
    with pytest.raises(LoadError, match="E434"):
        open_data("python:nobody.py:all")
