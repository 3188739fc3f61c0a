"""Running XLA sections through JAX.

JAX has no public way to run a module that it did not trace itself.  What is used here is that of
jaxlib 0.10, and nothing else in tffc uses it.
"""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

import numpy as np

from tffc.errors import ExecutionError
from tffc.execution.values import flatten, unflatten
from tffc.ir.nodes import Compiled
from tffc.ir.types import (
    FunctionType,
    StructType,
    TensorType,
    Type,
    leaves,
    shape_is_assignable,
)
from tffc.ir.wire import SectionBinding, StructBinding, TensorBinding, read_xla


class XlaRunner:
    """A loaded XLA section."""

    def __init__(self, section: Compiled) -> None:
        assert isinstance(section.type, FunctionType)
        self._type = section.type
        content = read_xla(section.payload)
        self._parameter = _places(content.parameter, section.type.parameter)
        self._result = _places(content.result, section.type.result)
        self._jax = _load_jax()
        try:
            jaxlib = importlib.import_module("jaxlib._jax")
            self._device = self._jax.local_devices(backend="cpu")[0]
            self._executable = self._device.client.compile_and_load(
                jaxlib.mlir.hlo_to_stablehlo(content.hlo_module),
                jaxlib.DeviceList((self._device,)),
                jaxlib.CompileOptions(),
            )
        except (AttributeError, ImportError, TypeError) as error:
            raise ExecutionError(
                "E751",
                f"JAX {self._jax.__version__} does not run XLA modules as tffc asks it to",
                notes=(str(error),),
                help="install the release that tffc was made for: pip install 'tffc[jax]'",
            ) from None
        except (RuntimeError, ValueError) as error:
            self._fail("E752", "XLA can not load the module of a section", error)

    def __call__(self, argument: Any) -> Any:
        parts = [] if self._type.parameter is None else flatten(argument, self._type.parameter)
        # Outside of this mode JAX would narrow arrays of 64 bits.
        with self._jax.enable_x64(True):
            arrays = [
                self._jax.device_put(part, self._device)
                for _, part in sorted(zip(self._parameter, parts, strict=True), key=_by_place)
            ]
            try:
                results = self._executable.execute_sharded(arrays)
                outputs = results.disassemble_into_single_device_arrays()
            except (RuntimeError, ValueError) as error:
                self._fail("E753", "XLA could not carry out a computation", error)
            tensors = [np.asarray(shards[0]) for shards in outputs]
        found = [
            _checked(tensors, place, type)
            for place, type in zip(self._result, leaves(self._type.result), strict=True)
        ]
        return unflatten(iter(found), self._type.result)

    def _fail(self, code: str, message: str, error: Exception) -> NoReturn:
        reason = str(error).partition("\n")[0]
        notes = (f"it is of type `{self._type}`",)
        raise ExecutionError(code, f"{message}: {reason}", notes=notes) from None


def _load_jax() -> Any:
    try:
        return importlib.import_module("jax")
    except ModuleNotFoundError:
        raise ExecutionError(
            "E750",
            "JAX is not installed, and this computation needs it",
            help="pip install 'tffc[jax]'",
        ) from None


def _by_place(pair: tuple[int, Any]) -> int:
    return pair[0]


def _places(binding: SectionBinding | None, type: Type | None) -> list[int]:
    """Where in the module the tensors of a parameter or result are, in the order of the type.

    Raises:
      ExecutionError: the binding is of another structure than the type.
    """
    found: list[int] = []
    stack = [(binding, type)] if binding is not None or type is not None else []
    while stack:
        match stack.pop():
            case (StructBinding(elements), StructType() as struct) if len(elements) == len(struct):
                stack.extend(zip(reversed(elements), reversed(struct.types), strict=True))
            case (TensorBinding(int() as place), TensorType()):
                found.append(place)
            case _:
                raise ExecutionError(
                    "E754", f"an XLA section is bound otherwise than its type `{type}` says"
                )
    return found


def _checked(tensors: list[Any], place: int, type: Type) -> Any:
    assert isinstance(type, TensorType)
    array = tensors[place] if 0 <= place < len(tensors) else None
    if (
        array is None
        or array.dtype != type.dtype.dtype
        or not shape_is_assignable(type.shape, array.shape)
    ):
        found = (
            "nothing"
            if array is None
            else f"a tensor of {array.dtype} of shape {list(array.shape)}"
        )
        raise ExecutionError(
            "E755", f"an XLA section gave {found} where its type promises `{type}`"
        )
    return array[()]
