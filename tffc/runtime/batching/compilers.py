"""What compiles and runs kernels: PJRT, by way of JAX, or TensorFlow's XLA.

This is the one place where that is chosen.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import ClassVar, NamedTuple, Protocol

from tffc.backends.forms.steps import ClientGraphs
from tffc.runtime.batching.choices import AUTO, COMPILERS, FULL, PJRT, PRECISIONS, TENSORFLOW
from tffc.runtime.batching.kernels import Kernel, Key, Mode
from tffc.runtime.lowering.sequences import Order
from tffc.support.errors import ExecutionError, LanguageValueError, MissingExtraError
from tffc.support.extras import installation

UNKNOWN = 2**32
"""The memory of an accelerator that does not tell how much it has; if that is too much, batches are
made smaller."""


class Framework(NamedTuple):
    """What a compiler needs: the import name of a package, its title, and how to install it."""

    package: str
    title: str
    command: str


FRAMEWORKS = {
    PJRT: Framework("jax", "JAX", installation("xla")),
    TENSORFLOW: Framework("tensorflow", "TensorFlow", "pip install tensorflow"),
}
"""What each compiler needs."""


class Compiler(Protocol):
    """Compiles kernels of a precision."""

    name: ClassVar[str]

    has_rests: ClassVar[bool]
    """Whether one kernel computes clients whose last batches differ in size."""

    def devices(self) -> list[str]:
        """Return the names of all devices, the preferred ones first."""
        ...

    def memory(self, device: str) -> int:
        """Return how many bytes the batches of an accelerator may take: half of its memory, so that
        two runs fit; of the first one if none is named."""
        ...

    def orders(self, graphs: ClientGraphs, key: Key) -> tuple[Order, ...]:
        """Return the orders in which the work of clients like those of a key reads sequences.

        Raises:
          CannotBatchError: the graphs cannot be compiled for batches.
        """
        ...

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """Return a kernel, which need not be compiled yet.

        Raises:
          CannotBatchError: the graphs cannot be compiled for batches.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Pjrt:
    """See `Compiler`."""

    precision: str
    name: ClassVar[str] = PJRT
    has_rests: ClassVar[bool] = True

    def devices(self) -> list[str]:
        """See `Compiler`."""
        from tffc.runtime.frameworks.jax.devices import local_devices

        return [*local_devices()]

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """See `Compiler`."""
        from tffc.runtime.batching.pjrt_kernels import PjrtKernel

        return PjrtKernel(graphs, mode, key, size, device, self.precision)

    def memory(self, device: str) -> int:
        """See `Compiler`."""
        from tffc.runtime.frameworks.jax.devices import memory_of

        return (memory_of(device) or UNKNOWN) // 2

    def orders(self, graphs: ClientGraphs, key: Key) -> tuple[Order, ...]:
        """See `Compiler`."""
        from tffc.runtime.batching.pjrt_kernels import orders_of

        return orders_of(graphs, key)


@dataclasses.dataclass(frozen=True, slots=True)
class TensorFlowXla:
    """See `Compiler`."""

    precision: str
    name: ClassVar[str] = TENSORFLOW
    has_rests: ClassVar[bool] = False

    def devices(self) -> list[str]:
        """See `Compiler`."""
        from tffc.runtime.frameworks.tensorflow.load import all_devices

        return sorted(all_devices(), key=lambda name: not name.startswith("GPU"))

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """See `Compiler`."""
        from tffc.runtime.batching.tensorflow_kernels import TensorFlowKernel

        return TensorFlowKernel(graphs, mode, key, size, device, self.precision)

    def memory(self, device: str) -> int:
        """See `Compiler`; TensorFlow does not tell it."""
        return UNKNOWN // 2

    def orders(self, graphs: ClientGraphs, key: Key) -> tuple[Order, ...]:
        """See `Compiler`."""
        return self.kernel(graphs, Mode.LOOP, key, 1, "").orders


def preferred() -> str:
    """Return the name of the compiler that is used unless another one is named."""
    return PJRT if importlib.util.find_spec(FRAMEWORKS[PJRT].package) else TENSORFLOW


def compiler_of(name: str, precision: str = FULL) -> Compiler:
    """Return the compiler of a name; `auto` is the preferred one.

    Raises:
      LanguageValueError: there is no such compiler, or no such precision.
    """
    for value, values, noun in (
        (name, COMPILERS, "compiler"),
        (precision, PRECISIONS, "precision"),
    ):
        if value not in values:
            choices = " or ".join(map(repr, values))
            raise LanguageValueError(
                "E706", f"there is no {noun} {value!r}", help=f"give {choices}"
            )
    if name == AUTO:
        return compiler_of(preferred(), precision)
    return Pjrt(precision) if name == PJRT else TensorFlowXla(precision)


def chosen_compiler(name: str, precision: str, device: str) -> Compiler:
    """Return the compiler of a name, which must be usable if it was named, and have a device.

    Raises:
      LanguageValueError: there is no such compiler, or no such precision.
      MissingExtraError: its framework is not installed.
      TffcError: its framework cannot be imported, or does not have the device.
    """
    compiler = compiler_of(name, precision)
    if name != AUTO:
        _check_installed(compiler)
    if device:
        _check_device(compiler, device)
    return compiler


def _check_installed(compiler: Compiler) -> None:
    package, title, command = FRAMEWORKS[compiler.name]
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(
            "E701",
            f"{title} is not installed, and the compiler {compiler.name!r} needs it",
            help=f"{command}, or leave the choice of a compiler to tffc",
        )
    compiler.devices()  # imports it


def _check_device(compiler: Compiler, name: str) -> None:
    """Check that a compiler has a device, such as `GPU:0`.

    Raises:
      ExecutionError: it does not have it, or its framework is not installed.
    """
    names = compiler.devices()
    if name not in names:
        raise ExecutionError(
            "E736",
            f"{FRAMEWORKS[compiler.name].title} has no device {name}",
            notes=(f"it has {', '.join(names)}",),
            help="name one of these, or leave the choice to it",
        )
