"""The work of `tffc run`."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import shlex
from collections.abc import Iterator
from typing import Any

import click

from tffc.cli.interrupts import check_uninterrupted, exit_code, no_substitutes, tell_interrupted
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say
from tffc.cli.progress import index_step, show_rounds, step
from tffc.cli.round_table import RoundTable
from tffc.cli.run_outputs import OutputOptions, RunOutputs
from tffc.cli.runnable import check_needs, read_runnable
from tffc.cli.streams import OutputError, ReaderGone
from tffc.language.types import Type
from tffc.runtime.data.location import open_data, open_source, read_once
from tffc.runtime.data.source import CheckedSource, check_all
from tffc.runtime.engines.engine import Batching, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Sampling, run_rounds
from tffc.runtime.engines.table import ENGINES, make_engine, share_cores
from tffc.support.errors import DataError, TffcError

MOST_TRIED = 20
"""The most clients that are tried for good data; if all are bad, no hint suggests skipping bad
ones."""


def run(
    program: str,
    data: str,
    pack: pathlib.Path | None,
    form: str | None,
    rounds: int,
    clients_per_round: int | None,
    seed: int | None,
    skip_bad_clients: bool,
    least_clients: int,
    show_clients: bool,
    engine: str,
    engine_options: tuple[str, ...],
    workers: int | None,
    secure_sums: str,
    batching: str,
    device: str,
    explain_speed: bool,
    evaluate: str | None,
    evaluate_data: str | None,
    every: int | None,
    require_proof: bool,
    allow_effects: frozenset[str],
    **options: Any,
) -> None:
    """Run rounds, print the output of each, and save what the options ask for."""
    _check_options(clients_per_round, seed, evaluate, evaluate_data, every)
    batches = Batching.parse(batching, device)
    _check_engine(engine, workers, batches)
    saving = OutputOptions(**options)
    share_cores(clients_per_round, workers, batches)
    runnables = {"": read_runnable(program, form)}
    if evaluate is not None:
        runnables["evaluation."] = read_runnable(evaluate, None)
    if require_proof:
        from tffc.cli.prove import check_proof

        for each, given in zip(runnables.values(), (program, evaluate or ""), strict=False):
            check_proof(given, each.bundle)
    begins = None if saving.state_in is not None or saving.resume else runnables[""].bundle
    check_needs(runnables, allow_effects, begins=begins)
    process = runnables[""].process(allow_effects)
    _check_aggregates(process, evaluate)
    source = _open_source(data, process.data_type, pack)
    if not skip_bad_clients:
        _check_clients(source)
    words = [word for text in engine_options for word in _words(text)]
    sampling = Sampling(clients_per_round, seed or 0)
    make = functools.partial(
        make_engine, engine, workers=workers, options=words, shows_clients=show_clients
    )
    evaluation = None
    if evaluate_data is not None:
        on = make(runnables["evaluation."].process(allow_effects), batching=batches)
        evaluation = _evaluation(on, evaluate_data, process.state_type, every or 1, least_clients)
    evaluated_type = evaluation and evaluation.output_type
    outputs = RunOutputs(program, process, evaluated_type, saving)
    with _telling_how_it_ended(outputs, engine):
        state = outputs.begin(source, sampling, skip_bad_clients=skip_bad_clients)
        rounds = max(0, rounds - state.rounds) if saving.resume else rounds
        table = RoundTable(state.rounds + rounds, process.output_type, evaluated_type)
        batches = outputs.with_known(batches)
        runs_on = make(process, batching=batches, masks_sums=secure_sums == "masked")
        for each in run_rounds(
            runs_on,
            state,
            source,
            rounds,
            sampling,
            skip_bad_clients=skip_bad_clients,
            deliver=outputs.save_client,
            progress=show_rounds(state.rounds + 1, state.rounds + rounds),
            evaluation=evaluation,
            least_clients=least_clients,
        ):
            # Its interruption may count as the failure of a client that is left out.
            check_uninterrupted()
            outputs.save(each)
            if outputs.is_table:
                click.echo("\n".join(table.lines(each)))
        outputs.end(state, rounds)
        _tell_shortened(table, saving.out, outputs.finished)
        for line in [*outputs.end_of_run(), *(runs_on.explain_speed() if explain_speed else ())]:
            say(line)


@contextlib.contextmanager
def _telling_how_it_ended(outputs: RunOutputs, engine: str) -> Iterator[None]:
    """Close the outputs of a run after the context; if the run ends early, tell what is kept."""
    try:
        with no_substitutes():
            yield
    except ReaderGone:
        outputs.draw()
        say(f"nobody reads stdout any more: the run ends after round {outputs.finished}")
        say(outputs.what_is_kept())
        raise
    except OutputError as error:
        error.notes += (outputs.what_is_kept(),)
        raise
    except TffcError as error:
        outputs.abandon()
        _tell_how_to_see(error, engine)
        raise
    except KeyboardInterrupt:
        outputs.draw()
        begun = f"in round {outputs.finished + 1}"
        where = begun if outputs.has_begun else "before the first round"
        tell_interrupted(f"interrupted {where}")
        say(outputs.what_is_kept())
        raise click.exceptions.Exit(exit_code()) from None
    finally:
        outputs.close()


def _words(text: str) -> list[str]:
    """Return the words of a text, split as a shell would."""
    try:
        return shlex.split(text)
    except ValueError:
        raise click.UsageError(
            f"'--engine-options' has a quotation without an end: {text!r}"
        ) from None


def _open_source(data: str, type: Type, pack: pathlib.Path | None) -> CheckedSource:
    """Open the clients' data, or its pack."""
    opened = open_data(data, index_step(data))
    share_cores(len(opened.clients))
    if pack is None:
        return read_once(opened.typed(type), type)
    from tffc.runtime.data.packing import packed_beside

    return packed_beside(opened, type, pack, step("packing", "clients"))


