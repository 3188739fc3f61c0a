"""Kernels traced by JAX, and compiled and run by PJRT."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.backends.forms.steps import CannotBatchError, ClientGraphs
from tffc.graphs.resources import ResourceNode
from tffc.language.type_parts import leaves
from tffc.language.values.resources import array_of
from tffc.runtime.batching.choices import FULL
from tffc.runtime.batching.kernel_cache import digest_of, keep_kernel, load_kernel
from tffc.runtime.batching.kernels import (
    MOST_TOLD,
    OUT_OF_MEMORY,
    BatchedWork,
    Kernel,
    Key,
    Mode,
    OutOfMemoryError,
    RoundValues,
    array_type,
    merged_pairwise,
)
from tffc.runtime.frameworks.jax.devices import (
    Device,
    device_name,
    devices_of,
    fetch,
    put,
    send,
)
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.lowering.jax_tracer import JaxTracer
from tffc.runtime.lowering.retrace import Retrace
from tffc.runtime.lowering.sequences import Order
from tffc.runtime.lowering.tracer import Tensor
from tffc.support.guards import Array

Executable: TypeAlias = Callable[..., Sequence[Tensor]]
"""A function that is compiled for one device."""

PLATFORMS = ("cpu", "cuda")
"""What kernels are made for, on any machine."""

ONE_THREAD = {
    "xla_cpu_multi_thread_eigen": False,
    "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
}
"""Makes XLA compute a call in one thread of a processor, because other threads compute other
batches.  So sums do not depend on the number of cores."""

_compiling = threading.Lock()
"""One kernel is compiled at a time: XLA uses all cores for it, and measures on accelerators."""


class JaxWork(BatchedWork):
    """The work of a batch in JAX."""

    def function(self) -> Callable[..., list[Tensor]]:
        """Return the function of all arguments, which gives the results and whether all checks
        hold."""
        return self._vectorised if self.mode is Mode.VECTOR else self._looped

    def specs(self) -> list[Any]:
        """Return the types of the arguments as JAX takes them."""
        return [load_jax().ShapeDtypeStruct(*argument) for argument in self.signature()]

    def _looped(self, *tensors: Tensor) -> list[Tensor]:
        jax = load_jax()
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
        jax = load_jax()
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
        jax = load_jax()
        tracer = JaxTracer(selects=True)

        def merge(first: list[Tensor], second: list[Tensor], is_there: Tensor) -> list[Tensor]:
            both = Retrace(tracer, resources).run(self._merging, [*first, *second])
            pairs = zip(both, first, strict=True)
            return [jax.numpy.where(is_there, new, old) for new, old in pairs]

        def join(one: Tensor, other: Tensor) -> Tensor:
            return jax.numpy.concatenate([one, other])

        return merged_pairwise(accumulators, is_client, jax.vmap(merge), join)


def orders_of(graphs: ClientGraphs, key: Key) -> tuple[Order, ...]:
    """See `Compiler.orders`."""
    jax, work = load_jax(), JaxWork(graphs, Mode.LOOP, key, 1)
    with jax.enable_x64(True), refusing():
        jax.eval_shape(work.function(), *work.specs())
    return work.orders


@contextlib.contextmanager
def refusing() -> Generator[None]:
    """Refuse clients that JAX cannot trace: they can be computed one by one.

    Raises:
      CannotBatchError: the block raises anything.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  (clients can be computed one by one)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise CannotBatchError(reason[:MOST_TOLD]) from None


