"""The work of `tffc run`."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import shlex
from collections.abc import Generator, Mapping
from typing import Any

import click

from tffc.api.plan import RunPlan, evaluation_of
from tffc.api.privacy_budget import PrivacyBudget, record_of
from tffc.assurance.privacy.ledger import BudgetSpentError
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import load_form
from tffc.cli.interrupts import check_uninterrupted, exit_code, no_substitutes, tell_interrupted
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say
from tffc.cli.progress import index_step, show_rounds, step
from tffc.cli.round_table import RoundTable
from tffc.cli.run_outputs import OutputOptions, RunOutputs
from tffc.cli.runnable import Runnable, check_needs, read_runnable
from tffc.cli.streams import OutputError, ReaderGone
from tffc.deploy.engines import ENGINES, choose_engine
from tffc.language.types import Type
from tffc.runtime.data.location import open_data, open_source, read_once
from tffc.runtime.data.source import CheckedSource, check_all
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.cores import share_cores
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.kind import (
    BATCHES,
    BUFFERS,
    MASKED_SUMS,
    OPTIONS,
    SHOWN_CLIENTS,
    SIMULATED_TIME,
    WORKERS,
    EngineKind,
)
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.frameworks.jax.compiled import keep_compiled
from tffc.runtime.frameworks.tensorflow.load import is_installed
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
    sampling_rate: float | None,
    seed: int | None,
    skip_bad_clients: bool,
    groups: int | None,
    skip_bad_groups: bool,
    buffer: int | None,
    in_flight: int | None,
    max_age: int | None,
    delays: str | None,
    least_clients: int,
    show_clients: bool,
    engine: str,
    engine_options: tuple[str, ...],
    workers: int | None,
    secure_sums: str,
    batching: str,
    device: str,
    compiler: str,
    precision: str,
    explain_speed: bool,
    evaluate: str | None,
    evaluate_data: str | None,
    every: int | None,
    require_proof: bool,
    demands: pathlib.Path | None,
    allow_effects: frozenset[str],
    privacy_budget: float | None,
    privacy_delta: float,
    neighbours: str,
    not_released: tuple[str, ...],
    **options: Any,
) -> None:
    """Run rounds, print the output of each, and save what the options ask for."""
    timed = buffer is not None or delays is not None
    sampling = _sampling(
        clients_per_round, sampling_rate, seed, is_timed=timed, skips_groups=skip_bad_groups
    )
    _check_evaluation(evaluate, evaluate_data, every)
    budget = _budget(privacy_budget, privacy_delta, neighbours, not_released)
    buffering = _buffering(buffer, in_flight, max_age)
    if groups is None:
        refuse_without_effect("there are no groups: add --groups N", "skip_bad_groups")
    batches = Batching.parse(batching, device, compiler, precision)
    kind = ENGINES[engine]
    _refuse_options_of_others(kind, workers, batches, is_buffered=buffering is not None)
    saving = OutputOptions(**options)
    share_cores(clients_per_round, workers, batches)
    if batches.size != 1 or not is_installed():
        keep_compiled()
    opened: list[CheckedSource] = []

    def check_data(form: type[Form], type: Type) -> None:
        _check_aggregates(form, evaluate)
        _check_groups(form)
        opened.append(_open_source(data, type, None))
        if not skip_bad_clients:
            _check_clients(opened[0])

    runnables = {"": read_runnable(program, form, check_data if pack is None else None, demands)}
    if evaluate is not None:
        runnables["evaluation."] = read_runnable(evaluate, None, None, demands)
    if require_proof:
        _check_proofs(runnables, program, evaluate)
    begins = None if saving.first_state is not None or saving.resume else runnables[""].bundle
    check_needs(runnables, allow_effects, begins=begins)
    process = runnables[""].process(allow_effects)
    _check_aggregates(load_form(process.bundle.form), evaluate)
    _check_groups(load_form(process.bundle.form))
    source = opened[0] if opened else _open_source(data, process.data_type, pack)
    if not opened and not skip_bad_clients:
        _check_clients(source)
    choice = choose_engine(
        engine,
        workers,
        [word for text in engine_options for word in _words(text)],
        batches,
        masks_sums=secure_sums == "masked",
        shows_clients=show_clients,
        groups=None if groups is None else ClientGroups(groups, skip_bad_groups),
        buffering=buffering,
        delays=None if delays is None else Delays.parse(delays),
    )
    evaluation = None
    if evaluate_data is not None:
        measuring = runnables["evaluation."].process(allow_effects)
        measured = open_source(evaluate_data, measuring.data_type, index_step(evaluate_data))
        _check_clients(measured)
        evaluation = evaluation_of(measuring, choice, measured, every or 1, least_clients)
        evaluation.check(process)
    plan = RunPlan(
        process,
        source,
        choice,
        sampling,
        evaluation,
        skip_bad_clients=skip_bad_clients,
        least_clients=least_clients,
    )
    plan.check()
    plan = _with_privacy(plan, budget, saving)
    outputs = RunOutputs(runnables[""].name, process, evaluation and evaluation.output_type, saving)
    with _telling_how_it_ended(outputs, kind):
        state, sampling = outputs.begin(plan)
        plan = dataclasses.replace(plan, sampling=sampling)
        rounds = max(0, rounds - state.rounds) if saving.resume else rounds
        most = outputs.most_rounds(rounds)
        _run(plan, state, most, outputs, explain_speed=explain_speed)
        if most < rounds:
            outputs.refuse_more()


def _run(
    plan: RunPlan, state: State, rounds: int, outputs: RunOutputs, *, explain_speed: bool
) -> None:
    """Run rounds of a plan from a state on, with their outputs."""
    last = state.rounds + rounds
    evaluated_type = plan.evaluation and plan.evaluation.output_type
    is_simulated = plan.engine.delays is not None or plan.buffering is not None
    is_simulated &= plan.buffering is None or plan.engine.kind.simulates
    columns = ["simulated"] * is_simulated + ["age"] * (plan.buffering is not None)
    table = RoundTable(last, plan.process.output_type, evaluated_type, columns)
    batching = outputs.with_known(plan.engine.batching)
    engine = dataclasses.replace(plan.engine, batching=batching).engine(plan.process)
    progress = show_rounds(state.rounds + 1, last)
    running = plan.run(engine, state, rounds, outputs.save_client, progress, outputs.client_states)
    for finished in running:
        # Its interruption may count as the failure of a client that is left out.
        check_uninterrupted()
        outputs.save(finished)
        for line in (*finished.lost, *finished.warnings):
            say(line)
        if outputs.is_table:
            click.echo("\n".join(table.lines(finished)))
    outputs.end(state, rounds)
    _tell_shortened(table, outputs.folder, outputs.finished)
    for line in [*outputs.end_of_run(), *(engine.explain_speed() if explain_speed else ())]:
        say(line)


@contextlib.contextmanager
def _telling_how_it_ended(outputs: RunOutputs, engine: EngineKind) -> Generator[None]:
    """Close the outputs of a run after the context; if the run ends early, tell what is kept."""
    try:
        with no_substitutes():
            yield
    except ReaderGone:
        outputs.ending = "stopped"
        outputs.draw()
        say(f"nobody reads stdout any more: the run ends after round {outputs.finished}")
        say(outputs.what_is_kept())
        raise
    except OutputError as error:
        error.notes += (outputs.what_is_kept(),)
        raise
    except BudgetSpentError as error:
        outputs.ending = "stopped"
        outputs.abandon()
        error.notes += (outputs.what_is_kept(),)
        raise
    except TffcError as error:
        outputs.abandon()
        _tell_how_to_see(error, engine)
        raise
    except KeyboardInterrupt:
        outputs.ending = "stopped"
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


def _buffering(size: int | None, in_flight: int | None, max_age: int | None) -> Buffering | None:
    """Return how rounds are to be buffered; check that no option is without effect."""
    if size is None:
        refuse_without_effect("rounds are not buffered: add --buffer K", "in_flight", "max_age")
        return None
    if in_flight is None:
        raise click.UsageError("--buffer needs --in-flight M, the clients that work at a time")
    refuse_without_effect(
        "buffered rounds sample no clients: --in-flight says how many work",
        "clients_per_round",
        "sampling_rate",
    )
    refuse_without_effect(
        "buffered rounds compute one client a call", "batching", "device", "compiler", "precision"
    )
    refuse_without_effect("buffered rounds merge single clients", "groups", "skip_bad_groups")
    refuse_without_effect("buffered rounds have no secure sums", "secure_sums")
    refuse_without_effect(
        "a buffered run cannot be resumed, for its clients in flight are lost: begin another with "
        "--continue-from",
        "resume",
    )
    return Buffering(size, in_flight, max_age)


def _check_proofs(runnables: Mapping[str, Runnable], program: str, evaluate: str | None) -> None:
    """Check that the bundles of the round and of its evaluation, if there is one, were proved."""
    from tffc.cli.prove import check_proof

    for prefix, source_of in (("", program), ("evaluation.", evaluate)):
        if source_of is not None:
            check_proof(source_of, runnables[prefix].bundle)


def _sampling(
    count: int | None, rate: float | None, seed: int | None, *, is_timed: bool, skips_groups: bool
) -> Sampling:
    """Return how clients are sampled; check that the options go together.

    A seed also draws the clients and delays of rounds if it `is_timed`.
    """
    if count is not None and rate is not None:
        raise click.UsageError("--clients-per-round and --sampling-rate exclude each other")
    if seed is not None and count is None and rate is None and not is_timed:
        raise click.UsageError(
            "--seed selects the sampled clients: add --clients-per-round K or --sampling-rate Q"
        )
    if rate is not None and skips_groups:
        raise click.UsageError(
            "--sampling-rate and --skip-bad-groups exclude each other: a group that is left out "
            "takes clients with it that were drawn"
        )
    return Sampling.of(count, rate, seed)


def _budget(
    epsilon: float | None, delta: float, neighbours: str, withheld: tuple[str, ...]
) -> PrivacyBudget | None:
    """Return the budget of privacy; check that no option is without effect."""
    if epsilon is None:
        refuse_without_effect("add --privacy-budget", "privacy_delta", "neighbours", "not_released")
        return None
    return PrivacyBudget(epsilon, delta, neighbours, withheld)


def _with_privacy(plan: RunPlan, budget: PrivacyBudget | None, saving: OutputOptions) -> RunPlan:
    """Return a plan with its budget of privacy, and what is shown of its rounds."""
    if budget is None:
        return plan
    step("deriving the privacy")
    resumed = saving.out if saving.resume else None
    privacy = record_of(budget, plan, first_state=saving.first_state, resumed=resumed)
    return dataclasses.replace(plan, privacy=privacy)


def _check_evaluation(evaluate: str | None, evaluate_data: str | None, every: int | None) -> None:
    """Check that no option of evaluations is given that has no effect without another."""
    if (evaluate is None) != (evaluate_data is None):
        raise click.UsageError("--evaluate and --evaluate-data go together")
    if every is not None and evaluate is None:
        raise click.UsageError("--every says how often to evaluate: add --evaluate PROGRAM")


def _check_aggregates(form: type[Form], evaluate: str | None) -> None:
    """Check that no number of clients is asked for where nothing is aggregated."""
    if not form.aggregates and evaluate is None:
        refuse_without_effect("the round aggregates nothing", "least_clients")


def _check_groups(form: type[Form]) -> None:
    """Check that no groups are asked for where a form has none."""
    if not form.has_groups():
        refuse_without_effect("only the form mergeable has groups of clients", "groups")


def _tell_how_to_see(error: TffcError, engine: EngineKind) -> None:
    """Add to an error whose values are left out the option that shows them."""
    if error.whole is not None and engine.shows_clients:
        error.help = f"{error.help}, with --show-clients"


OPTION_OF = {
    WORKERS: "workers",
    BATCHES: "device",
    MASKED_SUMS: "secure_sums",
    SHOWN_CLIENTS: "show_clients",
    OPTIONS: "engine_options",
    BUFFERS: "buffer",
    SIMULATED_TIME: "delays",
}
"""The option that asks for each ability of engines."""


def _refuse_options_of_others(
    engine: EngineKind, workers: int | None, batching: Batching, *, is_buffered: bool
) -> None:
    """Check that no option is given that is for another engine."""
    if batching.size == 1 and is_installed():
        alone = "each call computes one client: add --batching N"
        refuse_without_effect(alone, "compiler", "precision")
    for ability, option in OPTION_OF.items():
        if ability is SIMULATED_TIME and not is_buffered:
            continue
        if not ability.is_of(engine):
            instead = ""
            if ability is WORKERS and (own := engine.own_option(workers)):
                instead = f", but options of its own, such as --engine-options '{own}'"
            elif ability is OPTIONS:
                takers = [f"--engine {kind.name}" for kind in ENGINES.own.values() if kind.options]
                instead = f"; add {' or '.join(takers)}"
            refuse_without_effect(f"the engine {engine.name} {ability.lack}{instead}", option)
        elif ability is BATCHES and batching.size == 1:
            if batching.device.startswith("CPU"):
                refuse_without_effect("sections by themselves are computed there anyway", option)


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
