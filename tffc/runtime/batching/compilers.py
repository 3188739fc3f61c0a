"""What compiles and runs kernels: PJRT, by way of JAX, or TensorFlow's XLA.

This is the one place where that is chosen.
"""

from __future__ import annotations

import importlib.util
from typing import Protocol

from tffc.backends.forms.steps import ClientGraphs
from tffc.runtime.batching.kernels import Kernel, Key, Mode
from tffc.support.errors import ExecutionError, LanguageValueError

AUTO, PJRT, TENSORFLOW = "auto", "pjrt", "tensorflow"
COMPILERS = (AUTO, PJRT, TENSORFLOW)


class Compiler(Protocol):
    """Compiles kernels."""

    name: str

    has_rests: bool
    """Whether one kernel computes clients whose last batches differ in size."""

    def devices(self) -> list[str]:
        """Return the names of all devices, the preferred ones first."""
        ...

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """Return a kernel, which need not be compiled yet.

        Raises:
          CannotBatchError: the graphs cannot be compiled for batches.
        """
        ...


class Pjrt:
    """See `Compiler`."""

    name = PJRT
    has_rests = True

    def devices(self) -> list[str]:
        """See `Compiler`."""
        from tffc.runtime.frameworks.jax.devices import local_devices

        return [*local_devices()]

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """See `Compiler`."""
        from tffc.runtime.batching.pjrt_kernels import PjrtKernel

        return PjrtKernel(graphs, mode, key, size, device)


class TensorFlowXla:
    """See `Compiler`."""

    name = TENSORFLOW
    has_rests = False

    def devices(self) -> list[str]:
        """See `Compiler`."""
        from tffc.runtime.frameworks.tensorflow.load import all_devices

        return sorted(all_devices(), key=lambda name: not name.startswith("GPU"))

    def kernel(self, graphs: ClientGraphs, mode: Mode, key: Key, size: int, device: str) -> Kernel:
        """See `Compiler`."""
        from tffc.runtime.batching.tensorflow_kernels import TensorFlowKernel

        return TensorFlowKernel(graphs, mode, key, size, device)


def preferred() -> str:
    """Return the name of the compiler that is used unless another one is named."""
    return PJRT if importlib.util.find_spec("jax") is not None else TENSORFLOW


def compiler_of(name: str) -> Compiler:
    """Return the compiler of a name; `auto` is the preferred one.

    Raises:
      LanguageValueError: there is none of this name.
    """
    if name not in COMPILERS:
        raise LanguageValueError(
            "E706", f"there is no compiler {name!r}", help=f"name one of {', '.join(COMPILERS)}"
        )
    if name == AUTO:
        name = preferred()
    return Pjrt() if name == PJRT else TensorFlowXla()


def check_device(compiler: Compiler, name: str) -> None:
    """Check that a compiler has a device, such as `GPU:0`.

    Raises:
      ExecutionError: it does not have it, or its framework is not installed.
    """
    names = compiler.devices()
    if name not in names:
        raise ExecutionError(
            "E736",
            f"{'TensorFlow' if compiler.name == TENSORFLOW else 'JAX'} has no device {name}",
            notes=(f"it has {', '.join(names)}",),
            help="name one of these, or leave the choice to it",
        )