class PjrtKernel(Kernel):
    """See `Kernel`; several devices take batches in turn."""

    def _trace(self, graphs: ClientGraphs, device: str, precision: str) -> None:
        self._jax = load_jax()
        devices = devices_of(device)
        self._first, self.device = devices[0], device_name(devices[0])
        self._devices = itertools.cycle(devices)
        self._executables: dict[Device, Executable] = {}
        self._work = JaxWork(graphs, self.mode, self.key, self.size)
        self._precision = "highest" if precision == FULL else None
        parts = (graphs.take.payload, graphs.merge.payload, repr(self.signature()).encode())
        how = (self._jax.__version__, self.mode.name, repr(self.key), str(self.size), precision)
        self._digest = digest_of([*parts, *(text.encode() for text in how)])
        self._exported = self._stored() or self._export()

    def is_kept(self) -> bool:
        """See `Kernel`."""
        return self._stored() is not None

    def _stored(self) -> Any:
        """Return the function as an earlier run has kept it, or None if JAX cannot use that."""
        module = load_kernel(self._digest)
        if module is None:
            return None
        try:
            exported = self._jax.export.deserialize(bytearray(module))
            with self._jax.enable_x64(True):
                self._lowered(exported, self._first)
        except Exception:  # noqa: BLE001  (the function is traced again)
            return None
        return exported

    def _lowered(self, exported: Any, device: Device) -> Any:
        with self._jax.default_device(device):
            function = self._jax.jit(exported.call, keep_unused=True)
            return function.lower(*self._work.specs())

    def _export(self) -> Any:
        """Return the function, lowered for all platforms, and keep it."""
        jax = self._jax
        with jax.enable_x64(True), jax.default_matmul_precision(self._precision), refusing():
            function = jax.jit(self._work.function(), keep_unused=True)
            exported = jax.export.export(function, platforms=PLATFORMS)(*self._work.specs())
        keep_kernel(self._digest, bytes(exported.serialize()))
        return exported

    def prepare(self) -> None:
        """See `Kernel`."""
        self._compile(self._first)

    def _compile_for(self, batch: Sequence[Tensor]) -> bool:
        return self._compile(batch[0].device)

    def _compile(self, device: Device) -> bool:
        """Compile the function for a device, once; return whether it was not compiled before."""
        if device in self._executables:
            return False
        with _compiling, self._refusals():
            if device not in self._executables:
                begun = time.perf_counter()
                lowered = self._lowered(self._exported, device)
                options = ONE_THREAD if device.platform == "cpu" else None
                self._executables[device] = lowered.compile(compiler_options=options)
                self.usage.compiling += time.perf_counter() - begun
        return True

    def _run(self, values: RoundValues, batch: Sequence[Tensor]) -> tuple[Sequence[Array], int]:
        device = batch[0].device
        # Keys that nobody can know before, as for draws that are not in a batch.
        keys = [os.urandom(16 * self.size)] if self._draws else []
        with self._refusals():
            drawn = send([np.frombuffer(key, np.uint64).reshape(-1, 2) for key in keys], device)
            resources = [_resource(resource, device) for resource in self._resources]
            fixed, moved = self._sent(values, device)
            return fetch(self._executables[device](*fixed, *batch, *drawn, *resources)), moved

    def _sent(self, values: RoundValues, device: Device) -> tuple[list[Tensor], int]:
        """Return the values of a round as a device takes them, and how many bytes were sent to it
        for that, which is done once."""
        place = (self, device)
        with values.lock:
            if place in values.tensors:
                return values.tensors[place], 0
            tensors = values.tensors[place] = send(self._flattened(values), device)
            return tensors, sum(tensor.nbytes for tensor in tensors)

    @contextlib.contextmanager
    def _refusals(self) -> Generator[None]:
        """Raise what `Kernel` says for JAX's errors; numbers have 64 bits meanwhile."""
        try:
            with self._jax.enable_x64(True):
                yield
        except self._jax.errors.JaxRuntimeError as error:
            text = str(error).partition("\n")[0]
            if OUT_OF_MEMORY.search(text):
                raise OutOfMemoryError from None
            raise CannotBatchError(f"XLA cannot run it: {text[:MOST_TOLD]}") from None

    def _upload(self, arrays: Sequence[Array]) -> list[Tensor]:
        return put(arrays, next(self._devices))


@functools.lru_cache(maxsize=256)
def _resource(resource: ResourceNode, device: Device) -> Tensor:
    """Return a resource as a tensor on a device, where it stays."""
    return put([array_of(resource)], device)[0]
