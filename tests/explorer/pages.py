"""The rounds whose pages are tested in a browser."""

from __future__ import annotations

import pathlib

from tests.explorer import programs
from tests.explorer.conftest import LATE, ROUND
from tests.processes import ROOT
from tffc.cli.sources import read_round
from tffc.explorer.description import describe
from tffc.explorer.page import page

NAMES = ("sensors", "small", "many", "large", "late", "long", "steps")

FIELDS = (
    "postal_code_of_residence",
    "systolic_blood_pressure_at_admission",
    "number_of_previous_admissions",
    "readmitted_within_thirty_days",
    "prescribed_medication",
)

LONG = f"""\
import collections
import numpy as np
import tffc as tff

FIELDS = {FIELDS}
PATIENTS = collections.OrderedDict((field, np.int32) for field in FIELDS)
STATE = collections.OrderedDict(model=tff.TensorType(np.float32, [784, 10]), round=np.int32)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(PATIENTS))
def count(state, patients):
    current_round_of_training = tff.federated_broadcast(state.round)
    totals = [tff.federated_sum(getattr(patients, field)) for field in FIELDS]
    extremes = [tff.federated_max(getattr(patients, field)) for field in FIELDS]
    secure_total_of_all_admissions = tff.federated_secure_sum_bitwidth(
        patients.number_of_previous_admissions, bitwidth=16
    )
    echoed = tff.federated_min(current_round_of_training)
    return state, (*totals, *extremes, secure_total_of_all_admissions, echoed)
"""
"""A round of twelve channels with long names."""


def write_pages(folder: pathlib.Path) -> None:
    """Write the pages of rounds: one with functions in graphs, a small one, one of 400 calls, one
    with a graph of 20,000 nodes, one that is refused, one with long names, and one whose server
    works before and after the clients."""
    sensors = f"{ROOT}/examples/temperature/temperature.py:mean_temperature"
    rounds = {
        "sensors": read_round(sensors, None).computation,
        "many": programs.many_bindings(),
        "large": programs.large_graph(),
    }
    quantiles = f"{ROOT}/examples/quantiles/quantiles.py:search"
    rounds["steps"] = read_round(quantiles, None).computation
    for name, text in (("small", ROUND), ("late", LATE), ("long", LONG)):
        (folder / f"{name}.py").write_text(text)
        rounds[name] = read_round(str(folder / f"{name}.py"), None).computation
    for name in NAMES:
        described = describe(rounds[name], "mapreduce", f"{name}.py:round")
        (folder / f"{name}.html").write_text(page(described.plain))
