"""Running programs and bundles from Python: `tffc.load` and `tffc.run`."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from tffc.api.compiling import compiled
from tffc.api.plan import RunPlan, evaluation_of
from tffc.api.programs import Source, opened, or_missing_bundle, round_of
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.deploy.engines import choose_engine
from tffc.language.types import Type, to_type
from tffc.language.values.concrete import to_python
from tffc.runtime.data.clients import Data, source_of
from tffc.runtime.data.source import ClientSource
from tffc.runtime.effects.consent import check_can_run
from tffc.runtime.engines.engine import OFF, Batching
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round, Sampling
from tffc.runtime.engines.state import State, read_state, read_type
from tffc.runtime.runs.run_folder import find_state
from tffc.support.errors import LanguageValueError


def load(bundle: str | os.PathLike[str], *, allow_effects: Collection[str] = ()) -> Process:
    """Return a process that runs the bundle in a folder; nothing in it is run as Python.

    `allow_effects` are the kinds of side effects that the bundle may have: "files", "network",
    "python", "unknown".

    Raises:
      BundleError: there is no bundle, or it is damaged or of a newer format.
      ConsentError: the bundle has an effect that is not allowed.
      LanguageValueError: `allow_effects` names an unknown kind.
    """
    return Process(read_bundle(pathlib.Path(bundle)), allow_effects)


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


def run(
    program: Process | Bundle | Source,
    data: Data,
    rounds: int,
    *,
    form: str | None = None,
    engine: str = "local",
    engine_options: Sequence[str] = (),
    workers: int | None = None,
    batching: str | int = OFF,
    device: str = "",
    clients_per_round: int | None = None,
    seed: int = 0,
    state: State | None = None,
    skip_bad_clients: bool = False,
    deliver: Callable[[str, Any], None] = lambda client, output: None,
    evaluate: Process | Bundle | Source | None = None,
    evaluate_data: Data | None = None,
    evaluate_every: int = 1,
    allow_effects: Collection[str] = (),
    least_clients: int = 0,
    show_clients: bool = False,
) -> Iterator[Round]:
    """Run rounds of a program or a bundle and yield each when it is finished; its output is in
    Python containers.

    `program` is a bundle or its folder, a process that `load` returned, or a computation, an
    iterative process, or a module or file that has one; these are compiled first, to `form` or by
    default to the form that fits their output.

    `data` is a location as for `tffc run --data`, a source, a `ClientData` of
    `tff.simulation.datasets`, or a list with one value for each client.  `engine_options` are the
    engine's command-line options, split into words.  Rounds continue from `state`, by default the
    initial one.  `batching` is how many clients are computed in one call: "off" for one, "auto" to
    decide by measuring, or a number.  `device` is the one that TensorFlow computes batches on, such
    as "GPU:0".

    `deliver` is called with the name and final value of each client after a round of a
    BroadcastForm.  The state after every `evaluate_every` rounds, and after the last one, is
    evaluated by a round of `evaluate` with all clients of `evaluate_data`; its output is the
    `evaluation` of the round that is yielded.  `allow_effects` are the side effects that bundles
    and programs in files may have, as for `load`.

    A round or evaluation of fewer than `least_clients` clients is refused.  Unless `show_clients`
    is set, which is for debugging on one's own machine, clients' code does not print, and its
    errors leave out what may be clients' values.

    Raises:
      TffcError: the program, the data or a step is refused; see the classes in
      `tffc.support.errors`.
    """
    if type(rounds) is not int or rounds < 0:
        raise LanguageValueError(
            "E706", f"cannot run {rounds!r} rounds", help="give a whole number from 0 on"
        )
    process = _process(program, form, allow_effects)
    choice = choose_engine(
        engine,
        workers,
        engine_options,
        Batching.parse(batching, device),
        shows_clients=show_clients,
    )
    if (evaluate is None) != (evaluate_data is None):
        raise LanguageValueError(
            "E729",
            "an evaluation needs both a program and clients' data",
            help="give evaluate and evaluate_data, or neither",
        )
    evaluation = None
    if evaluate is not None:
        measuring = _process(evaluate, None, allow_effects)
        measured = _source(evaluate_data, measuring.data_type)
        evaluation = evaluation_of(measuring, choice, measured, evaluate_every, least_clients)
    plan = RunPlan(
        process,
        _source(data, process.data_type),
        choice,
        Sampling(clients_per_round, seed),
        evaluation,
        skip_bad_clients=skip_bad_clients,
        least_clients=least_clients,
    )
    yield from _rounds(plan, state or process.first_state(), rounds, deliver)


def _process(
    program: Process | Bundle | Source, form: str | None, allow_effects: Collection[str]
) -> Process:
    if isinstance(program, Process):
        return program
    program = opened(program, form)
    if isinstance(program, Bundle):
        return Process(program, allow_effects)
    with or_missing_bundle(program):
        source = round_of(program, form)
    if source.allow_effects is not None:
        check_can_run(source.parts())
    is_own = source.allow_effects is None
    return Process(compiled(source, form), allow_effects, is_own=is_own)


def _rounds(
    plan: RunPlan, state: State, rounds: int, deliver: Callable[[str, Any], None]
) -> Iterator[Round]:
    """Run the rounds of a plan, with their outputs in Python containers."""
    process, evaluation = plan.process, plan.evaluation
    output_type = process.client_output_type

    def in_python(client: str, value: Any) -> None:
        deliver(client, value if output_type is None else to_python(value, output_type))

    finished = plan.run(plan.engine.engine(process), state, rounds, in_python)
    for outcome in finished:
        measured = outcome.evaluation
        if measured is not None and evaluation is not None:
            measured = to_python(measured, evaluation.output_type)
        yield dataclasses.replace(
            outcome,
            output=to_python(outcome.output, process.output_type),
            evaluation=measured,
        )


def _source(data: Any, type: Type) -> ClientSource:
    return source_of(data, type)
