"""The module `tff.templates`: processes, which are sets of computations that define rounds.

iterative_process    a state, its initial value, and the round that updates it
measured_process     rounds that also return a result and measurements
aggregation_process  measured rounds that aggregate clients' values at the server
estimation_process   processes that report an estimate computed from their state
rounds               the round of a process in the shape that forms take
errors               what is raised if the computations do not fit each other
"""

from tffc.frontend.templates.aggregation_process import AggregationProcess as AggregationProcess
from tffc.frontend.templates.estimation_process import EstimationProcess as EstimationProcess
from tffc.frontend.templates.iterative_process import IterativeProcess as IterativeProcess
from tffc.frontend.templates.iterative_process import is_stateful as is_stateful
from tffc.frontend.templates.measured_process import MeasuredProcess as MeasuredProcess
from tffc.frontend.templates.measured_process import MeasuredProcessOutput as MeasuredProcessOutput
from tffc.frontend.templates.measured_process import (
    chain_measured_processes as chain_measured_processes,
)
from tffc.frontend.templates.measured_process import (
    concatenate_measured_processes as concatenate_measured_processes,
)
