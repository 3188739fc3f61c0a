"""Messages of federations after somebody changed them: to a node, and to the server.

Nothing is started and nothing is sent: nodes and the server's engine are called as the apps call
them.  A case hands one changed request to a node, or the replies of hostile nodes to the server in
the middle of a round.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import io
import pickle
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import tffc as tff
from tests.deploy.federation.nodes import make_node
from tests.fuzz.mutations import CHANGES, damaged_bytes
from tests.runtime.engines.programs import every_aggregation, personal, process_of
from tests.runtime.engines.sources import Values
from tffc.deploy.federation.asking import Arrival, TooFewError
from tffc.deploy.federation.engine import FederationEngine, Nodes
from tffc.deploy.federation.messages import Record, Reply, Request
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.federation.tasks import UNFORESEEN, Memory
from tffc.language.values.concrete import Federated
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.process import Process
from tffc.support.errors import TffcError
from tffc.support.explanations import has_page

NAMES = tuple(f"silo-{n}" for n in range(5))
CANARY = 777
"""A number of every client, and a part of every text that must stay at a node."""

STRANGE: tuple[Any, ...] = (
    None, b"", b"x", b"\xff\xfe", "silo-0", "a\nb\x1b[31m\u202e", "x" * 2000, 0, 1, -1, 2**31,
    2**62, 2**63 - 1, 1.5, float("nan"), float("inf"), True, [], ["x", "y"], [1, 2], [b""],
)  # fmt: skip
"""What an entry of a record may be instead."""

VECTOR = tff.TensorType(np.int32, [None])

SHAPES = ((), (0,), (1,), (2,), (5,), (1, 3), (3, 1), (1,) * 33, (2, 0, 4))


@tff.tf_computation(np.int32)
def few(x: Any) -> Any:
    return x % 7


@tff.federated_computation(
    tff.types.at_server(np.int32), tff.types.at_clients([np.float32, np.int32])
)
def masked_and_open(state: Any, data: Any) -> Any:
    """Secure sums of every kind, and one that the server sees."""
    counted = tff.federated_map(few, data[1])
    shared = tff.federated_map(few, tff.federated_broadcast(state))
    return state, (
        tff.federated_secure_sum(data[1], 100_000),
        tff.federated_secure_sum_bitwidth(shared, 10),
        tff.backends.mapreduce.federated_secure_modular_sum(counted, 7),
        tff.federated_mean(data[0]),
    )


@tff.tf_computation(VECTOR)
def alike(values: Any) -> Any:
    return values + values


@tff.tf_computation
def nothing() -> Any:
    return tf.reshape(tf.constant([], tf.int32), [tf.cast(tf.constant(0), tf.int32)])


@tff.tf_computation(VECTOR, VECTOR)
def joined(one: Any, other: Any) -> Any:
    return tf.concat([one, other], 0)


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(VECTOR))
def of_any_size(state: Any, data: Any) -> Any:
    """A sum and a list of numbers whose sizes only the clients know."""
    doubled = tff.federated_map(alike, data)
    gathered = tff.federated_aggregate(doubled, nothing(), joined, joined, alike)
    return state, (tff.federated_secure_sum(doubled, 10**6), gathered)


@dataclasses.dataclass
class Federation:
    """A process, the way of its secure sums, its first state and the data of every client."""

    process: Process
    sums: str
    state: Any
    data: Any

    def node(self, log: list[str]) -> Node:
        """A node of two clients."""
        config = {"out": _outputs()} if self.process.client_output_type is not None else {}
        return make_node(self.process.bundle, Values([self.data, self.data]), log, config)


@functools.cache
def federations() -> tuple[Federation, ...]:
    """Every form, every way of secure sums, and every kind of result of a round."""
    pair = (np.float32(CANARY), np.int32(CANARY))
    forms = ("mapreduce", "distribute-aggregate")
    found = [Federation(process_of(every_aggregation, f), "open", (), pair) for f in forms]
    for form in forms:
        both = process_of(masked_and_open, form)
        found += [Federation(both, sums, np.int32(3), pair) for sums in ("open", "masked")]
    sized = process_of(of_any_size, "distribute-aggregate")
    vector = np.array([CANARY, 2], np.int32)
    found.append(Federation(sized, "open", (), vector))
    alone = process_of(personal, "broadcast")
    return (*found, Federation(alone, "open", np.int32(4), np.int32(CANARY)))


@functools.cache
def _outputs() -> str:
    """A folder for the final values of clients, which ends with this process."""
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


Change = Callable[[str, str, Record], Sequence[Record]]
"""Given a kind of requests, a node and its reply, returns what the server gets instead."""


class Here:
    """Nodes in this process, with the requests to each, what they remembered then, and replies.

    `change` makes of a node's reply what the server gets instead.
    """

    def __init__(
        self,
        federation: Federation,
        change: Change = lambda kind, name, record: [record],
        answer: Callable[[str, str, Record], Record] | None = None,
    ) -> None:
        self.log: list[str] = []
        self.nodes = {name: federation.node(self.log) for name in NAMES}
        self.seen: list[tuple[str, str, Memory, Record, Record]] = []
        self._answer = answer or self._node_answers
        self._change = change
        self._arriving: list[Arrival] = []

    def names(self) -> Sequence[str]:
        return NAMES

    def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
        self._arriving = [
            Arrival(name, each)
            for name, record in records.items()
            for each in self._change(kind, name, self._answer(kind, name, record))
        ]

    def _node_answers(self, kind: str, name: str, record: Record) -> Record:
        node = self.nodes[name]
        memory = node.memory
        reply = node.answer(record, kind)
        self.seen.append((kind, name, memory, record, reply))
        return reply

    def receive(self, timeout: float) -> Iterator[Arrival]:
        yield from self._arriving


def round_of(federation: Federation, here: Here, least: int = 1) -> tuple[Any, list[str]]:
    """The result of one round, and the server's log."""
    log: list[str] = []
    settings = RunSettings(min_replies=least, secure_sums=federation.sums)
    engine = FederationEngine(federation.process, here, settings, log.append)
    return engine.run_round(federation.state, Cohort(Nodes(NAMES), NAMES, round=1)), log


