"""More programs: what Python objects are as types, and as constants."""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any

import numpy as np

from tests.recorded.programs import FLOAT, INT, STR, Language, OrderedDict, Point, Program, single


class Colour(str, enum.Enum):  # noqa: UP042  # the older way is what is tried
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class List(list[Any]):
    pass


class Dict(dict[str, Any]):
    pass


@dataclasses.dataclass
class Weighted:
    value: Any
    weight: Any


def declared(form: Any) -> Program:
    """A computation whose parameter is declared in a Python form."""
    return lambda t: t.fc(single, form)


def constant(make: Any) -> Program:
    """A computation that returns a Python object, which is made when it is traced."""
    return lambda t: t.fc(lambda: make())


def federated(member: Any) -> Program:
    return lambda t: t.fc(single, t.server(member(t)))


TYPES: dict[str, Program] = {
    "a NumPy dtype": declared(np.dtype("int32")),
    "a dtype of the other byte order": declared(np.dtype(">i4")),
    "strings of a size": declared([np.dtype("S5"), np.dtype("U3"), np.bytes_]),
    "a tensor": declared((INT, [2, None])),
    "a tensor of a tuple of sizes": declared((INT, (2,))),
    "a tensor of unknown rank": declared((INT, None)),
    "a scalar of no sizes": declared((INT, [])),
    "a tensor of no elements": declared((INT, [0])),
    "a tensor of a range of sizes": declared((INT, range(2))),
    "a tensor of NumPy sizes": declared((INT, [np.int64(2)])),
    "a tensor of float sizes": declared((INT, [2.0])),
    "a list for a tensor": declared([INT, [2]]),
    "two tensors": declared([(INT, [2]), (FLOAT, None)]),
    "a list": declared([INT, FLOAT]),
    "a tuple": declared((INT, FLOAT)),
    "an empty list": declared([]),
    "a list of another class": declared(List([INT])),
    "a named pair": declared(("a", INT)),
    "a pair without a name": declared((None, INT)),
    "named pairs": declared([("a", INT), ("b", [FLOAT, ("c", STR)])]),
    "some pairs named": declared([INT, ("a", INT)]),
    "pairs in lists": declared([["a", INT]]),
    "a triple that begins with a name": declared(("a", INT, FLOAT)),
    "a pair whose name is bytes": declared([(b"a", INT)]),
    "a dictionary": declared({"b": INT, "a": FLOAT}),
    "an ordered dictionary": declared(OrderedDict(b=INT, a=(FLOAT, [2]))),
    "a dictionary of another class": declared(Dict(a=INT)),
    "a dictionary of numbers": declared({1: INT}),
    "a namedtuple": declared(Point(INT, [FLOAT])),
    "a namedtuple that reads like a tensor": declared(Point(INT, [2])),
    "a namedtuple's class": declared(Point),
    "a dataclass": declared(Weighted(INT, FLOAT)),
    "a set": declared({INT}),
    "a number": declared(5),
    "a string": declared("int32"),
    "an empty name": declared([("", INT)]),
    "a name with a blank": declared([("a b", INT)]),
    "a name twice": declared([("a", INT), ("a", FLOAT)]),
    "a reserved name": declared([("_asdict", INT)]),
    "dates": declared(np.datetime64),
    "objects": declared(np.object_),
    "Python's int": declared(int),
    "a type variable": lambda t: t.fc(single, t.tff.types.AbstractType("T")),
    "a placement": lambda t: t.fc(single, t.tff.types.PlacementType()),
    "a sequence of lists": lambda t: t.fc(single, t.sequence([INT, OrderedDict(a=[FLOAT])])),
    "a sequence of sequences": lambda t: t.fc(single, t.sequence([t.sequence(INT)])),
    "a sequence at the server": federated(lambda t: t.sequence(INT)),
    "a function at the server": federated(lambda t: [t.function(INT, INT)]),
    "a federated type at the server": federated(lambda t: t.clients(INT)),
    "functions of functions": lambda t: t.fc(
        single, t.function(t.function(INT, FLOAT), [t.function(None, INT)])
    ),
}

