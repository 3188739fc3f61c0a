"""Late loading of JAX, and the exchange of XLA modules with it.

JAX's public API covers only modules that JAX traced itself.  Its `Lowered.compiler_ir("hlo")` drops
the tuple around a single result, which the wire format requires, and keeps source locations; and
nothing public runs an HloModuleProto.  This module therefore uses internals of jaxlib 0.10; in tffc
only `lowering/modules/stablehlo.py` does so too.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tffc.runtime.frameworks.environment import prepare_environment
from tffc.support.errors import ExecutionError, MissingExtraError, Span
from tffc.support.extras import installation


def load_jax() -> Any:
    """Return the module `jax`.

    Raises:
      MissingExtraError: it is not installed.
    """
    prepare_environment()
    try:
        return importlib.import_module("jax")
    except ImportError as error:
        raise MissingExtraError(
            "E701",
            "a JAX computation needs JAX, which cannot be imported",
            notes=(str(error),),
            help=installation("jax"),
        ) from None


@contextlib.contextmanager
def _internals(jax: Any) -> Generator[Any]:
    """Yield the part of jaxlib that imports, exports and compiles modules.

    Raises:
      ExecutionError: the installed release has other internals.
    """
    try:
        yield importlib.import_module("jaxlib._jax")
    except (AttributeError, ImportError, TypeError) as error:
        raise ExecutionError(
            "E701",
            f"JAX {jax.__version__} does not handle XLA modules as tffc asks it to",
            notes=(str(error),),
            help=f"install the release that tffc was made for, {installation('jax')}",
        ) from None


class OutsideCall(NamedTuple):
    """A call of a function outside of a module, and the places in Python that led to it, the
    innermost first."""

    target: str
    places: tuple[Span, ...]


PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?:(\d+):|:)(\d+))?')
"""A place in a file, as MLIR writes it: line and column, and those at which it ends."""


def outside_calls(lowered: Any) -> Iterator[OutsideCall]:
    """Yield the calls of functions outside of a module that JAX has lowered."""
    with _internals(load_jax()):
        pending = [lowered.compiler_ir("stablehlo").operation]
        while pending:
            operation = pending.pop()
            if operation.name.endswith("custom_call"):
                target = operation.attributes["call_target_name"].value
                yield OutsideCall(target, tuple(_places(str(operation.location))))
            blocks = [block for region in operation.regions for block in region.blocks]
            inner = [operation.operation for block in blocks for operation in block.operations]
            pending.extend(reversed(inner))


def _places(location: str) -> Iterator[Span]:
    for file, line, column, end_line, end_column in PLACE.findall(location):
        path = re.sub(r"\\(.)", r"\1", file)
        if end_column:
            ends = int(end_line or line), int(end_column)
            yield Span(path, int(line), int(column), *ends)
        else:
            yield Span(path, int(line), int(column))


def hlo_of(stablehlo: str) -> bytes:
    """Convert the text of a StableHLO module to a serialized HloModuleProto whose root is a
    tuple."""
    with _internals(load_jax()) as jaxlib:
        computation = jaxlib.mlir.mlir_module_to_xla_computation(
            stablehlo, use_tuple_args=False, return_tuple=True
        )
        return computation.as_serialized_hlo_module_proto()


STABLEHLO = ("1.0.0", "1.8.0")
"""The StableHLO versions to write modules in; the first one that can express a module is used.
Every release of TensorFlow that tffc works with reads them."""


def portable_artifact(stablehlo: str) -> bytes:
    """Convert the text of a StableHLO module to a portable artifact, whose bytes are reproducible.

    Returns no bytes if no version in `STABLEHLO` can express the module.
    """
    with _internals(load_jax()) as jaxlib:
        for version in STABLEHLO:
            try:
                return jaxlib.mlir.serialize_portable_artifact(stablehlo, version)
            except (RuntimeError, ValueError):
                continue
    return b""


def _artifact_as_module(jaxlib: Any, stablehlo: bytes) -> Any:
    """Return the module of MLIR in a portable artifact."""
    mlir = importlib.import_module("jaxlib.mlir.ir")
    dialect = importlib.import_module("jaxlib.mlir.dialects.stablehlo")
    with mlir.Context() as context:
        dialect.register_dialect(context)
        try:
            return jaxlib.mlir.deserialize_portable_artifact(stablehlo)
        except mlir.MLIRError as error:
            raise ValueError(str(error)) from None


@contextlib.contextmanager
def bindings() -> Generator[Callable[[bytes], Any]]:
    """Yield a function that returns the module of MLIR in a portable artifact, and lets jaxlib's
    bindings read it.

    The function raises a ValueError if the bytes are none.
    """
    with _internals(load_jax()) as jaxlib:
        yield lambda artifact: _artifact_as_module(jaxlib, artifact)


class LoadedModule:
    """A module, compiled for a CPU of this machine: a portable artifact of StableHLO, or a
    serialized HloModuleProto where there is none.

    A faulty module or argument raises JAX's own RuntimeError or ValueError.
    """

    def __init__(self, hlo_module: bytes, stablehlo: bytes) -> None:
        self._jax = load_jax()
        with _internals(self._jax) as jaxlib:
            self._device = self._jax.local_devices(backend="cpu")[0]
            module = (
                _artifact_as_module(jaxlib, stablehlo)
                if stablehlo
                else jaxlib.mlir.hlo_to_stablehlo(hlo_module)
            )
            self._executable = self._device.client.compile_and_load(
                module, jaxlib.DeviceList((self._device,)), jaxlib.CompileOptions()
            )

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arrays in the tuple that the module returns for these arrays."""
        # Outside of this mode JAX narrows 64-bit arrays.
        with self._jax.enable_x64(True):
            arrays = [self._jax.device_put(argument, self._device) for argument in arguments]
            with _internals(self._jax):
                results = self._executable.execute_sharded(arrays)
                outputs = results.disassemble_into_single_device_arrays()
            return [np.asarray(shards[0]) for shards in outputs]
