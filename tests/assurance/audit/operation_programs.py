"""Programs in which a secret reaches the result through one operation only, and their trial.

A trial runs a program with pairs of arguments that differ in one part.  An output that differs
although the analysis says that it does not depend on that part is missed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import tffc as tff
from tests.assurance.audit.operation_calls import (
    READERS,
    STORED,
    CallOfOperation,
    Search,
    Shape,
    checksum,
    definitions,
    results_of,
    tf,
)
from tests.assurance.audit.states import STATES, after, fresh
from tests.assurance.audit.ways import WAYS, Way, done, fit, plain
from tffc.assurance.audit.flow import Flow
from tffc.assurance.audit.sections import SectionWalk
from tffc.language import Compiled
from tffc.linking.section import read_section
from tffc.runtime.frameworks.tensorflow.runner import TensorFlowRunner
from tffc.support.errors import TffcError

DRAWN = 1 << 200
"""The source of draws."""

Draw = Callable[[random.Random, Shape], Any]
Body = Callable[..., list[Any]]


@dataclasses.dataclass(frozen=True)
class Part:
    """A tensor of a program's parameter: its type, a value, and what draws another of a shape."""

    type: Any
    value: Any
    draw: Draw


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A program of one operation, and the mode of each of its outputs."""

    name: str
    parts: Sequence[Part]
    section: Compiled
    modes: Sequence[str]

    @property
    def is_static(self) -> bool:
        """Whether the sizes of all parts are known."""
        return all(None not in (part.type.shape or ()) for part in self.parts)


@dataclasses.dataclass
class Verdict:
    """What a trial saw of a program: outputs that differed although they were said not to, and for
    each mode the dependences that were claimed, and those that some pair showed."""

    program: str
    misses: list[str] = dataclasses.field(default_factory=list)
    claimed: dict[str, int] = dataclasses.field(default_factory=dict)
    shown: dict[str, int] = dataclasses.field(default_factory=dict)
    why_not: str = ""
    exchanged: dict[int, int] = dataclasses.field(default_factory=dict)
    """For parts, the number of the first of `changes` with which the program ran and differed."""


def traced(name: str, parts: Sequence[Part], bodies: Mapping[str, Body]) -> Program:
    """Return a program that traces bodies of the parts' tensors, one for each mode."""
    parameter = tff.to_type([(f"x{at}", part.type) for at, part in enumerate(parts)])
    modes: list[str] = []

    def function(p: Any) -> Any:
        tensors = [getattr(p, f"x{at}") for at in range(len(parts))]
        results: list[Any] = []
        for mode, body in bodies.items():
            results += body(*tensors)
            modes.extend([mode] * (len(results) - len(modes)))
        return tuple(results)

    computation = tff.tf_computation(function, parameter) if parts else tff.tf_computation(
        lambda: function(())
    )  # fmt: skip
    node = computation.node
    assert isinstance(node, Compiled)
    return Program(name, parts, node, modes)


@functools.lru_cache(maxsize=4)
def operations_of(program: Program) -> frozenset[str]:
    """Return the operations in a program's graph and functions."""
    graph = read_section(program.section).graph
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    return frozenset(node.op for node in nodes)


# Trials.


TRIES = 3
"""The values of the same shape that each part is exchanged for."""


AGAIN = 30
"""How often a program runs again before a difference counts as missed."""


def trial(program: Program) -> Verdict:
    """Run a program with pairs that differ in one part."""
    verdict = Verdict(program.name)
    sources = [Flow(1 << 2 * at, 2 << 2 * at) for at in range(len(program.parts))]
    flows = [f.total() for f in SectionWalk(program.section, lambda _: DRAWN).results(sources)]
    values = first_values(program)
    first, again = computed(program, values), computed(program, values)
    if first is None or again is None:
        verdict.why_not = "fails"
        return verdict
    steady = [same(one, other) for one, other in zip(first, again, strict=True)]
    if not any(steady):
        verdict.why_not = "no output is the same in two runs"
        return verdict
    shown: set[tuple[int, int]] = set()
    for number, (at, other, bits) in enumerate(changes(program.name, program.parts, values)):
        result = computed(program, [*values[:at], other, *values[at + 1 :]])
        if result is None:
            continue
        for output, (before, now) in enumerate(zip(first, result, strict=True)):
            if not steady[output] or same(before, now):
                continue
            is_missed = not flows[output] & bits
            if is_missed and varies(lambda o=output: computed(program, values)[o]):
                steady[output] = False
                continue
            shown.add((output, at))
            if program.modes[output] == "value":
                verdict.exchanged.setdefault(at, number)
            if is_missed:
                place = f"{program.modes[output]}: output {output} differs with input {at}"
                text = f"{place}: {values[at]!r}"
                verdict.misses.append(f"{text} -> {other!r}: {before!r} -> {now!r}"[:400])
    every = itertools.product(range(len(first)), range(len(values)))
    claims = {(o, at) for o, at in every if steady[o] and flows[o] & 3 << 2 * at}
    for output, at in claims:
        mode = program.modes[output]
        verdict.claimed[mode] = verdict.claimed.get(mode, 0) + 1
        verdict.shown[mode] = verdict.shown.get(mode, 0) + ((output, at) in shown)
    return verdict


