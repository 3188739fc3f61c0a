"""`tffc trace` reports common mistakes with their place, a reason and the likely fix."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run

HEAD = """\
import numpy as np
import tffc as tff

MODEL = [("weights", (np.float32, [3])), ("bias", np.float32)]


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def over(x, limit):
    return limit


"""

FEDERATED = (
    HEAD
    + """\
@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def round(state, data):
    {statement}
"""
)

MISTAKES = {
    "a function of NumPy on a value that is traced": (
        "return state, np.mean(data)",
        """\
error[E166]: NumPy and TensorFlow cannot compute with a value of type `{int32}@CLIENTS` while its \
program is traced
  --> mistake.py:14:19
   |
14 |     return state, np.mean(data)
   |                   ^^^^^^^^^^^^^
   |
   = help: write it in a TensorFlow computation `f`, and apply that to each constituent: \
tff.federated_map(f, x)
""",
    ),
    "a broadcast is missing": (
        "return tff.federated_zip((state, data))",
        """\
error[E471]: the value to zip must be a struct of federated values at one placement, but is of \
type `<int32@SERVER,{int32}@CLIENTS>`
  --> mistake.py:14:12
   |
14 |     return tff.federated_zip((state, data))
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = note: it holds values at both placements
   = help: bring the server's value to the clients with tff.federated_broadcast(x) first
""",
    ),
    "a broadcast is missing before a map": (
        "return tff.federated_map(over, (data, state))",
        """\
error[E470]: the value to map must be federated, but is of type `<{int32}@CLIENTS,int32@SERVER>`
  --> mistake.py:14:12
   |
14 |     return tff.federated_map(over, (data, state))
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = note: a struct can stand for a federated value, but it holds values at both placements
   = help: bring the server's value to the clients with tff.federated_broadcast(x) first
""",
    ),
    "a broadcast is missing before a sum": (
        "return tff.federated_sum(state)",
        """\
error[E471]: the value to sum must be at CLIENTS, but is of type `int32@SERVER`
  --> mistake.py:14:12
   |
14 |     return tff.federated_sum(state)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: it is at the server; bring it to the clients with tff.federated_broadcast
""",
    ),
    "a clients' value is used at the server": (
        "return over(data, data)",
        """\
error[E101]: Type `{int32}@CLIENTS` is not assignable to expected type `int32@SERVER`
  --> mistake.py:14:12
   |
14 |     return over(data, data)
   |            ^^^^^^^^^^^^^^^^
   |
   = note: it stands at `.x`
   = help: it is at the clients; bring it to the server with an aggregation, such as \
tff.federated_sum or tff.federated_mean
""",
    ),
    "a clients' value is broadcast": (
        "return tff.federated_broadcast(data)",
        """\
error[E471]: the value to broadcast must be at SERVER, but is of type `{int32}@CLIENTS`
  --> mistake.py:14:12
   |
14 |     return tff.federated_broadcast(data)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: it is at the clients; bring it to the server with an aggregation, such as \
tff.federated_sum or tff.federated_mean
""",
    ),
    "values of both placements are added": (
        "return state + data",
        """\
error[E482]: cannot add values of types `int32@SERVER` and `{int32}@CLIENTS`
  --> mistake.py:14:12
   |
14 |     return state + data
   |            ^^^^^^^^^^^^
   |
   = note: both must be of one type, made of numbers
   = help: bring both to one place: the server's value to the clients with \
tff.federated_broadcast, or the clients' to the server with tff.federated_sum
""",
    ),
    "a plain function is mapped": (
        "return tff.federated_map(max, data)",
        """\
error[E417]: the mapping function must be a computation, but is the Python function 'max'
  --> mistake.py:14:12
   |
14 |     return tff.federated_map(max, data)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: decorate it with @tff.tensorflow.computation(...) or @tff.federated_computation(...), \
with the types of its parameters
""",
    ),
    "a lambda is mapped": (
        "return tff.federated_map(lambda x: x, data)",
        """\
error[E417]: the mapping function must be a computation, but is a Python lambda
  --> mistake.py:14:12
   |