CONSTANTS: dict[str, Program] = {
    "a list of another class": constant(lambda: List([1])),
    "a dictionary of another class": constant(lambda: Dict(a=1)),
    "a default dictionary": constant(lambda: collections.defaultdict(int, a=1)),
    "a counter": constant(lambda: collections.Counter(a=1)),
    "a queue": constant(lambda: collections.deque([1])),
    "a dataclass": constant(lambda: Weighted(1, 2.0)),
    "a string of another class": constant(lambda: Colour.RED),
    "an integer of another class": constant(lambda: Number.ONE),
    "bytes": constant(lambda: b"\xff\0"),
    "an empty string": constant(lambda: ""),
    "an array of bytes": constant(lambda: np.array([b"a\0", b"bc"])),
    "an array of no elements": constant(lambda: np.zeros([0, 3], INT)),
    "an array of one element": constant(lambda: np.array(5, np.int64)),
    "an array of the other byte order": constant(lambda: np.array([1, 2], ">i4")),
    "every second element": constant(lambda: np.arange(10, dtype=INT)[::2]),
    "an array by columns": constant(lambda: np.asfortranarray([[1, 2, 3], [4, 5, 6]])),
    "an array of complex numbers": constant(lambda: np.array([1j, 2], np.complex64)),
    "records": constant(lambda: np.zeros(2, [("a", INT)])),
    "a date": constant(lambda: np.datetime64("2020")),
    "the largest int32": constant(lambda: 2**31 - 1),
    "one more than an int32": constant(lambda: 2**31),
    "the smallest int64": constant(lambda: -(2**63)),
    "the largest uint64": constant(lambda: np.uint64(2**64 - 1)),
    "infinity": constant(lambda: [float("inf"), -float("inf")]),
    "a float past float32": constant(lambda: 1e300),
    "a float too small for float32": constant(lambda: 1e-300),
    "a wide float": constant(lambda: np.float64(1e300)),
    "pairs in lists": constant(lambda: [["a", 1]]),
    "a pair in a tuple": constant(lambda: (("a", 1),)),
    "a pair beside another": constant(lambda: [("a", 1), 2]),
    "a triple": constant(lambda: [("a", 1, 2)]),
    "a key that is empty": constant(lambda: {"": 1}),
    "a key that is reserved": constant(lambda: {"_asdict": 1}),
    "a struct whose names stand twice": lambda t: t.fc(
        lambda: t.tff.structure.Struct([("a", 1), ("a", 2)])
    ),
    "a module": constant(lambda: np),
    "a value in an array": lambda t: t.fc(lambda x: np.array([x, 1]), INT),
}


def updated(t: Language) -> Any:
    """A state whose one field changes, as users of TFF write it."""

    def step(state: Any) -> Any:
        return t.tff.structure.update_struct(state, b=state["b"] + 1.0)

    return t.tfc(step, OrderedDict(a=INT, b=FLOAT))


def mapped(t: Language) -> Any:
    pair = [("a", INT), ("b", INT)]
    return t.tfc(lambda x, y: t.tff.structure.map_structure(lambda a, b: a - b, x, y), pair, pair)


STRUCTURES: dict[str, Program] = {
    "an updated field": updated,
    "a mapped structure": mapped,
    "flattened": lambda t: t.tfc(t.tff.structure.flatten, [("a", INT), ("b", [("c", FLOAT)])]),
    "a dictionary": lambda t: t.tfc(
        lambda x: t.tff.structure.to_odict(x), [("a", INT), ("b", INT)]
    ),
    "a dictionary of unnamed": lambda t: t.tfc(
        lambda x: t.tff.structure.to_odict(x), t.tff.StructType([INT, INT])
    ),
    "a dictionary or tuple": lambda t: t.tfc(
        lambda x: t.tff.structure.to_odict_or_tuple(x), [("a", INT), ("b", [("c", FLOAT)])]
    ),
    "from a container": lambda t: t.fc(
        lambda x: t.tff.structure.from_container({"b": x, "a": [x]}, recursive=True), INT
    ),
    "packed": lambda t: t.fc(
        lambda x: t.tff.structure.pack_sequence_as(
            t.tff.structure.Struct([("a", 0), (None, 0)]), [x, x]
        ),
        INT,
    ),
    "structures that differ": lambda t: t.fc(
        lambda x: t.tff.structure.map_structure(
            max, t.tff.structure.Struct([("a", 0)]), t.tff.structure.Struct([("b", 0)])
        ),
        INT,
    ),
}
