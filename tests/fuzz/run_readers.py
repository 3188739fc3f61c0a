"""Readers of the files in the folder of a run."""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib

from tests.fuzz.reader import (
    Reader,
    damage_file,
    damage_text,
    folder,
    refused,
)
from tests.hostile.killed_runs import Runs
from tffc.language import TensorType
from tffc.runtime.engines.rounds import Exchange
from tffc.runtime.engines.state import read_state, read_type
from tffc.runtime.operations.counts import FILE as COUNTS
from tffc.runtime.operations.counts import read_counts
from tffc.runtime.runs.command_record import COMMANDS, read_commands
from tffc.runtime.runs.kept_states import StateFile
from tffc.runtime.runs.metrics_file import read_rows
from tffc.runtime.runs.observed import OBSERVED, Observed, add_observed, read_observed
from tffc.runtime.runs.privacy_record import (
    PRIVACY,
    EarlierRounds,
    KeptMechanism,
    PrivacyRecord,
)
from tffc.runtime.runs.report import read_report
from tffc.runtime.runs.run_folder import METRICS
from tffc.runtime.runs.run_record import BATCHING, RUN, SOURCE, read_batching, read_record
from tffc.runtime.runs.tracked import TRACKED, Tracked, add_tracked, read_tracked
from tffc.support.errors import TffcError

STATE = "state.npz"
FILES = (RUN, SOURCE, BATCHING, OBSERVED, COMMANDS, METRICS, STATE, TRACKED)
"""The first byte of an input is the position of the file that the rest replaces."""

READ_BY = {OBSERVED: 2, COMMANDS: 2, METRICS: 2, STATE: 3, TRACKED: 2}
"""The step below that reads a file, where it is not the first."""


@functools.cache
def _run() -> pathlib.Path:
    """Return the folder of a run of three rounds."""
    place = folder("run")
    with contextlib.chdir(place):
        Runs("local").run("run")
    (place / "run" / BATCHING).touch()
    exchange = Exchange(2, 4096, 20, {"ada": 3}, {"eve": "it did not answer in time"})
    add_observed(place / "run", Observed(3, 0.5, None, None, {}, (), exchange=exchange))
    add_tracked(place / "run", Tracked("mlflow", "0d8ba26d", 3))
    return place / "run"


@functools.cache
def _whole() -> dict[str, bytes]:
    paths = {name: (_run() / name) for name in FILES}
    return {name: path.read_bytes() if path.exists() else b"" for name, path in paths.items()}


def _sampled_by_a_rate() -> list[bytes]:
    """Return records of the run that say that its clients were drawn with a probability."""
    record = {**json.loads(_whole()[RUN]), "clients_per_round": None}
    given = {"seed": 7, "poisson": {"rate": 0.25, "secret_seed": None}}
    secret = {"seed": None, "poisson": {"rate": 0.25, "secret_seed": "0f" * 16}}
    return [json.dumps({**record, **sampling}).encode() for sampling in (given, secret)]


def _with_a_budget() -> bytes:
    """Return the record of the run as that of one with a privacy budget."""
    earlier = EarlierRounds(3, (KeptMechanism("laplace", (0.5,)),), rate=0.25)
    fixed = EarlierRounds(2, (), size=3, population=9)
    mechanisms = (KeptMechanism("gaussian", (2.0,)), KeptMechanism("skellam", (1.0, 1.0, 9.0)))
    record = PrivacyRecord(2.0, 1e-6, "replace", 3, ("loss",), mechanisms, (earlier, fixed))
    return json.dumps({**json.loads(_whole()[RUN]), PRIVACY: record.as_json()}).encode()


def read_run(data: bytes) -> bool:
    """Read the folder of a run after one of its files was replaced."""
    place, name = _run(), FILES[data[0] % len(FILES)] if data else RUN
    (place / name).write_bytes(data[1:])
    try:
        return [_is_read(place, each) for each in range(5)][READ_BY.get(name, 0)]
    finally:
        (place / name).write_bytes(_whole()[name])


def _is_read(place: pathlib.Path, what: int) -> bool:
    try:
        match what:
            case 0:
                read_record(place)
                read_batching(place)
            case 1:
                read_report(place)
            case 2:
                read_rows(place / METRICS, (place / METRICS).read_bytes())
                read_observed(place)
                read_commands(place)
                read_tracked(place)
            case 3:
                read_state(place / STATE, TensorType("int32"), "")
                StateFile(place / STATE, TensorType("int32")).read()
            case _:
                read_type(place / STATE)
    except TffcError as error:
        return refused(error)
    return True


def read_counted(data: bytes) -> bool:
    """Read what a machine has counted."""
    place = folder("counts")
    (place / COUNTS).write_bytes(data)
    read_counts(place)
    return True


COUNTED = (
    b'{"rounds": {"finished": 2}, "round_seconds": {"0.1": 1, "sum": 0.5}, "last_round": {"": 2}}'
)

READERS = {
    "counts": Reader(
        read_counted, lambda: [COUNTED, b"{}"], damage_text, ("counts of a federation",)
    ),
    "run": Reader(
        read_run,
        lambda: [
            *(bytes([number]) + _whole()[name] for number, name in enumerate(FILES)),
            *(b"\0" + record for record in (*_sampled_by_a_rate(), _with_a_budget())),
        ],
        damage_file(b"\0\1\2\3\4"),
        (
            "the record of a run",
            "a state",
            "a client's state",
            "the observations of a run",
            "the commands of a run",
            "the metrics of a run",
            "what trackers have of a run",
        ),
    ),
}
