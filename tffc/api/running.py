"""Running programs and bundles from Python."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from tffc.api.boundary import public
from tffc.api.compiling import compiled
from tffc.api.opened_bundles import (
    OpenedBundle,
    check_may_run,
    opened,
    or_missing_bundle,
    origin_of,
)
from tffc.api.plan import RunPlan, evaluation_of
from tffc.api.privacy_budget import PrivacyBudget, record_of
from tffc.api.programs import Source, round_of
from tffc.api.runs import IN_PYTHON, Run, WrittenTypes, client_states_of, state_of
from tffc.backends.bundle.bundle import Bundle
from tffc.deploy.engines import choose_engine
from tffc.language.types import Type, to_type
from tffc.language.values.concrete import to_python
from tffc.runtime.batching.choices import AUTO, FULL
from tffc.runtime.data.clients import Data, source_of
from tffc.runtime.data.source import ClientSource
from tffc.runtime.effects.consent import check_can_run, read_kinds
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.delays import DelayFunction, Delays
from tffc.runtime.engines.encoding import encode
from tffc.runtime.engines.engine import OFF, Batching
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.kind import EngineChoice
from tffc.runtime.engines.process import Process, check_beginning
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State, read_state, read_type
from tffc.runtime.runs.run_folder import RunFolder, find_state
from tffc.runtime.tracking.kind import TrackerKind
from tffc.runtime.tracking.table import TRACKERS
from tffc.runtime.tracking.tracking import Tracking
from tffc.support.errors import LanguageValueError
from tffc.support.guards import is_path


@public
def load_state(path: str | os.PathLike[str], type: Any = None) -> Any:
    """Return the server state that a run has saved, in Python containers, with NumPy tensors.

    `path` is the state file or the folder of the run.  `type` is the type of the state, or anything
    that `to_type` takes; the result has its containers, named tuples for example.  Without `type`,
    a struct becomes an OrderedDict if its elements have names, and otherwise a tuple.

    Raises:
      DataError: the file cannot be read, holds a state of another type, or does not record its
        type.
      LanguageTypeError: `type` cannot be converted to a type.
    """
    file = find_state(pathlib.Path(path))
    wanted = read_type(file) if type is None else to_type(type)
    return to_python(read_state(file, wanted, "").value, wanted)


@public
def run(
    program: Process | Bundle | Source,
    data: Data,
    rounds: int = 1,
    *,
    form: str | None = None,
    engine: str = "local",
    engine_options: Sequence[str] = (),
    workers: int | None = None,
    batching: str | int = OFF,
    device: str = "",
    compiler: str = AUTO,
    precision: str = FULL,
    clients_per_round: int | None = None,
    sampling_rate: float | None = None,
    seed: int | None = None,
    state: Any = None,
    after_round: int | None = None,
    client_states: Any = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    track: str | Sequence[str] = (),
    skip_bad_clients: bool = False,
    groups: int | None = None,
    skip_bad_groups: bool = False,
    buffer: int | None = None,
    in_flight: int | None = None,
    max_age: int | None = None,
    delays: str | DelayFunction | None = None,
    deliver: Callable[[str, Any], None] = lambda client, output: None,
    evaluate: Process | Bundle | Source | None = None,
    evaluate_data: Data | None = None,
    evaluate_every: int = 1,
    allow_effects: Collection[str] = (),
    least_clients: int = 0,
    show_clients: bool = False,
    privacy_budget: float | None = None,
    privacy_delta: float = 1e-6,
    neighbours: str = "add-or-remove",
    not_released: Collection[str] = (),
) -> Run:
    """Return a run of a program or a bundle: an iterator that runs each round when it is asked for
    it, and keeps what was finished if it is interrupted.

    `program` is a bundle or its folder, a computation, an iterative process, or a module or file
    that has one; programs are compiled first, to `form` or by default to the form that fits their
    output.

    `data` is a location as for `tffc run --data`, a source, a `ClientData` of
    `tff.simulation.datasets`, or a list with one value for each client.  `engine_options` are the
    engine's command-line options, split into words.  `batching` is how many clients are computed in
    one call: "off" for one, "auto" to decide by measuring, or a number.  `device` is the one that
    computes batches, such as "GPU:0"; `compiler` ("pjrt" or "tensorflow") compiles them, and their
    products have the `precision` "full", or "fast", such as TF32 on a GPU.

    All clients take part in each round, or `clients_per_round` of them, or each with the
    probability `sampling_rate`, independently of the others.  A `seed`, by default 0, draws them;
    a rate without one gets a secret seed, which only the record in `out` has, as privacy needs it.

    Rounds continue from `state`, by default the initial one: a state in the program's own
    structures; a run or one of its rounds, whose numbers go on; or the path of a saved state or of
    a run folder, whose numbers go on if this program has made it.  `after_round` is the number of
    the round before, if the numbers are to go on from another one.  Clients that keep states begin
    with those that belong to `state`, or with `client_states`: a run, one of its rounds, the folder
    of a run, or the states by the names of clients.  `out` is a folder that keeps
    state, outputs and metrics after every round, as `tffc run --out` does; with `resume`, the run
    in it is continued up to `rounds` in total.  `track` names trackers, "tensorboard", "mlflow" or
    "wandb", which get the numbers, parameters and report of the run; one that fails warns.

    `deliver` is called with the name and final value of each client after a round of a
    BroadcastForm or a ClientStateForm.  The states after every `evaluate_every` rounds, and after
    the last one, are evaluated by a round of `evaluate` with all clients of `evaluate_data`; its
    output is the `evaluation` of the round that is yielded.  `allow_effects` are the side effects
    that bundles and programs in files may have, as for `load`.

    With `groups`, the clients of each round come in that many groups, in order, and the results of
    groups are merged; the form is then to be "mergeable".  With `skip_bad_groups`, a group that
    fails is left out of its round, with a warning.

    With `buffer`, rounds are buffered, which the program has to allow with `tffc.buffered`:
    `in_flight` clients work on the state that they were given, and after `buffer` contributions the
    server steps, which ends a round.  Contributions older than `max_age` steps are dropped.
    `delays` is a model of how long clients take, such as "lognormal:10,0.5+stragglers:0.1,8", or a
    function of the client's name and the number of its start; rounds then have `simulated` seconds.
    Engines other than the local one run buffered rounds in real time, without `delays`.

    A round, a group or an evaluation of fewer than `least_clients` clients is refused.  Unless
    `show_clients` is set, which is for debugging on one's own machine, clients' code does not
    print, and its errors leave out what may be clients' values.

    With `privacy_budget`, an ε, the differential privacy of a round has to be shown from the
    program first, for `neighbours` ("add-or-remove", "replace" or "zero-out") and all outputs but
    those at the paths `not_released`.  The round after which all rounds together would have a
    larger ε at `privacy_delta` is refused; `Run.spent` is what was spent so far.

    Raises:
      TffcError: the program, the data or a step is refused; see the classes in
      `tffc.support.errors`.
    """
    _check_count(rounds)
    if resume and (out is None or state is not None or client_states is not None):
        raise LanguageValueError(
            "E706",
            "a run is continued from the state in its folder",
            help="give out=... with the folder, and no state, or leave resume out",
        )
    if buffer is not None:
        _check_fits_buffer(clients_per_round, sampling_rate, batching, groups, resume=resume)
    sampling = Sampling.of(clients_per_round, sampling_rate, seed)
    kinds = _trackers(track, out)
    name = os.fspath(program) if is_path(program) else getattr(program, "name", "") or IN_PYTHON
    sources: list[ClientSource] = []

    def check_data(type: Type) -> None:
        sources.append(source_of(data, type))
        if not skip_bad_clients:
            _check_first(sources[0])

    process, types = _process(program, form, allow_effects, check_data)
    choice = choose_engine(
        engine,
        workers,
        engine_options,
        Batching.parse(batching, device, compiler, precision),
        shows_clients=show_clients,
        groups=_groups(process, groups, skip_bad_groups=skip_bad_groups),
        buffering=_buffering(buffer, in_flight, max_age),
        delays=Delays.of(delays),
    )
    evaluation, evaluation_type = _evaluation(
        evaluate, evaluate_data, evaluate_every, least_clients, allow_effects, choice
    )
    if evaluation is not None:
        evaluation.check(process)
    plan = RunPlan(
        process,
        sources[0] if sources else source_of(data, process.data_type),
        choice,
        sampling,
        evaluation,
        skip_bad_clients=skip_bad_clients,
        least_clients=least_clients,
    )
    plan.check()
    budget = _budget(privacy_budget, privacy_delta, neighbours, not_released)
    plan = _with_privacy(plan, budget, state, out if resume else None)
    first = state_of(process, state)
    states = client_states_of(process, client_states, state)
    if states is None and first is not None and _begins_later(process, first, state):
        _warn(
            "the clients of the run begin with their first states, though its server does not: "
            "state=run continues both, and client_states={} says that this is meant"
        )
    if after_round is not None:
        first = dataclasses.replace(first or process.first_state(), rounds=after_round)
    if first is None and not resume:
        check_beginning(process.bundle)
    folder = None if out is None else RunFolder(pathlib.Path(out), process, evaluation_type)
    tracking = Tracking(kinds, folder and folder.path, _warn)
    return Run(
        plan,
        first,
        rounds,
        types,
        evaluation_type,
        deliver,
        folder,
        tracking,
        name=name,
        resume=resume,
        client_states=states,
    )


def _evaluation(
    program: Process | Bundle | Source | None,
    data: Data | None,
    every: int,
    least_clients: int,
    allow_effects: Collection[str],
    choice: EngineChoice,
) -> tuple[Evaluation | None, Type | None]:
    """Return the evaluation that a run asks for, and the type of its output as its author wrote
    it; None for none."""
    if (program is None) != (data is None):
        raise LanguageValueError(
            "E729",
            "an evaluation needs both a program and clients' data",
            help="give evaluate and evaluate_data, or neither",
        )
    if program is None:
        return None, None
    process, types = _process(program, None, allow_effects)
    source = source_of(data, process.data_type)
    return evaluation_of(process, choice, source, every, least_clients), types.output


def _budget(
    epsilon: float | None, delta: float, neighbours: str, withheld: Collection[str]
) -> PrivacyBudget | None:
    """Return the privacy budget that a run asks for, checked."""
    if epsilon is not None:
        return PrivacyBudget(epsilon, delta, neighbours, tuple(withheld))
    if withheld:
        raise LanguageValueError(
            "E706",
            "not_released says what the ε of a privacy budget leaves out",
            help="give privacy_budget=... too, or leave it out",
        )
    return None


def _with_privacy(
    plan: RunPlan,
    budget: PrivacyBudget | None,
    state: object,
    resumed: str | os.PathLike[str] | None,
) -> RunPlan:
    """Return a plan with its budget of privacy, and what is shown of its rounds."""
    if budget is None:
        return plan
    folder = None if resumed is None else pathlib.Path(resumed)
    privacy = record_of(budget, plan, first_state=_state_file(state), resumed=folder)
    return dataclasses.replace(plan, privacy=privacy)


def _state_file(state: object) -> pathlib.Path | None:
    """Return the path that a state is given by; None for the first state.

    Raises:
      LanguageValueError: it is given as a value, of which nothing tells where it comes from.
    """
    if state is None:
        return None
    if is_path(state):
        return pathlib.Path(state)
    raise LanguageValueError(
        "E706",
        "it is not known what was spent before a state that is given as a value",
        help="give the folder of the run that has made the state",
    )


def _groups(process: Process, count: int | None, *, skip_bad_groups: bool) -> ClientGroups | None:
    """Return the groups that a run asks for, checked."""
    if count is None:
        if skip_bad_groups:
            raise LanguageValueError(
                "E706",
                "there are no groups of clients that could be left out",
                help="give groups=... with their number, or leave skip_bad_groups out",
            )
        return None
    groups = ClientGroups(count, skip_bad_groups)
    groups.check(process.bundle.form)
    return groups


def _check_count(rounds: object) -> None:
    if type(rounds) is not int or rounds < 0:
        raise LanguageValueError(
            "E706", f"cannot run {rounds!r} rounds", help="give a whole number from 0 on"
        )


def _buffering(size: int | None, in_flight: int | None, max_age: int | None) -> Buffering | None:
    """Return how a run is to be buffered, checked; None for whole rounds."""
    if size is not None and in_flight is not None:
        return Buffering(size, in_flight, max_age)
    if size is None and in_flight is None and max_age is None:
        return None
    raise LanguageValueError(
        "E706",
        "a buffered run needs both a buffer and clients in flight",
        help="give buffer=... and in_flight=..., or leave out buffer, in_flight and max_age",
    )


def _check_fits_buffer(
    clients: int | None,
    rate: float | None,
    batching: str | int,
    groups: int | None,
    *,
    resume: bool,
) -> None:
    """Check that nothing is asked for that buffered runs do not have."""
    for is_asked_for, what, instead in (
        (clients is not None, "samples no clients for a round", "in_flight for clients_per_round"),
        (rate is not None, "samples no clients for a round", "in_flight for sampling_rate"),
        (batching not in (OFF, 1), "computes one client a call", "no batching"),
        (groups is not None, "merges single clients, not groups", "no groups"),
        (resume, "cannot be resumed: its clients in flight are lost", "state=FOLDER for resume"),
    ):
        if is_asked_for:
            raise LanguageValueError("E706", f"a buffered run {what}", help=f"give {instead}")


def _begins_later(process: Process, first: State, state: object) -> bool:
    """Return whether a process whose clients keep states begins with a state that is not its first
    one, as far as that is known."""
    if process.client_state_type is None or process.bundle.initialize is None:
        return process.client_state_type is not None and is_path(state)
    return encode(first.value) != encode(process.first_state().value)


def _trackers(names: str | Sequence[str], out: object) -> list[TrackerKind]:
    """Return the trackers of names, each once, checked."""
    kinds: list[TrackerKind] = []
    for name in dict.fromkeys((names,) if isinstance(names, str) else names):
        kind = TRACKERS.find(name, "E706")
        kind.check_installed()
        if kind.needs_folder and out is None:
            raise LanguageValueError(
                "E706",
                f"the tracker {name!r} writes to the folder of the run",
                help="give out=... with the folder",
            )
        kinds.append(kind)
    return kinds


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _check_first(source: ClientSource) -> None:
    """Check that the data of the first client has the program's type, where that can be checked."""
    check = getattr(source, "check", None)
    if callable(check):
        for client in source.clients[:1]:
            check(client)