def _check_options(
    clients_per_round: int | None,
    seed: int | None,
    evaluate: str | None,
    evaluate_data: str | None,
    every: int | None,
) -> None:
    """Check that no option is given that has no effect without another."""
    if seed is not None and clients_per_round is None:
        raise click.UsageError("--seed selects the sampled clients: add --clients-per-round K")
    if (evaluate is None) != (evaluate_data is None):
        raise click.UsageError("--evaluate and --evaluate-data go together")
    if every is not None and evaluate is None:
        raise click.UsageError("--every says how often to evaluate: add --evaluate PROGRAM")


def _evaluation(
    engine: Engine, data: str, state_type: Type, every: int, least_clients: int
) -> Evaluation:
    """Return an evaluation of states of a type, by rounds of an engine on this data; both are
    checked."""
    source = open_source(data, engine.process.data_type, index_step(data))
    _check_clients(source)
    evaluation = Evaluation(engine, source, every, least_clients)
    evaluation.check(state_type)
    return evaluation


def _check_aggregates(process: Process, evaluate: str | None) -> None:
    """Check that no number of clients is asked for where nothing is aggregated."""
    if process.client_output_type is not None and evaluate is None:
        refuse_without_effect("the round aggregates nothing", "least_clients")


def _tell_how_to_see(error: TffcError, engine: str) -> None:
    """Add to an error whose values are left out the option that shows them."""
    if error.whole is not None and ENGINES[engine].shows_clients:
        error.help = f"{error.help}, with --show-clients"


def _check_engine(engine: str, workers: int | None, batching: Batching) -> None:
    """Check that no option is given that is for another engine."""
    kind = ENGINES[engine]
    if not kind.takes_workers:
        own = (kind.workers_option or "").format(workers)
        instead = f", but options of its own, such as --engine-options '{own}'" if own else ""
        refuse_without_effect(f"the engine {engine} takes no number of workers{instead}", "workers")
    if not kind.measures_batches:
        refuse_without_effect(f"the engine {engine} leaves that to its workers", "device")
    elif batching.size == 1:
        refuse_without_effect("only batches are computed there: add --batching auto", "device")
    if not kind.masks_sums:
        refuse_without_effect(f"the engine {engine} adds secure sums unmasked", "secure_sums")
    if not kind.shows_clients:
        refuse_without_effect(f"the engine {engine} shows nothing of clients", "show_clients")
    if kind.options is None:
        takers = [f"--engine {other.name}" for other in ENGINES.values() if other.options]
        refuse_without_effect(
            f"the engine {engine} takes no options; add {' or '.join(takers)}", "engine_options"
        )


def _tell_shortened(table: RoundTable, folder: pathlib.Path | None, last: int) -> None:
    """Report where to find the outputs that were too long for the table."""
    if not table.shortened:
        return
    if folder is None:
        place = "--out DIR keeps them, and --log jsonl prints them"
    else:
        place = f"tffc show {shlex.quote(f'{folder}:{last}')} shows them"
    say(f"too long for the table: {', '.join(table.shortened)}; {place}")


def _has_good_client(source: CheckedSource) -> bool:
    """Return whether one of the first clients has data that fits, so that skipping bad ones makes
    sense."""
    for client in source.clients[:MOST_TRIED]:
        with contextlib.suppress(DataError):
            source.check(client)
            return True
    return False


def _check_clients(source: CheckedSource) -> None:
    """Check the data of all clients; the error says how to skip bad ones."""
    try:
        check_all(source, step("checking the data", "clients"))
    except DataError as error:
        if not _has_good_client(source):
            raise
        skip = "or leave out clients whose data cannot be read, with --skip-bad-clients"
        error.help = f"{error.help}; {skip}" if error.help else f"mend the data, {skip}"
        raise