@functools.cache
def honest(at: int) -> tuple[tuple[str, str, Memory, Record, Record], ...]:
    """All messages of a round without anything hostile."""
    here = Here(federations()[at])
    result, _ = round_of(federations()[at], here)
    assert not result.skipped, here.log
    return tuple(here.seen)


# Changes of records.


def changed_record(generator: random.Random, record: Record, others: Sequence[Record]) -> Record:
    """The record after a few changes to its entries, to the value that it holds, or its arrays."""
    entries, arrays = dict(record.entries), list(record.arrays)
    for _ in range(generator.choice(CHANGES)):
        match generator.randrange(8):
            case 0:
                _change_entry(generator, entries, others)
            case 1:
                entries, arrays = _with_value(entries, _changed_value(generator, entries, arrays))
            case 2 | 3:
                _change_array(generator, arrays, others)
            case 4 if isinstance(rest := entries.get("rest"), bytes):
                entries["rest"] = damaged_bytes(generator, [rest])
            case 5:
                entries["rest"] = generator.choice(_claims(generator))
            case 6:
                other = generator.choice(others)
                entries["rest"], arrays = other.entries.get("rest", b""), list(other.arrays)
            case _:
                entries, arrays = _with_value(entries, _strange_value(generator))
    return Record(entries, arrays)


def _change_entry(
    generator: random.Random, entries: dict[str, Any], others: Sequence[Record]
) -> None:
    name = generator.choice([*entries, "shapes", "new\n\x1b[2J"])
    match generator.randrange(4):
        case 0:
            entries.pop(name, None)
        case 1:
            entries[name] = generator.choice(others).entries.get(name, 0)
        case 2 if name != "rest" and isinstance(entries.get(name), int):
            entries[name] += generator.choice((-1, 1, 2**40))
        case _:
            entries[name] = generator.choice(STRANGE)


def _with_value(entries: Mapping[str, Any], value: Any) -> tuple[dict[str, Any], list[Any]]:
    arrays: list[Any] = []
    return {**entries, "rest": encode(value, arrays)}, arrays


def _changed_value(generator: random.Random, entries: Mapping[str, Any], arrays: list[Any]) -> Any:
    """The value of a record with one of its parts changed, wherever it is."""
    try:
        value = decode(entries["rest"], arrays)
    except (ValueError, KeyError, TypeError, AttributeError):
        return _strange_value(generator)
    paths: list[tuple[int, ...]] = [()]
    for path in paths:  # which grows while it is walked
        part = _at(value, path)
        if isinstance(part, (tuple, list)) and len(paths) < 500:
            paths.extend((*path, index) for index in range(len(part)))
    path = generator.choice(paths)
    part, other = _at(value, path), _at(value, generator.choice(paths))
    return _replaced(value, path, _changed_part(generator, part, other))