def varies(output: Callable[[], Any]) -> bool:
    """Return whether an output differs in several runs of the same, as of what draws or races."""
    first = output()
    return any(not same(first, output()) for _ in range(AGAIN))


def first_values(program: Program) -> list[Any]:
    """Return values for which the program runs, if a few tries suffice."""
    rng = random.Random(program.name)
    values = [part.value for part in program.parts]
    for _ in range(3):
        if computed(program, values) is not None:
            break
        values = [part.draw(rng, np.shape(part.value)) for part in program.parts]
    return values


def changes(
    name: str, parts: Sequence[Part], values: Sequence[Any], tries: int = TRIES
) -> Iterator[tuple[int, Any, int]]:
    """Yield a part's position, another value of it, and the sources of which one must be named:
    the value alone, if the shape is the same."""
    rng = random.Random(name)
    for at, part in enumerate(parts):
        shape = np.shape(values[at])
        for _ in range(tries):
            other = part.draw(rng, shape)
            if not same(values[at], other):
                yield at, other, 1 << 2 * at
        if shape and None in (part.type.shape or ()):
            for size in {shape[0] + 1, max(shape[0] - 1, 0)}:
                yield at, part.draw(rng, (size, *shape[1:])), 3 << 2 * at
            if len(shape) > 1:
                yield at, part.draw(rng, (*shape[:-1], shape[-1] + 1)), 3 << 2 * at


def computed(program: Program, values: Sequence[Any]) -> Any:
    """Return the outputs for these values; None if it fails."""
    try:
        return runner_of(program.section)(tuple(values) if values else None)
    except (TffcError, ValueError, TypeError):
        return None


@functools.lru_cache(maxsize=1)
def runner_of(section: Compiled) -> TensorFlowRunner:
    return TensorFlowRunner(section)


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays are equal, element by element."""
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == object or one.dtype.kind in "SU":
        return list(one.flat) == list(other.flat)
    return one.tobytes() == other.tobytes() or bool(
        np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    )


# Programs of a call.


def parts_of(call: CallOfOperation, is_static: bool) -> list[Part]:
    """Return the parts of a program's parameter for the tensors of a call."""
    parts: list[Part] = []
    for leaf in call.leaves:
        shape = np.shape(leaf.value)
        sizes = list(shape) if is_static else [None] * len(shape)
        dtype = np.str_ if leaf.stored == tf.string else leaf.stored.as_numpy_dtype
        parts.append(Part(tff.TensorType(dtype, sizes), leaf.value, leaf.draw))
    return parts


def as_given(call: CallOfOperation, tensors: Sequence[Any]) -> list[Any]:
    """Return the tensors of a call, of the operation's types."""
    return [
        tf.bitcast(tensor, leaf.dtype) if leaf.dtype in STORED else tensor
        for leaf, tensor in zip(call.leaves, tensors, strict=True)
    ]


def handles_of(call: CallOfOperation) -> dict[str, Any]:
    """Return new state for a call's handles."""
    return {each.name: STATES[each.state].create(fresh()) for each in call.inputs if each.state}


def observed(call: CallOfOperation, results: Sequence[Any], at: int = 0) -> list[Any]:
    """Return tensors that can be results of a program, in place of an operation's results."""
    tensors: list[Any] = []
    readers = iter(call.readers)
    for result in results:
        if result.dtype in (tf.variant, tf.resource):
            reader = next(readers, "")
            tensors += results_of(READERS[reader](result)) if reader else []
        elif result.dtype in STORED:
            tensors.append(tf.bitcast(result, STORED[result.dtype]))
        else:
            tensors.append(tf.identity(result))
    return tensors


def contents(call: CallOfOperation, handles: Mapping[str, Any]) -> list[Any]:
    """Return what the state behind a call's handles holds."""
    states = {each.name: STATES[each.state] for each in call.inputs if each.state}
    return [
        tf.identity(tensor)
        for name, handle in handles.items()
        for tensor in results_of(list(states[name].read(handle)))
    ]


def runs(call: CallOfOperation, tensors: Sequence[Any], handles: Mapping[str, Any]) -> list[Any]:
    """Return what is observed of a call, and then of its state."""
    results = call.build(tensors, handles)
    outputs = observed(call, results)
    with after(outputs or results):
        return [*outputs, *contents(call, handles)]


