"""The arguments of one program: generated, from real clients, and from the program's own states.

The state that the program begins with, and those that rounds reach from it, are what a program will
meet; a generated state may be one that it never has.  So both are tried in turn.  For an argument
on which the program fails there are plainer ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tffc.assurance.validation.arguments import (
    ArgumentCase,
    Plainness,
    cases,
    plain_case,
    plainnesses,
)
from tffc.assurance.validation.draws import Draws
from tffc.assurance.validation.watched import Watched
from tffc.graphs.node import all_nodes
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.frameworks.tensorflow.graph_content import UnreadableGraph, read_graph
from tffc.runtime.interpreter.interpreter import invoke
from tffc.support.errors import ExecutionError, TffcError

ROUNDS = 2
"""The number of rounds after the first state whose states are tried."""

MARKS = tuple(bytes([mark]) for mark in b":@/#,;=_-")

LONGEST_TEXT = 20
MAX_TEXTS = 20
"""The limits of the texts that a program itself has, and of their number."""


class Arguments:
    """The arguments to try, in order, and plainer ones for those on which the program fails."""

    def __init__(self, type: Type | None, count: int, seed: int) -> None:
        self.type = type
        self.count = count
        self.seed = seed
        self.constants: Sequence[bytes] = ()
        self._preferred = 0

    def __iter__(self) -> Iterator[ArgumentCase]:
        return cases(self.type, self.count, self.seed)

    def plainer(self, index: int) -> Iterator[ArgumentCase]:
        """Yield arguments to try in place of the one at an index, each plainer in its own way.

        The way at which the caller stopped last time comes first.
        """
        ways = list(enumerate(plainnesses(self.type, self.constants)))
        ways.sort(key=lambda way: way[0] != self._preferred)
        for number, way in ways if self.type is not None else ():
            self._preferred = number
            yield self.plain(way, random.Random(f"{self.seed}/{index}/{number}"))

    def plain(self, way: Plainness, source: random.Random) -> ArgumentCase:
        """Return a plain argument."""
        assert self.type is not None
        return plain_case(self.type, way, source)


class OwnStates(Arguments):
    """The arguments of a program that has a first state of its own.

    Every other argument, beginning with the first, has one of the program's own states.  `failure`
    says why there are none, or why fewer than usual.
    """

    def __init__(self, program: Node, initialize: Node, others: Arguments) -> None:
        super().__init__(others.type, others.count, others.seed)
        self.constants = others.constants
        self._program = program
        self._others = others
        self.failure: str | None = None
        self.states = self._reached(initialize)

    def __iter__(self) -> Iterator[ArgumentCase]:
        for index, case in enumerate(self._others):
            own = self.states and index % 2 == 0
            yield self._begun(case, index // 2) if own else case

    def plain(self, way: Plainness, source: random.Random) -> ArgumentCase:
        case = self._others.plain(way, source)
        return self._begun(case, source.randint(0, ROUNDS)) if self.states else case

    def _begun(self, case: ArgumentCase, number: int) -> ArgumentCase:
        state = self.states[number % len(self.states)]
        return ArgumentCase((state, *case.argument[1:]), case.may_reorder)

    def _reached(self, initialize: Node) -> list[Any]:
        """Return the first state and those after it, as far as rounds can be carried out."""
        states: list[Any] = []
        try:
            states.append(_run(initialize, None, self.seed))
            for number in range(ROUNDS):
                states.append(self._after(states[-1], number))
        except ExecutionError as error:
            self.failure = error.message
        return states

    def _after(self, state: Any, number: int) -> Any:
        """Return the state after a round, with the first plain data on which it does not fail."""
        failure: ExecutionError | None = None
        for way in plainnesses(self.type, self.constants):
            source = random.Random(f"{self.seed}/round {number}/{way.numbers}")
            data = self._others.plain(way, source).argument[1:]
            try:
                result = _run(self._program, (state, *data), self.seed + number)
            except ExecutionError as error:
                failure = failure or error
                continue
            type = _result(self._program.type)
            state_type = type.types[0]
            return to_python(to_value(result, type)[0], state_type)
        assert failure is not None
        raise failure


def _result(type: Type) -> StructType:
    assert isinstance(type, FunctionType)
    assert isinstance(type.result, StructType)
    return type.result


def begins_with(program: Node, initialize: Node) -> bool:
    """Return whether the result of `initialize` is a state that the program takes and gives."""
    if not takes_state(program) or not gives_state(initialize):
        return False
    first, type = initialize.type, program.type
    assert isinstance(first, FunctionType)
    assert isinstance(type, FunctionType)
    assert isinstance(type.parameter, StructType)
    assert isinstance(type.result, StructType)
    states = (local_type(first.result), local_type(type.result[0]))
    return all(local_type(type.parameter[0]).is_assignable_from(state) for state in states)


def takes_state(program: Node) -> bool:
    """Return whether a program is a function of a struct, the first part of which may be a state,
    and gives such a struct."""
    type = program.type
    if not isinstance(type, FunctionType):
        return False
    return all(isinstance(t, StructType) and len(t) > 0 for t in (type.parameter, type.result))


def gives_state(initialize: Node) -> bool:
    """Return whether a program is a function that takes nothing."""
    return isinstance(initialize.type, FunctionType) and initialize.type.parameter is None


def text_constants(program: Node) -> list[bytes]:
    """Return the short texts that are constants in the graphs of a program, each once."""
    texts: dict[bytes, None] = {}
    for node in walk(program):
        if isinstance(node, Compiled) and node.kind == "tensorflow":
            texts.update(dict.fromkeys(_texts_in(node)))
    return list(texts)[:MAX_TEXTS]


def _texts_in(section: Compiled) -> Iterator[bytes]:
    try:
        graph = read_graph(section).graph
    except (UnreadableGraph, TffcError):  # running it says why
        return
    for node in all_nodes(graph):
        if node.op == "Const":
            for text in node.attr["value"].tensor.string_val:
                if 0 < len(text) <= LONGEST_TEXT and text.isascii():
                    yield text
        elif "pattern" in node.attr:
            # The plain punctuation in a regular expression stands for itself.
            yield from (mark for mark in MARKS if mark in node.attr["pattern"].s)


def _run(program: Node, argument: Any, seed: int) -> Any:
    def make(clients: int) -> Watched:
        return Watched(clients, Draws(seed))

    return invoke(program, program.type, argument, make)
