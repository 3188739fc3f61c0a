"""`python -m tests.assurance.audit.rounds_trial COUNT`: tries the audits of generated rounds.

Each round is compiled, and its clients' part is run on data of which one part is exchanged.  No
channel that differs may be called independent of that part.
"""

from __future__ import annotations

import collections
import dataclasses
import multiprocessing
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import numpy as np

from tests.assurance.audit.exchanges import exchanges
from tests.assurance.audit.generated_rounds import Pick, Round, data_of, round_of
from tests.assurance.audit.operation_programs import same, varies
from tffc.assurance.audit.audit import audit
from tffc.backends import compile_form
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.language import FunctionType
from tffc.language.type_parts import local_type
from tffc.language.values.concrete import Federated, to_value
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.interpreter.interpreter import EMPTY, Interpreter
from tffc.support.errors import ExecutionError, TffcError
from tffc.support.trampoline import run


@dataclasses.dataclass
class Outcome:
    """What a trial of rounds saw: misses, dependences claimed, and those that a pair showed."""

    misses: list[str] = dataclasses.field(default_factory=list)
    claimed: int = 0
    shown: int = 0
    pairs: int = 0
    why_not: str = ""


Work = Callable[[Any], list[Any]]


def clients_part(drawn: Round, form: Any, state: Any) -> Work:
    """Return the client's part of a form: from its data to what leaves it."""
    if isinstance(form, MapReduceForm):
        context = run_section(form.prepare, state)
        return lambda data: list(run_section(form.work, (data, context))[0])
    if isinstance(form, BroadcastForm):
        context = run_section(form.compute_server_context, state)
        return lambda data: list(run_section(form.client_processing, (context, data)))
    assert isinstance(form, DistributeAggregateForm)
    interpreter = Interpreter(1)

    def call(part: Any, argument: Any) -> Any:
        return run(interpreter.apply(run(interpreter.evaluate(part, EMPTY)), argument))

    assert isinstance(drawn.program.type, FunctionType)
    parameter = drawn.program.type.parameter
    assert parameter is not None
    # The data is given later.
    placed, _ = to_value((state, []), parameter)
    sent, _ = call(form.server_prepare, placed)
    received = call(form.server_to_client_broadcast, sent)

    def work(data: Any) -> list[Any]:
        _, clients = to_value((state, [data]), parameter)
        return leaving(call(form.client_work, (clients, received)))

    return work


def leaving(worked: Any) -> list[Any]:
    """Return the numbers in what the client's part of a distribute-aggregate form returns."""
    if isinstance(worked, tuple | list):
        return [number for each in worked for number in leaving(each)]
    assert isinstance(worked, Federated)
    return list(worked.at_each(1))


def outcome_of(drawn: Round, pick: Pick, clients: int = 2) -> Outcome:
    """Return what exchanges of parts of the data of some clients show of a round."""
    form = compile_form(drawn.program, drawn.form)
    channels = audit(drawn.program, drawn.form).channels
    outcome = Outcome()
    state = (np.float32(pick(9) - 4), np.int32(pick(9) - 4))
    work = clients_part(drawn, form, state)
    data = local_type(drawn.data)
    shown: set[tuple[int, str, tuple[str, ...]]] = set()
    for _ in range(clients):
        held, other = data_of(data, pick), data_of(data, pick)
        first, again = results(work, held), results(work, held)
        if first is None or again is None:
            outcome.why_not = "fails"
            continue
        steady = [same(*pair) for pair in zip(first, again, strict=True)]
        for exchange in exchanges(data, held, other):
            second = results(work, exchange.data)
            if second is None:
                continue
            outcome.pairs += 1
            assert len(first) == len(second) == len(channels)
            for at, (channel, before, after) in enumerate(
                zip(channels, first, second, strict=True)
            ):
                if not steady[at] or same(before, after):
                    continue
                is_missed = not exchange.is_named(channel.depends)
                if is_missed and varies(lambda a=at, h=held: work(h)[a]):
                    steady[at] = False
                    continue
                shown.add((at, exchange.path, exchange.fields))
                if is_missed:
                    outcome.misses.append(
                        f"{exchange.path} ({'/'.join(exchange.fields)}) changes {channel.name}: "
                        f"{before} -> {after}; {channel.depends.listed()}; {drawn.steps}"
                    )
    for at, channel in enumerate(channels):
        parts = {(at, path) for path in channel.depends.elements}
        outcome.claimed += len(parts)
        outcome.shown += len(
            parts & {(at, path) for at, path, fields in shown if "elements" in fields}
        )
    return outcome


def results(work: Work, data: Any) -> list[Any] | None:
    """Return what leaves the client; None if its work fails."""
    try:
        return work(data)
    except ExecutionError:
        return None


class Trial(NamedTuple):
    """The round of a seed, in a form."""

    seed: int
    form: str
    outcome: Outcome


def try_one(seed: int) -> Trial:
    """Return the outcome of the round of a seed."""
    rng = random.Random(seed)
    try:
        drawn = round_of(rng.randrange)
    except (TffcError, ValueError, TypeError) as error:
        return Trial(
            seed, "", Outcome(why_not=f"not traced: {type(error).__name__}: {str(error)[:200]}")
        )
    try:
        return Trial(seed, drawn.form, outcome_of(drawn, rng.randrange))
    except TffcError as error:
        return Trial(
            seed, drawn.form, Outcome(why_not=f"{error.code}: {str(error)[:200]} {drawn.steps}")
        )


def outcomes(seeds: range, jobs: int) -> Iterator[Trial]:
    """Yield the outcome of each round; processes end after some rounds, which frees memory."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=100) as pool:
        yield from pool.imap(try_one, seeds, chunksize=1)


@click.command()
@click.argument("count", type=int, default=3000)
@click.option("--first", type=int, default=0, help="The first seed.")
@click.option("--jobs", type=int, default=1)
def main(count: int, first: int, jobs: int) -> None:
    """Try the audits of COUNT generated rounds."""
    forms: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    total = Outcome()
    for number, (seed, form, outcome) in enumerate(outcomes(range(first, first + count), jobs), 1):
        if outcome.pairs:
            forms[form] += 1
        elif outcome.why_not:
            reasons[outcome.why_not.partition(":")[0]] += 1
            print(f"seed {seed}: {outcome.why_not}", flush=True)
        total.pairs += outcome.pairs
        total.claimed += outcome.claimed
        total.shown += outcome.shown
        for miss in outcome.misses:
            total.misses.append(f"seed {seed}, {form}: {miss}")
            print(total.misses[-1], flush=True)
        if number % 100 == 0:
            print(f"{number} rounds, {len(total.misses)} missed", flush=True)
    print(f"rounds compared: {forms.total()}: {', '.join(f'{n} {f}' for f, n in forms.items())}")
    print(f"not compared: {dict(reasons)}")
    vain = total.claimed - total.shown
    share = vain / max(total.claimed, 1)
    print(f"pairs: {total.pairs}; dependences claimed: {total.claimed}, not shown: {vain}", end="")
    print(f" ({share:.0%}); missed: {len(total.misses)}")
    sys.exit(1 if total.misses else 0)


if __name__ == "__main__":
    main()
