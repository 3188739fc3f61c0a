"""What users write as `tff.templates`: pairs of computations that make a process of rounds.

iterative_process    a state, how it starts, and how a round takes it to the next one
measured_process     rounds that also give a result and measurements
aggregation_process  measured rounds that take clients' values to the server
estimation_process   processes that report what they have estimated so far
rounds               what a round of a process is to forms
errors               what is raised where the computations do not fit each other
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
