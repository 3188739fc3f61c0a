"""The module `tff.templates`: processes, which are sets of computations that define rounds.

iterative_process    a state, its initial value, and the round that updates it
measured_process     rounds that also return a result and measurements
aggregation_process  measured rounds that aggregate clients' values at the server
estimation_process   processes that report an estimate computed from their state
rounds               the round of a process in the shape that forms take
errors               what is raised if the computations do not fit each other
"""

from tffc.frontend.templates.aggregation_process import AggregationProcess
from tffc.frontend.templates.estimation_process import EstimationProcess
from tffc.frontend.templates.iterative_process import IterativeProcess, is_stateful
from tffc.frontend.templates.measured_process import (
    MeasuredProcess,
    MeasuredProcessOutput,
    chain_measured_processes,
    concatenate_measured_processes,
)

__all__ = [
    "AggregationProcess",
    "EstimationProcess",
    "IterativeProcess",
    "MeasuredProcess",
    "MeasuredProcessOutput",
    "chain_measured_processes",
    "concatenate_measured_processes",
    "is_stateful",
]