def _process(
    program: Process | Bundle | Source,
    form: str | None,
    allow_effects: Collection[str],
    check: Callable[[Type], None] | None = None,
) -> tuple[Process, WrittenTypes]:
    """Return the process of a program, and the types as its author wrote them.

    Before a program is compiled, `check` is called with the type of each client's data.
    """
    if isinstance(program, Process):
        return program, WrittenTypes.of(program, None)
    program = opened(program, form)
    allowed = read_kinds(allow_effects)
    if isinstance(program, OpenedBundle):
        check_may_run(program)
        if not allowed <= program.allow_effects:
            program = dataclasses.replace(program, allow_effects=allowed | program.allow_effects)
        process = program.process
        return process, WrittenTypes.of(process, origin_of(program).signature)
    if isinstance(program, Bundle):
        check_may_run(program)
        process = Process(program, allowed)
        return process, WrittenTypes.of(process, None)
    with or_missing_bundle(program):
        source = round_of(program, form)
    if source.allow_effects is not None:
        check_can_run(source.parts())
        allowed |= source.allow_effects
    if check is not None:
        check(source.data_type(form))
    is_own = source.allow_effects is None
    process = Process(compiled(source, form), allowed, is_own=is_own)
    return process, WrittenTypes.of(process, source.signature)