def sum_of(call: CallOfOperation, tensors: Sequence[Any], handles: Mapping[str, Any]) -> Any:
    """Return one number of all that is observed of a call."""
    results = call.build(tensors, handles)
    outputs = observed(call, results)
    with after(outputs or results):
        parts = [checksum(each) for each in outputs]
        return tf.add_n([tf.constant(0.0, tf.float64), *parts])


def as_value(call: CallOfOperation, tensors: Sequence[Any]) -> list[Any]:
    return runs(call, as_given(call, tensors), handles_of(call))


def constants(call: CallOfOperation) -> list[Any]:
    return as_given(call, [tf.constant(leaf.value, leaf.stored) for leaf in call.leaves])


def as_branch(call: CallOfOperation, secret: Any) -> list[Any]:
    handles = handles_of(call)
    nothing = tf.constant(-3.0, tf.float64)
    total = tf.cond(secret > 1, lambda: sum_of(call, constants(call), handles), lambda: nothing)
    with after(total):
        return [total, *contents(call, handles)]


def as_loop(call: CallOfOperation, secret: Any) -> list[Any]:
    handles = handles_of(call)
    total = tf.while_loop(
        lambda i, _: i < secret,
        lambda i, _: (i + 1, sum_of(call, constants(call), handles)),
        (tf.constant(0), tf.constant(-3.0, tf.float64)),
    )[1]
    with after(total):
        return [total, *contents(call, handles)]


def as_reduction(call: CallOfOperation, secret: Any) -> list[Any]:
    handles = handles_of(call)
    total = tf.data.Dataset.range(tf.cast(secret, tf.int64)).reduce(
        tf.constant(-3.0, tf.float64), plain(lambda _, i: sum_of(call, constants(call), handles))
    )
    with after(total):
        return [total, *contents(call, handles)]


def as_filter(call: CallOfOperation, secret: Any) -> list[Any]:
    handles = handles_of(call)
    passed = tf.data.Dataset.range(3).filter(plain(lambda i: i < tf.cast(secret, tf.int64)))
    total = passed.map(plain(lambda _: sum_of(call, constants(call), handles))).reduce(
        tf.constant(-3.0, tf.float64), plain(lambda total, each: total + each)
    )
    with after(total):
        return [total, *contents(call, handles)]


def as_switch(call: CallOfOperation, secret: Any) -> list[Any]:
    handles = handles_of(call)
    nothing = tf.constant(-3.0, tf.float64)
    sides = tf.raw_ops.Switch(data=nothing, pred=secret > 1)
    yes, no = tf.identity(sides.output_true), tf.identity(sides.output_false)
    with after(yes):
        total = sum_of(call, constants(call), handles) + 0.0 * yes
    merged = tf.raw_ops.Merge(inputs=[total, no])
    with after(merged.output):
        return [merged.output, merged.value_index, *contents(call, handles)]


def as_decider(call: CallOfOperation, *tensors: Any) -> list[Any]:
    """Return what a decision on the operation's results reaches: a result, and a variable."""
    handles = handles_of(call)
    total = sum_of(call, as_given(call, tensors), handles)
    usual = sum_of(call, constants(call), handles_of(call))
    state = STATES["number"]
    handle = state.create(fresh())
    decided = tf.cond(
        tf.equal(total, usual),
        lambda: tf.constant(0),
        lambda: done(state.write(handle, tf.constant(9.0)), 1),
    )
    with after(decided):
        return [decided, *state.read(handle)]


SECRET = Part(tff.TensorType(np.int32), np.int32(0), lambda rng, _: np.int32(rng.randrange(4)))

DECISIONS: dict[str, Callable[[CallOfOperation, Any], list[Any]]] = {
    "branch": as_branch,
    "loop": as_loop,
    "reduce": as_reduction,
    "filter": as_filter,
    "switch": as_switch,
}


def programs(call: CallOfOperation) -> Iterator[Callable[[], Program]]:
    """Yield what makes the programs of a call, which together have all modes."""
    if definitions()[call.operation].is_stateful or any(each.state for each in call.inputs):
        yield lambda: value_program(call, {})
        for mode, body in (*DECISIONS.items(), ("decider", as_decider)):
            parts = [*parts_of(call, True), SECRET] if mode == "decider" else [SECRET]
            yield functools.partial(
                traced, f"{call.operation}, {mode}", parts, {mode: of_tensors(call, body)}
            )
    else:
        yield lambda: of_all_modes(call)