def _changed_part(generator: random.Random, part: Any, other: Any) -> Any:
    if isinstance(part, (tuple, list)) and part and generator.random() < 0.6:
        items = list(part)
        match generator.randrange(4):
            case 0:
                del items[generator.randrange(len(items))]
            case 1:
                items.insert(generator.randrange(len(items) + 1), generator.choice(items))
            case 2:
                generator.shuffle(items)
            case _:
                items[generator.randrange(len(items))] = other
        return type(part)(items)
    if isinstance(part, bytes) and generator.random() < 0.8:
        return _changed_bytes(generator, part)
    if isinstance(part, (np.generic, np.ndarray)) and generator.random() < 0.8:
        return _changed_array(generator, part)
    return generator.choice((other, _strange_value(generator), [part], (part, part)))


LOW_ORDER = tuple(
    number.to_bytes(32, "little")
    for number in (0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18, 2**256 - 1)
)
"""Public keys that agree on nothing, or that are longer than needed."""


def _changed_bytes(generator: random.Random, part: bytes) -> bytes:
    data = bytearray(part)
    match generator.randrange(7):
        case 0:
            return b""
        case 1:
            return part[: generator.randrange(len(part) + 1)]
        case 2:
            return part + part
        case 3:
            return generator.choice(LOW_ORDER)
        case 4:
            return generator.randbytes(len(part))
        case 5:
            return generator.choice((b"silo-0", b"silo-9", b"\xff", b"a\n\x1b[31m", b"9" * 5000))
    if data:
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(data)


def _changed_array(generator: random.Random, array: Any) -> Any:
    """An array of other numbers, another shape, or another element type."""
    array = np.asarray(array)
    if array.dtype.kind not in "biufc":
        return array.ravel()
    match generator.randrange(6):
        case 0:
            values = (np.nan, np.inf, -np.inf, -1, 2**31 - 1, 10**9, 0)
            with np.errstate(all="ignore"):
                return np.full(array.shape, generator.choice(values)).astype(array.dtype)
        case 1:
            return np.zeros(generator.choice(SHAPES[:-2]), array.dtype)
        case 2:
            return np.zeros(array.shape, generator.choice(NUMBERS))
        case 3:
            return np.stack([array, array])
        case 4:
            return array.reshape((1, *array.shape))
    return array.ravel()[: generator.randrange(array.size + 1)]


NUMBERS = ("<f8", "<i8", "<u1", "<c8", "?", "<f2", ">i4")
"""Element types that values may have."""

NO_NUMBERS = ("<U3", "<M8[s]", "|V3", "O", [("a", "<i4")])
"""Element types that no value has."""


def _change_array(generator: random.Random, arrays: list[Any], others: Sequence[Record]) -> None:
    at = generator.randrange(len(arrays)) if arrays else 0
    more = [array for other in others for array in other.arrays[:1]]
    match generator.randrange(6):
        case 0:
            del arrays[at : at + 1]
        case 3:
            shape = np.shape(arrays[at]) if arrays else ()
            arrays[at : at + 1] = [np.zeros(shape, generator.choice(NO_NUMBERS))]
        case 1:
            arrays.append(generator.choice([*more, np.zeros(3), "no array", None]))
        case 2:
            generator.shuffle(arrays)
        case _:
            arrays[at : at + 1] = [_changed_array(generator, each) for each in arrays[at : at + 1]]


def _strange_value(generator: random.Random) -> Any:
    """A value that no program has there."""
    match generator.randrange(9):
        case 0:
            return None
        case 1:
            return ()
        case 2:
            return b"\x00" * generator.choice((0, 1, 31, 32, 33, 1000))
        case 3:
            return (None,) * generator.choice((1, 2, 3, 5, 1000))
        case 4:
            return np.zeros(generator.choice(SHAPES[:-2]), generator.choice(("<f4", "<i4", "<f8")))
        case 5:
            return np.array([b"a", b"\xff\n"], dtype=object)
        case 6:
            return Federated((np.int32(1), (b"",)), all_equal=generator.random() < 0.5)
        case 7:
            nested: Any = ()
            for _ in range(generator.choice((3, 100, 5000))):
                nested = (nested,)
            return nested
    return [np.float32(np.nan), (b"x", [])]


