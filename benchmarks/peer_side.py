"""The peer's side: TensorFlow Federated through its public functions."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import computation_pb2
from tensorflow_federated.python.core.impl.computation import computation_impl
from tensorflow_federated.python.core.impl.context_stack import context_stack_impl

from benchmarks import averaging
from benchmarks.clock import seconds
from benchmarks.programs import PROGRAMS

FORMS = {
    "mapreduce": tff.backends.mapreduce.get_map_reduce_form_for_computation,
    "broadcast": tff.backends.mapreduce.get_broadcast_form_for_computation,
    "distribute-aggregate": (tff.backends.mapreduce.get_distribute_aggregate_form_for_computation),
}


class Side:
    """Measurements of the peer; every method returns seconds."""

    def __init__(self) -> None:
        self._program: Any = None
        self._round: Any = None
        self._state: Any = None

    def trace(self, kind: str, size: int) -> float:
        """Time tracing a program, which the other methods then use."""
        return seconds(lambda: self._keep(PROGRAMS[kind](tff, size)))

    def load(self, path: str) -> float:
        """Time reading a serialized program, which the other methods then use, and all its
        nodes."""
        return seconds(lambda: self._keep(load(pathlib.Path(path))).to_building_block())

    def compile(self, form: str) -> float:
        """Time compiling the program to a form."""
        return seconds(lambda: FORMS[form](self._program))

    def show(self) -> float:
        """Time printing the program."""
        block = self._program.to_building_block()
        return seconds(lambda: block.compact_representation())

    def write(self) -> float:
        """Time serializing the program."""
        block = self._program.to_building_block()
        return seconds(lambda: block.proto.SerializeToString())

    def prepare_round(self) -> float:
        """Time tracing federated averaging and making the runtime."""
        tff.backends.native.set_sync_local_cpp_execution_context()
        return seconds(self._prepare_round)

    def round(self, clients: int) -> float:
        """Time one round of federated averaging from the first weights."""
        data = [
            tf.data.Dataset.from_tensor_slices(collections.OrderedDict(x=x, y=y))
            for x, y in averaging.client_data(clients)
        ]
        return seconds(lambda: self._round(self._state, data))

    def _prepare_round(self) -> None:
        self._round = averaging.build(tff)
        weights = averaging.first_weights()
        self._state = collections.OrderedDict(zip(averaging.NAMES, weights, strict=True))
        self.round(1)

    def _keep(self, program: Any) -> Any:
        self._program = program
        return program


def load(path: pathlib.Path) -> Any:
    """Return the computation in a file."""
    message = computation_pb2.Computation.FromString(path.read_bytes())
    return computation_impl.ConcreteComputation(
        computation_proto=message, context_stack=context_stack_impl.context_stack
    )