def of_tensors(call: CallOfOperation, body: Body) -> Body:
    """Return a body of the tensors of a call and the secret, of which it needs some."""
    if body is as_decider:
        return lambda *x: as_decider(call, *x[: len(call.leaves)])
    return lambda *x: body(call, x[-1])


def of_all_modes(call: CallOfOperation) -> Program:
    """Return one program of all modes, for an operation without state; of the value only if the
    others cannot be made."""
    modes = [*DECISIONS.items(), ("decider", as_decider)]
    more = {mode: of_tensors(call, body) for mode, body in modes if mode != "filter"}
    try:
        return value_program(call, more)
    except Exception:  # noqa: BLE001  (whatever does not run in the other modes)
        return value_program(call, {})


def value_program(call: CallOfOperation, more: Mapping[str, Body]) -> Program:
    """Return the program that runs a call for the parameter's tensors, of sizes that are not known
    if the operation can do without, and has the outputs of other modes too."""
    try:
        return with_sizes(call, False, more)
    except Exception:  # noqa: BLE001  (some operations need sizes when the graph is made)
        return with_sizes(call, True, more)


def with_sizes(call: CallOfOperation, is_static: bool, more: Mapping[str, Body]) -> Program:
    parts = [*parts_of(call, is_static), *([SECRET] if more else [])]
    count = len(call.leaves)
    bodies: dict[str, Body] = {"value": lambda *x: as_value(call, x[:count]), **more}
    program = traced(f"{call.operation}, value", parts, bodies)
    if computed(program, [part.value for part in program.parts]) is None:
        raise ValueError("the program fails")
    return program


def runs_traced(call: CallOfOperation) -> bool:
    try:
        return bool(value_program(call, {}))
    except Exception:  # noqa: BLE001  (the question is whether it runs)
        return False


# Calls that run.

SECONDS = 1.5
ATTEMPTS = 1200


def call_that_runs(operation: str, skipped: int, started: Callable[[int], None]) -> Any:
    """Return a call that runs, or why none does; `started` is told of each attempt."""
    search = Search(operation)
    reasons: dict[str, int] = {}
    clock = Clock(SECONDS)
    for attempt in range(skipped, ATTEMPTS):
        if clock.is_over():
            break
        started(attempt)
        try:
            call = search.call(attempt)
            running = attempted(call)
        except Exception as error:  # noqa: BLE001  (a random call may fail in any way)
            reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            reasons[reason] = reasons.get(reason, 0) + 1
            continue
        if running is not None and runs_traced(running):
            return running
        reason = "no result can be read" if running is None else "its program does not run"
        reasons[reason] = reasons.get(reason, 0) + 1
    return max(reasons, key=lambda reason: reasons[reason]) if reasons else "not tried"


class Clock:
    """A limit of the time that this process computes."""

    def __init__(self, seconds: float) -> None:
        self._time = time.process_time
        self._end = self._time() + seconds

    def is_over(self) -> bool:
        return self._time() > self._end


def attempted(call: CallOfOperation) -> CallOfOperation | None:
    """Return the call with readers of its results if it runs; None if nothing of it can be
    read."""
    tensors = as_given(call, [tf.constant(leaf.value, leaf.stored) for leaf in call.leaves])
    handles = handles_of(call)
    results = call.build(tensors, handles)
    readers: list[str] = []
    for result in results:
        if result.dtype in (tf.variant, tf.resource):
            readers.append(reader_of(result))
    is_read = any(result.dtype not in (tf.variant, tf.resource) for result in results)
    if not is_read and not any(readers) and not contents(call, handles):
        return None
    return dataclasses.replace(call, readers=tuple(readers))


def reader_of(result: Any) -> str:
    """Return the name of what reads a result that is no tensor of numbers; empty if nothing."""
    if result.dtype == tf.resource:
        return ""
    for name, read in READERS.items():
        try:
            for tensor in read(result):
                tf.identity(tensor)
        except Exception:  # noqa: BLE001  (the reader is for another kind of result)
            continue
        return name
    return ""


# States.


def state_programs(state: str) -> Iterator[tuple[str, Callable[[], Program]]]:
    """Yield what makes the programs of a kind of state: a write in each way, then a read."""
    kind = STATES[state]
    secret = Part(
        tff.TensorType(np.float32), np.float32(0), lambda rng, _: np.float32(rng.randrange(1, 4))
    )
    for name in fit(kind):

        def body(x: Any, way: Way = WAYS[name]) -> list[Any]:
            handle = kind.create(fresh())
            written = way(lambda value: kind.write(handle, value), x)
            with after([] if written is None else tf.nest.flatten(written)):
                return [tf.identity(each) for each in results_of(list(kind.read(handle)))]

        title = f"{state}, {name}"
        yield title, functools.partial(traced, title, [secret], {name: body})