14 |     return tff.federated_map(lambda x: x, data)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: make it a computation: tff.tensorflow.computation(lambda x: ..., T) for x of type T
""",
    ),
    "nothing is returned": (
        "tff.federated_sum(data)",
        """\
error[E415]: 'round' returned None, which is not a value of a program
  --> mistake.py:13:1
   |
13 | def round(state, data):
   | ^^^^^^^^^
   |
   = help: return the result; a function without a return statement returns None
""",
    ),
    "None is returned beside a result": (
        "return state, None",
        """\
error[E460]: None cannot be a value of a program
  --> mistake.py:14:12
   |
14 |     return state, None
   |            ^^^^^^^^^^^
   |
   = note: values are computations, constants of Python and NumPy, placements, and lists, tuples, \
mappings, namedtuples and attrs objects of these
   = note: it stands at `[1]`
   = note: it was returned by 'round'
""",
    ),
    "a constant of another kind": (
        "return tff.to_value(2.5, np.int32)",
        """\
error[E121]: the constant 2.5 of type float32 does not fit int32
  --> mistake.py:14:12
   |
14 |     return tff.to_value(2.5, np.int32)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: convert it first, for example np.int32(...)
""",
    ),
    "a constant that is too large": (
        "return tff.to_value(300, np.int8)",
        """\
error[E121]: the constant 300 of type int32 does not fit int8
  --> mistake.py:14:12
   |
14 |     return tff.to_value(300, np.int8)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: int8 holds the integers from -128 to 127
""",
    ),
    "a constant is not placed": (
        "return over(1, data)",
        """\
error[E461]: the constant 1 stands where a value of type `int32@SERVER` is needed
  --> mistake.py:14:12
   |
14 |     return over(1, data)
   |            ^^^^^^^^^^^^^
   |
   = note: it stands at `.x`
   = help: place it first: tff.federated_value(x, tff.SERVER)
""",
    ),
    "a misspelt keyword": (
        "return over(x=state, limti=data)",
        """\
error[E420]: the computation has no argument named 'limti'; its parameter is \
`<x=int32@SERVER,limit={int32}@CLIENTS>`
  --> mistake.py:14:12
   |
14 |     return over(x=state, limti=data)
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: did you mean 'limit'?
""",
    ),
    "a misspelt operator": (
        "return tff.federated_som(data)",
        """\
error[E469]: module 'tffc' has no attribute 'federated_som'
  --> mistake.py:14:12
   |
14 |     return tff.federated_som(data)
   |            ^^^^^^^^^^^^^^^^^
   |
   = help: did you mean 'federated_sum'?
""",
    ),
    "numeric work in a federated computation": (
        "return 2 * state",
        """\
error[E443]: the operator * cannot be applied to a value of type `int32@SERVER` while its program \
is traced
  --> mistake.py:14:12
   |
14 |     return 2 * state
   |            ^^^^^^^^^
   |
   = help: write it in a TensorFlow computation `f`, and apply that to each constituent: \
tff.federated_map(f, x)
""",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, run: Run, write: Callable[[str, str], pathlib.Path]) -> None:
    statement, text = MISTAKES[mistake]
    write("mistake.py", FEDERATED.format(statement=statement))
    assert run("trace", "mistake.py:round", "-o", "out.pb").refusal == text


FIELDS = (
    HEAD
    + """\
@tff.federated_computation(tff.types.at_clients(MODEL))
def mean(model):
    return tff.federated_mean({field})
"""
)


@pytest.mark.parametrize("field", ["model.weihgts", 'model["weihgts"]'])
def test_misspelt_fields(field: str, run: Run, write: Callable[[str, str], pathlib.Path]) -> None:
    write("mistake.py", FIELDS.format(field=field))
    assert run("trace", "mistake.py:mean", "-o", "out.pb").refusal == (
        "error[E441]: no element named 'weihgts' in a value of type "
        "`{<weights=float32[3],bias=float32>}@CLIENTS`\n"
        "  --> mistake.py:14:31\n"
        "   |\n"
        f"14 |     return tff.federated_mean({field})\n"
        f"   |                               {'^' * len(field)}\n"
        "   |\n"
        "   = note: it has 'weights', 'bias'\n"
        "   = help: did you mean 'weights'?\n"
    )