def _claims(generator: random.Random) -> tuple[bytes, ...]:
    """Values that claim to be larger than they are."""
    huge = generator.choice((2**20, 2**33, 2**62, 2**63 - 1, -1)).to_bytes(8, "little", signed=True)
    one = (1).to_bytes(8, "little")
    many = (5000).to_bytes(8, "little")
    return (
        b"B" + huge,
        b"T" + huge + b"N" * 9,
        b"L" + huge,
        b"F" + huge + huge,
        b"A" + one + one + huge,
        b"A" + one + huge + huge,
        b"A" + one + many + huge * 5000,
        b"S" + one + huge,
        b"S" + many + huge * 4999 + bytes(8),
        b"A" + huge + one,
        (b"T" + one) * 3000,
        b"R" * 3,
        b"?",
    )


def _at(value: Any, path: Sequence[int]) -> Any:
    for index in path:
        value = value[index]
    return value


def _replaced(value: Any, path: Sequence[int], part: Any) -> Any:
    if not path:
        return part
    items = list(value)
    items[path[0]] = _replaced(items[path[0]], path[1:], part)
    return type(value)(items)


# Cases.


def run_request(generator: random.Random, at: int | None = None) -> bool:
    """Hand a changed request to a node, which answers with values of its own or with a code."""
    at = generator.randrange(len(federations())) if at is None else at
    messages = honest(at)
    kind, _, memory, record, _ = generator.choice(messages)
    others = [each[3] for each in generator.choices(messages, k=4)]
    if generator.random() < 0.1:
        kind = generator.choice(messages)[0]
    return _is_answered(at, kind, memory, changed_record(generator, record, others))


def _is_answered(at: int, kind: str, memory: Memory, record: Record) -> bool:
    """Whether a node of a federation answers with values, and not with a code."""
    log: list[str] = []
    node = _node_of(at, log)
    node.memory = memory
    reply = node.answer(record, kind)
    check_answer(reply, log)
    return not reply.entries["error"]


@functools.cache
def _kept_node(at: int) -> tuple[Node, list[str]]:
    log: list[str] = []
    return federations()[at].node(log), log


def _node_of(at: int, log: list[str]) -> Node:
    """A node of a federation, whose graphs stay loaded as in a worker."""
    node, told = _kept_node(at)
    told.clear()
    node._tell = log.append  # what a node tells in this case  # pyright: ignore[reportPrivateUsage]
    return node


ABOUT_REPLY = {"program", "round", "attempt", "clients", "skipped", "error", "rest"}


def check_answer(reply: Record, log: Sequence[str]) -> None:
    """A reply has nothing but its entries, and no text of an error; the log is plain text."""
    assert set(reply.entries) == ABOUT_REPLY
    parsed = Reply.from_record(reply)
    assert all(line.replace("\n", "").isprintable() for line in log), log
    if parsed.error:
        assert parsed.totals is None, "an error has no values beside it"
        assert has_page(parsed.error)
        assert parsed.error != UNFORESEEN, log
        own = {name: reply.entries[name] for name in ABOUT_REPLY - {"program", "round", "attempt"}}
        assert str(CANARY) not in repr((own, reply.arrays))
    else:
        assert not log


def run_answer(generator: random.Random, at: int | None = None) -> bool:
    """Let nodes answer the server with anything in one round; it goes on with the others.

    What the honest nodes add up to is exact if none of the hostile ones is taken.
    """
    at = generator.randrange(len(federations())) if at is None else at
    federation = federations()[at]
    is_masked = federation.sums == "masked"
    hostile = generator.sample(NAMES, 1 if is_masked else generator.choice((1, 2, 4)))
    begins = generator.randrange(5) if is_masked else 0
    others = [each[4] for each in generator.choices(honest(at), k=4)]
    steps: list[str] = []

    def change(kind: str, name: str, record: Record) -> Sequence[Record]:
        if kind not in steps:
            steps.append(kind)
        if name not in hostile or len(steps) <= begins:
            return [record]
        copies = generator.choice((1, 1, 2, 3))
        return [changed_record(generator, record, others) for _ in range(copies)]

    here = Here(federation, change, None if is_masked else _replayed(at))
    try:
        result, log = round_of(federation, here)
    except TooFewError:
        if is_masked:  # any participant can prevent a sum
            return False
        raise
    assert all(line.isprintable() for line in log), log
    taken = set(hostile) - set(result.skipped)
    _check_output(federation, result, len(NAMES) - len(result.skipped), bool(taken))
    return bool(taken)


def _replayed(at: int) -> Callable[[str, str, Record], Record]:
    """Answers as the honest nodes of the federation did, to another attempt."""
    replies = {name: reply for _, name, _, _, reply in honest(at)}

    def answer(kind: str, name: str, record: Record) -> Record:
        attempt = Request.from_record(record).attempt
        return Record({**replies[name].entries, "attempt": attempt}, replies[name].arrays)

    return answer


