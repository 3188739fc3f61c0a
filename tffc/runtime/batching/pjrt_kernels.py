"""Kernels traced by JAX, and compiled and run by PJRT."""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs, Value
from tffc.graphs.resources import ResourceNode
from tffc.language.type_parts import leaves
from tffc.language.values.resources import array_of
from tffc.runtime.batching.kernels import (
    MOST_TOLD,
    BatchResult,
    Kernel,
    Key,
    Mode,
    array_type,
    merged_pairwise,
)
from tffc.runtime.frameworks.jax.devices import Device, devices_of, put
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.lowering.jax_tracer import JaxTracer
from tffc.runtime.lowering.retrace import Retrace
from tffc.runtime.lowering.tracer import Tensor
from tffc.support.guards import Array

Executable: TypeAlias = Callable[..., Sequence[Tensor]]
"""A function that is compiled for one device."""

_compiling = threading.Lock()
"""One kernel is compiled at a time: XLA uses all cores for it, and measures on accelerators."""


class PjrtKernel(Kernel):
    """See `Kernel`; `device` is a name such as `GPU:0`, or empty for all preferred ones, which take
    batches in turn."""

    def __init__(
        self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str = ""
    ) -> None:
        super().__init__(graphs, mode, key, size)
        self._jax = load_jax()
        self._devices = itertools.cycle(devices_of(device))
        self._executables: dict[Device, Executable] = {}
        compute = self._vectorised if mode is Mode.VECTOR else self._looped
        with self._jax.enable_x64(True):
            specs = [self._jax.ShapeDtypeStruct(*argument) for argument in self._signature()]
            try:
                self._traced = self._jax.jit(compute).trace(*specs)
            except Exception as error:  # noqa: BLE001  (clients can be computed one by one)
                raise CannotBatchError(_reason(error)) from None

    def compute(
        self, zero: Value, sent: Value, batch: Sequence[Tensor], clients: int
    ) -> BatchResult | None:
        """See `Kernel`."""
        jax, device = self._jax, batch[0].device
        try:
            with jax.enable_x64(True):
                executable, compiles = self._compiled(device)
                fixed = put(self._flattened(zero, sent), device)
                # Keys that nobody can know before, as for draws that are not in a batch.
                keys = np.frombuffer(os.urandom(16 * self.size), np.uint64).reshape(self.size, 2)
                drawn = put([keys], device) if self._draws else []
                resources = [_resource(resource, device) for resource in self._resources]
                *results, holds = jax.device_get(executable(*fixed, *batch, *drawn, *resources))
        except jax.errors.JaxRuntimeError as error:
            text = str(error).partition("\n")[0]
            raise CannotBatchError(f"XLA cannot run it: {text[:MOST_TOLD]}") from None
        return self._outcome(results, clients, compiles) if holds else None

    def _compiled(self, device: Device) -> tuple[Executable, bool]:
        """Return the function for a device, and whether it has been compiled for this call."""
        if device in self._executables:
            return self._executables[device], False
        with _compiling:
            if device in self._executables:
                return self._executables[device], False
            with self._jax.default_device(device):
                self._executables[device] = self._traced.lower().compile()
            return self._executables[device], True

    def _upload(self, arrays: Sequence[Array]) -> list[Tensor]:
        return put(arrays, next(self._devices))

    def _looped(self, *tensors: Tensor) -> list[Tensor]:
        jax = self._jax
        zero, sent, clients, batch, keys, resources = self._arguments(tensors)
        tracer = JaxTracer()
        apart = [
            jax.numpy.zeros((self.size, *shape), dtype)
            for shape, dtype in map(array_type, leaves(self._types[3]))
        ]

        def step(index: Tensor, carried: Any) -> Any:
            holds, apart, accumulator = carried
            retrace = Retrace(tracer, resources, key=None if keys is None else keys[index])
            results = self._take(retrace, accumulator, [column[index] for column in batch], sent)
            own = zip(apart, results[len(zero) :], strict=True)
            apart = [values.at[index].set(value) for values, value in own]
            added = [jax.numpy.asarray(result) for result in results[: len(zero)]]
            return jax.numpy.asarray(tracer.both([holds, retrace.holds()])), apart, added

        start = (jax.numpy.asarray(True), apart, zero)
        holds, apart, total = jax.lax.fori_loop(0, clients, step, start)
        return [*total, *apart, holds]

    def _vectorised(self, *tensors: Tensor) -> list[Tensor]:
        jax = self._jax
        zero, sent, clients, batch, keys, resources = self._arguments(tensors)
        tracer = JaxTracer(selects=True)

        def one(client: list[Tensor], key: Tensor) -> list[Tensor]:
            retrace = Retrace(tracer, resources, key=key)
            results = self._take(retrace, zero, client, sent)
            return [jax.numpy.asarray(result) for result in (*results, retrace.holds())]

        *outputs, holds = jax.vmap(one)(batch, keys)
        is_client = jax.numpy.arange(self.size) < clients
        total = self._merged(outputs[: len(zero)], is_client, resources)
        return [*total, *outputs[len(zero) :], (holds | ~is_client).all()]

    def _merged(
        self,
        accumulators: list[Tensor],
        is_client: Tensor,
        resources: dict[ResourceNode, Tensor],
    ) -> list[Tensor]:
        """Return the accumulator of all clients, by merging neighbours pairwise."""
        jax = self._jax
        tracer = JaxTracer(selects=True)

        def merge(first: list[Tensor], second: list[Tensor], is_there: Tensor) -> list[Tensor]:
            both = Retrace(tracer, resources).run(self._merging, [*first, *second])
            pairs = zip(both, first, strict=True)
            return [jax.numpy.where(is_there, new, old) for new, old in pairs]

        def join(one: Tensor, other: Tensor) -> Tensor:
            return jax.numpy.concatenate([one, other])

        return merged_pairwise(accumulators, is_client, jax.vmap(merge), join)


@functools.lru_cache(maxsize=256)
def _resource(resource: ResourceNode, device: Device) -> Tensor:
    """Return a resource as a tensor on a device, where it stays."""
    return put([array_of(resource)], device)[0]


def _reason(error: Exception) -> str:
    """Return why tracing failed, without the traces that JAX adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:MOST_TOLD]
