"""What every operator refuses, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.support.errors import ContextError

fc = tff.federated_computation
Clients, Server, Sequence = tff.types.at_clients, tff.types.at_server, tff.SequenceType
INT, FLOAT = np.int32, np.float32
KEYS, MODEL = Clients((INT, [3])), Server((FLOAT, [10]))
STRUCT = [("a", INT), ("b", [INT, np.int64])]

ident = fc(lambda a: a, INT)
first = fc(lambda a, b: a, INT, INT)
poly = fc(lambda a, b: a)
pick = fc(lambda d, i: d, (FLOAT, [10]), INT)
one = fc(lambda: 1)

DECORATE = (
    "\n  help: decorate it with @tff.tensorflow.computation(...) or "
    "@tff.federated_computation(...), with the types of its parameters"
)
FUNCTION_FIRST = "\n  help: the function comes first and the value after it"
TO_SERVER = (
    "\n  help: it is at the clients; bring it to the server with an aggregation, such as "
    "tff.federated_sum or tff.federated_mean"
)
TO_CLIENTS = "\n  help: it is at the server; bring it to the clients with tff.federated_broadcast"

Refused = tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]

REFUSED: dict[str, Refused] = {
    "sum of an unplaced value": (
        lambda x: tff.federated_sum(x),
        (INT,),
        TypeError,
        "the value to sum must be federated, but is of type `int32` [E470]\n"
        "  help: place it first: tff.federated_value(x, tff.CLIENTS)",
    ),
    "sum of an empty list": (
        lambda x: tff.federated_sum([]),
        (INT,),
        TypeError,
        "the value to sum must be federated, but is of type `<>` [E470]\n"
        "  note: a struct can stand for a federated value, but it holds no federated value",
    ),
    "sum of a partly placed list": (
        lambda x, y: tff.federated_sum([x, y]),
        (Clients(INT), INT),
        TypeError,
        "the value to sum must be federated, but is of type `<{int32}@CLIENTS,int32>` [E470]\n"
        "  note: a struct can stand for a federated value, but `int32` in it is not federated\n"
        "  help: place it first: tff.federated_value(x, tff.SERVER) or tff.CLIENTS",
    ),
    "sum at the server": (
        lambda x: tff.federated_sum(x),
        (Server(INT),),
        TypeError,
        "the value to sum must be at CLIENTS, but is of type `int32@SERVER` [E471]" + TO_CLIENTS,
    ),
    "sum of booleans": (
        lambda x: tff.federated_sum(x),
        (Clients(np.bool_),),
        TypeError,
        "values of type `{bool}@CLIENTS` cannot be summed [E482]\n  note: `bool` holds no numbers"
        "\n  help: sum numbers of known shape: cast booleans with tf.cast, declare every "
        "size, sum a sequence at each client with tff.sequence_sum",
    ),
    "sum of unknown shape": (
        lambda x: tff.federated_sum(x),
        (Clients((INT, [None])),),
        TypeError,
        "values of type `{int32[?]}@CLIENTS` cannot be summed [E482]\n"
        "  note: the shape of `int32[?]` is not known"
        "\n  help: sum numbers of known shape: cast booleans with tf.cast, declare every "
        "size, sum a sequence at each client with tff.sequence_sum",
    ),
    "sum of sequences": (
        lambda x: tff.federated_sum(x),
        (Clients(Sequence(INT)),),
        TypeError,
        "values of type `{int32*}@CLIENTS` cannot be summed [E482]\n"
        "  note: `int32*` is a sequence"
        "\n  help: sum numbers of known shape: cast booleans with tf.cast, declare every "
        "size, sum a sequence at each client with tff.sequence_sum",
    ),
    "mean of integers": (
        lambda x: tff.federated_mean(x),
        (Clients(INT),),
        TypeError,
        "values of type `{int32}@CLIENTS` have no mean: they must hold floating or complex numbers "
        "[E482]\n  help: convert them at the clients, with tf.cast in a TensorFlow computation",
    ),
    "mean with a constant weight": (
        lambda x: tff.federated_mean(x, 1),
        (Clients(FLOAT),),
        TypeError,
        "the weight must be federated, but is of type `int32` [E470]\n"
        "  help: place it first: tff.federated_value(x, tff.CLIENTS)",
    ),
    "mean with a boolean weight": (
        lambda x, w: tff.federated_mean(x, w),
        (Clients(FLOAT), Clients(np.bool_)),
        TypeError,
        "the weight must be a scalar integer or floating number of each client, but is of type "
        "`{bool}@CLIENTS` [E478]",
    ),
    "min of booleans": (
        lambda x: tff.federated_min(x),
        (Clients(np.bool_),),
        ValueError,
        "values of type `{bool}@CLIENTS` have no minimum: they must hold integers or floating "
        "numbers [E482]",
    ),
    "max at the server": (
        lambda x: tff.federated_max(x),
        (Server(INT),),
        TypeError,
        "the value to take the maximum of must be at CLIENTS, but is of type `int32@SERVER` [E471]"
        + TO_CLIENTS,
    ),
    "broadcast of a client's value": (
        lambda x: tff.federated_broadcast(x),
        (Clients(INT),),
        TypeError,
        "the value to broadcast must be at SERVER, but is of type `{int32}@CLIENTS` [E471]"
        + TO_SERVER,
    ),
    "broadcast of values that may differ": (
        lambda x: tff.federated_broadcast(x),
        (tff.FederatedType(INT, tff.SERVER, False),),
        TypeError,
        "the value to broadcast must be one value, but its constituents may differ: its type is "
        "`{int32}@SERVER` [E446]\n  help: declare it without all_equal=False",
    ),
    "value that is federated": (
        lambda x: tff.federated_value([x], tff.CLIENTS),
        (Server(INT),),
        TypeError,
        "the value to place must not be federated, but is of type `<int32@SERVER>` [E471]\n"
        "  help: values are moved with tff.federated_broadcast and with aggregations",
    ),
    "value that is a function": (
        lambda: tff.federated_value(ident, tff.SERVER),
        (),
        ValueError,
        "a federated value cannot have members of type `(int32 -> int32)` [E104]\n"
        "  note: `(int32 -> int32)` is federated or a function"
        "\n  help: call the function first, and place its result",
    ),
    "value placed nowhere": (
        lambda: tff.federated_value(1, None),  # type: ignore[arg-type]  # wrong on purpose
        (),
        TypeError,
        "expected a placement, found None [E105]\n  help: use tff.SERVER or tff.CLIENTS",
    ),
    "eval with a parameter": (
        lambda: tff.federated_eval(ident, tff.CLIENTS),
        (),
        TypeError,
        "the function to evaluate must take no argument, but is of type `(int32 -> int32)` [E474]\n"
        "  help: tff.federated_map(f, x) applies a function to a federated value",
    ),
    "eval of a polymorphic computation": (
        lambda: tff.federated_eval(poly, tff.CLIENTS),
        (),
        TypeError,
        "the types of the parameters of the polymorphic computation '<lambda>' are not known here "
        "[E414]\n  help: give them to its decorator",
    ),
    "eval of a Python function": (
        lambda: tff.federated_eval(max, tff.CLIENTS),
        (),
        TypeError,
        "the function to evaluate must be a computation, but is the Python function 'max' [E417]"
        + DECORATE,
    ),
    "eval to a federated result": (
        lambda: tff.federated_eval(fc(lambda: tff.federated_value(1, tff.SERVER)), tff.SERVER),
        (),
        ValueError,
        "a federated value cannot have members of type `int32@SERVER` [E104]\n"
        "  note: `int32@SERVER` is federated or a function"
        "\n  help: leave out the inner placement: a value is placed once",
    ),
    "map of a Python function": (
        lambda x: tff.federated_map(max, x),
        (Clients(INT),),
        TypeError,
        "the mapping function must be a computation, but is the Python function 'max' [E417]"
        + DECORATE,
    ),
    "map with its arguments swapped": (
        lambda x: tff.federated_map(x, ident),
        (Clients(INT),),
        TypeError,
        "the value to map must be federated, but is of type `(int32 -> int32)` [E470]"
        + FUNCTION_FIRST,
    ),
    "map of a value": (
        lambda x: tff.federated_map(x, x),
        (Clients(INT),),
        TypeError,
        "the mapping function must be a function, but is of type `{int32}@CLIENTS` [E413]"
        + FUNCTION_FIRST,
    ),
    "map without a broadcast": (
        lambda x, y: tff.federated_map(first, (x, y)),
        (Clients(INT), Server(INT)),
        TypeError,
        "the value to map must be federated, but is of type `<{int32}@CLIENTS,int32@SERVER>` "
        "[E470]\n"
        "  note: a struct can stand for a federated value, but it holds values at both placements\n"
        "  help: bring the server's value to the clients with tff.federated_broadcast(x) first",
    ),
    "map of a function without parameter": (
        lambda x: tff.federated_map(one, x),
        (Clients(INT),),
        TypeError,
        "the mapping function must take an argument of type `int32`, but is of type `( -> int32)` "
        "[E474]\n  help: tff.federated_eval(f, placement) calls a function without arguments",
    ),
    "map of another type": (
        lambda x: tff.federated_map(ident, x),
        (Clients(FLOAT),),
        TypeError,
        "Type `float32` is not assignable to expected type `int32` [E101]\n"
        "  note: this is what the mapping function is applied to\n"
        "  help: convert it in a TensorFlow computation, with tf.cast(x, tf.int32)",
    ),
    "zip of a federated value": (
        lambda x: tff.federated_zip(x),
        (Clients(INT),),
        TypeError,
        "the value to zip must be a struct of federated values at one placement, but is of type "
        "`{int32}@CLIENTS` [E471]\n  note: it is not a struct",
    ),
    "zip at both placements": (
        lambda x, y: tff.federated_zip([x, y]),
        (Clients(INT), Server(INT)),
        TypeError,
        "the value to zip must be a struct of federated values at one placement, but is of type "
        "`<{int32}@CLIENTS,int32@SERVER>` [E471]\n"
        "  note: it holds values at both placements\n"
        "  help: bring the server's value to the clients with tff.federated_broadcast(x) first",
    ),
    "aggregate from a zero that is a function": (
        lambda x: tff.federated_aggregate(x, one, first, first, ident),
        (Clients(INT),),
        TypeError,
        "Type `( -> int32)` is not assignable to expected type `int32` [E101]\n"
        "  note: this is zero, where accumulate starts\n"
        "  help: call the function and give its result",
    ),
    "aggregate from a zero at the server": (
        lambda x, y: tff.federated_aggregate(x, y, first, first, ident),
        (Clients(INT), Server(INT)),
        TypeError,
        "Type `int32@SERVER` is not assignable to expected type `int32` [E101]\n"
        "  note: this is zero, where accumulate starts\n"
        "  help: it must not be federated: give a constant or the result of a computation",
    ),
    "aggregate with a merge of one argument": (
        lambda x: tff.federated_aggregate(x, 0, first, ident, ident),
        (Clients(INT),),
        TypeError,
        "Type `(int32 -> int32)` is not assignable to expected type `(<int32,int32> -> int32)` "
        "[E101]\n  note: this is merge\n"
        "  note: the first place that differs is `.parameter`",
    ),
    "aggregate with a report of two arguments": (
        lambda x: tff.federated_aggregate(x, 0, first, first, first),
        (Clients(INT),),
        TypeError,
        "Type `(<a=int32,b=int32> -> int32)` is not assignable to expected type `(int32 -> int32)` "
        "[E101]\n  note: this is report\n"
        "  note: the first place that differs is `.parameter`",
    ),
    "aggregate with an accumulate of one argument": (
        lambda x: tff.federated_aggregate(x, 0, ident, first, ident),
        (Clients(INT),),
        TypeError,
        "accumulate must take an accumulator and the next value, but is of type "
        "`(int32 -> int32)` [E474]",
    ),
    "aggregate with a Python function": (
        lambda x: tff.federated_aggregate(x, 0, max, first, ident),
        (Clients(INT),),
        TypeError,
        "accumulate must be a computation, but is the Python function 'max' [E417]" + DECORATE,
    ),
    "aggregate with a constant for a function": (
        lambda x: tff.federated_aggregate(x, 0, first, 1, ident),
        (Clients(INT),),
        TypeError,
        "merge must be a function, but is of type `int32` [E413]",
    ),
    "select with a constant key": (
        lambda k, d: tff.federated_select(k, 10, d, pick),
        (KEYS, MODEL),
        TypeError,
        "Type `int32` is not assignable to expected type `int32@SERVER` [E101]\n"
        "  note: this is max_key\n"
        "  help: place it first: tff.federated_value(x, tff.SERVER)",
    ),
    "select with keys of unknown number": (
        lambda k, m, d: tff.federated_select(k, m, d, pick),
        (Clients((INT, [None])), Server(INT), MODEL),
        TypeError,
        "client_keys must be of type `{int32[n]}@CLIENTS` with n known, but is of type "
        "`{int32[?]}@CLIENTS` [E478]",
    ),
    "select from a client's value": (
        lambda k, m, d: tff.federated_select(k, m, d, pick),
        (KEYS, Server(INT), Clients((FLOAT, [10]))),
        TypeError,
        "server_val must be at SERVER, but is of type `{float32[10]}@CLIENTS` [E471]" + TO_SERVER,
    ),
    "select with a function of one argument": (
        lambda k, m, d: tff.federated_select(k, m, d, ident),
        (KEYS, Server(INT), MODEL),
        TypeError,
        "Type `(int32 -> int32)` is not assignable to expected type "
        "`(<float32[10],int32> -> int32)` [E101]\n"
        "  note: this is select_fn, which is called with server_val and a key\n"
        "  note: the first place that differs is `.parameter`",
    ),
    "secure sum of floats": (
        lambda x: tff.federated_secure_sum(x, 8),
        (Clients(FLOAT),),
        TypeError,
        "values of type `{float32}@CLIENTS` cannot be summed securely: they must hold integers "
        "[E482]\n"
        "  help: scale and round floating numbers in a TensorFlow computation, as in "
        "tf.cast(tf.round(x * 1000.0), tf.int32), sum those, and divide the sum by the scale",
    ),
    "secure sum with a float": (
        lambda x: tff.federated_secure_sum(x, 8.0),
        (Clients(INT),),
        TypeError,
        "max_input must be one integer, or a structure of integers like `int32`, but is of type "
        "`float32` [E478]",
    ),
    "secure sum with other names": (
        lambda x: tff.federated_secure_sum_bitwidth(x, [1, [2, 3]]),
        (Clients(STRUCT),),
        TypeError,
        "bitwidth must be one integer, or a structure of integers like "
        "`<a=int32,b=<int32,int64>>`, but is of type `<int32,<int32,int32>>` [E478]",
    ),
    "secure sum with a federated bound": (
        lambda x, m: tff.federated_secure_sum(x, m),
        (Clients(INT), Server(INT)),
        TypeError,
        "max_input must be one integer, or a structure of integers like `int32`, but is of type "
        "`int32@SERVER` [E478]\n"
        "  help: it must not be federated: give a constant or the result of a computation",
    ),
    "sequence map of another type": (
        lambda s: tff.sequence_map(ident, s),
        (Clients(Sequence(FLOAT)),),
        TypeError,
        "Type `float32` is not assignable to expected type `int32` [E101]\n"
        "  note: this is what the mapping function is applied to\n"
        "  help: convert it in a TensorFlow computation, with tf.cast(x, tf.int32)",
    ),
    "sequence map of a tensor": (
        lambda s: tff.sequence_map(ident, s),
        (INT,),
        TypeError,
        "the value to map must be a sequence, or federated with sequences as members, but is of "
        "type `int32` [E492]",
    ),
    "sequence map of a function without parameter": (
        lambda s: tff.sequence_map(one, s),
        (Sequence(INT),),
        TypeError,
        "the mapping function must take an element of type `int32`, but is of type `( -> int32)` "
        "[E474]",
    ),
    "sequence reduce from an unplaced zero": (
        lambda s: tff.sequence_reduce(s, 0, first),
        (Clients(Sequence(INT)),),
        TypeError,
        "zero must be federated like the value to reduce, but is of type `int32` [E470]\n"
        "  help: place it first: tff.federated_value(x, tff.CLIENTS)",
    ),
    "sequence reduce from a zero elsewhere": (
        lambda s, z: tff.sequence_reduce(s, z, first),
        (Clients(Sequence(INT)), Server(INT)),
        TypeError,
        "the value to reduce with its zero must be federated, but is of type "
        "`<{int32*}@CLIENTS,int32@SERVER>` [E470]\n"
        "  note: a struct can stand for a federated value, but it holds values at both placements\n"
        "  help: bring the server's value to the clients with tff.federated_broadcast(x) first",
    ),
    "sequence reduce from another type": (
        lambda s: tff.sequence_reduce(s, 0.0, first),
        (Sequence(INT),),
        TypeError,
        "Type `float32` is not assignable to expected type `int32` [E101]\n"
        "  note: this is zero, where the reducing function starts\n"
        "  help: convert it in a TensorFlow computation, with tf.cast(x, tf.int32)",
    ),
    "sequence sum of booleans": (
        lambda s: tff.sequence_sum(s),
        (Sequence(np.bool_),),
        TypeError,
        "elements of type `bool` cannot be summed [E482]\n  note: `bool` holds no numbers"
        "\n  help: map the elements to numbers of known shape first, with "
        "tff.sequence_map; tf.cast makes numbers of booleans",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, types, builtin, text = REFUSED[case]
    assert str(error_without_place(builtin, lambda: fc(body, *types))) == text


def test_operators_outside_of_traces() -> None:
    error = error_without_place(ContextError, lambda: tff.federated_sum(1))
    assert isinstance(error, RuntimeError)
    assert str(error) == (
        "tff.federated_sum can be used in a federated computation only, but it is used outside of "
        "one [E430]\n"
        "  help: call it from a function decorated with @tff.federated_computation"
    )