def _check_output(federation: Federation, result: Any, nodes: int, foreign: bool) -> None:
    """The output has the program's type; it is that of the honest nodes if nobody else is in it."""
    from tffc.language.values.concrete import to_value

    output = to_value(result.output, federation.process.output_type)
    if not foreign:
        expected = _expected(federations().index(federation), nodes)
        assert encode(output) == expected, (output, decode(expected))


@functools.cache
def _expected(at: int, nodes: int) -> bytes:
    """What a round of so many honest nodes gives, all of which have the same data."""
    federation = federations()[at]
    left = NAMES[:nodes]
    here = Here(federation, lambda kind, name, record: [record] if name in left else [])
    result, _ = round_of(dataclasses.replace(federation, sums="open"), here)
    return encode(result.output)


# Flower's own records.


def run_flower_record(generator: random.Random) -> bool:
    """Hand a node what it reads from a changed record of Flower's, if it can be read at all."""
    from tffc.deploy.flower.records import from_flower, to_flower

    at = generator.randrange(len(federations()))
    kind, _, memory, record, _ = generator.choice(honest(at))
    content = to_flower(record)
    for _ in range(generator.choice(CHANGES)):
        _change_content(generator, content)
    try:
        read = from_flower(content)
    except TffcError:
        return False
    return _is_answered(at, kind, memory, read)


def _change_content(generator: random.Random, content: Any) -> None:
    """Change one of the records of a message, or of the arrays in it."""
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord  # pyright: ignore[reportMissingImports]  # an extra

    about, arrays = content.get("tffc"), content.get("arrays")
    match generator.randrange(10):
        case 0:
            content.pop(generator.choice(list(content) or ["tffc"]), None)
        case 1:
            kinds = (ArrayRecord, ConfigRecord, MetricRecord)
            content[generator.choice(("tffc", "arrays", "other"))] = generator.choice(kinds)()
        case 2 | 3 if isinstance(about, ConfigRecord):
            name = generator.choice([*about, "more"])
            about[name] = generator.choice([each for each in STRANGE if each is not None])
        case 4 | 5 if isinstance(about, ConfigRecord) and isinstance(about.get("shapes"), list):
            listed: Any = about["shapes"]
            shapes: Any = [str(each) for each in listed]
            shapes.insert(generator.randrange(len(shapes) + 1), generator.choice(CLAIMED_SHAPES))
            del shapes[generator.randrange(len(shapes))]
            about["shapes"] = shapes
        case _ if isinstance(arrays, ArrayRecord):
            name = generator.choice([*arrays, "<f4", "<i4"])
            arrays[name] = _flower_array(generator, arrays.get(name))
        case _:
            pass


CLAIMED_SHAPES = (
    "<f4 99999999999999", "<i4", "<i4 0 999999999999999999", "<i4" + " 9" * 40, "|O 1", "<f4 -1",
    "<f4 1" * 100, "", "\n", "<i4 1\x1b[2J", "|V3 1", "<M8[s] 1", "<f9 0", "<f16 0", "|b1 2",
)  # fmt: skip


def _flower_array(generator: random.Random, before: Any) -> Any:
    """An array of Flower's, with any claims about its bytes."""
    from flwr.app import Array  # pyright: ignore[reportMissingImports]  # an extra

    data = before.data if before is not None else b""
    file = io.BytesIO()
    match generator.randrange(8):
        case 0:
            np.savez(file, np.zeros(3, np.float32))
        case 1:
            file.write(pickle.dumps(np.zeros(3)))
        case 2:
            dtype = generator.choice((*NUMBERS, *NO_NUMBERS[:2]))
            np.save(file, np.zeros(generator.choice(SHAPES[:-2]), dtype), allow_pickle=False)
        case 3 | 4:
            dtype = generator.choice(("<f4", "<i4", "|O", "<f9", "|b1", "|V0", "<U0", "'"))
            shape = generator.choice(("()", "(4,)", "(99999999999,)", "(-1,)", "(2, 3)", "((" * 90))
            head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n"
            size = generator.choice((len(head), 0, 2**16 - 1)).to_bytes(2, "little")
            version = generator.choice((b"\1\0", b"\2\0", b"\3\0", b"\7\7"))
            file.write(b"\x93NUMPY" + version + size + head.encode() + generator.randbytes(16))
        case _:
            file.write(damaged_bytes(generator, [data or b"x"]))
    stype = generator.choice(("numpy.ndarray",) * 9 + ("pickle",))
    return Array("float32", (4,), stype, file.getvalue())
