"""Running bundles from Python: `tffc.load` and `tffc.run`."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from tffc.backends.bundle.bundle import read_bundle
from tffc.language.types import Type, to_type
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.data.groups import ValuesInMemory
from tffc.runtime.data.location import open_source
from tffc.runtime.data.python_function import PythonValues, is_client_data
from tffc.runtime.data.source import ClientSource, check_all
from tffc.runtime.engines.engine import OFF, Batching, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round, Sampling, run_rounds
from tffc.runtime.engines.table import make_engine
from tffc.runtime.runs.run_folder import find_state
from tffc.runtime.runs.state import State, read_state, read_type
from tffc.support.errors import LanguageTypeError, LanguageValueError


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
    bundle: Process | str | os.PathLike[str],
    data: ClientSource | str | os.PathLike[str] | Sequence[Any],
    rounds: int,
    *,
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
    evaluate: Process | str | os.PathLike[str] | None = None,
    evaluate_data: ClientSource | str | os.PathLike[str] | Sequence[Any] | None = None,
    evaluate_every: int = 1,
    allow_effects: Collection[str] = (),
    least_clients: int = 0,
    show_clients: bool = False,
) -> Iterator[Round]:
    """Run rounds of a bundle and yield each when it is finished; its output is in Python
    containers.

    `data` is a location as for `tffc run --data`, a source, a `ClientData` of
    `tff.simulation.datasets`, or a list with one value for each client.  `engine_options` are the
    engine's command-line options, split into words.  Rounds continue from `state`, by default the
    initial one.  `batching` is how many clients are computed in one call: "off" for one, "auto" to
    decide by measuring, or a number.  `device` is the one that TensorFlow computes batches on, such
    as "GPU:0".

    `deliver` is called with the name and final value of each client after a round of a
    BroadcastForm.  The state after every `evaluate_every` rounds, and after the last one, is
    evaluated by a round of the bundle `evaluate` with all clients of `evaluate_data`; its output is
    the `evaluation` of the round that is yielded.  `allow_effects` applies to bundles in folders,
    as for `load`.

    A round or evaluation of fewer than `least_clients` clients is refused.  Unless `show_clients`
    is set, which is for debugging on one's own machine, clients' code does not print, and its
    errors leave out what may be clients' values.

    Raises:
      TffcError: the bundle, the data or a step is refused; see the classes in
      `tffc.support.errors`.
    """
    process = bundle if isinstance(bundle, Process) else load(bundle, allow_effects=allow_effects)
    source = _source(data, process.data_type)
    output = process.client_output_type
    batches = Batching.parse(batching, device)

    def make(each: Process) -> Engine:
        options = engine_options
        return make_engine(engine, each, workers, options, batches, shows_clients=show_clients)

    evaluation = None
    if evaluate is not None and evaluate_data is not None:
        measuring = evaluate
        if not isinstance(measuring, Process):
            measuring = load(measuring, allow_effects=allow_effects)
        evaluation = Evaluation(
            make(measuring),
            _source(evaluate_data, measuring.data_type),
            evaluate_every,
            least_clients,
        )
    elif evaluate is not None or evaluate_data is not None:
        raise LanguageValueError(
            "E729",
            "an evaluation needs both a program and clients' data",
            help="give evaluate and evaluate_data, or neither",
        )
    finished = run_rounds(
        make(process),
        state or process.first_state(),
        source,
        rounds,
        Sampling(clients_per_round, seed),
        skip_bad_clients=skip_bad_clients,
        deliver=deliver if output is None else lambda c, v: deliver(c, to_python(v, output)),
        evaluation=evaluation,
        least_clients=least_clients,
    )
    for each in finished:
        measured = each.evaluation
        if measured is not None and evaluation is not None:
            measured = to_python(measured, evaluation.output_type)
        given = to_python(each.output, process.output_type)
        yield dataclasses.replace(each, output=given, evaluation=measured)


def _source(data: Any, type: Type) -> ClientSource:
    if isinstance(data, (str, os.PathLike)):
        source = open_source(data, type)
        check_all(source)
        return source
    if is_client_data(data):
        source = PythonValues("data", data).typed(type)
        check_all(source)
        return source
    if isinstance(data, Sequence):
        values = tuple(to_value(value, type, "a client's data") for value in data)
        return ValuesInMemory(type, values)
    if not (hasattr(data, "clients") and hasattr(data, "read")):
        raise LanguageTypeError(
            "E714",
            f"clients' data cannot be an object of class {data.__class__.__name__!r}",
            help="give a path, a list with the value of each client, a ClientData, or a source",
        )
    return data
