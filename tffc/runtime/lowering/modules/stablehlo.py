"""StableHLO modules as plain data, read from portable artifacts.

Only here and in `frameworks/jax/hlo.py` are the bindings of jaxlib used, which are not part of
JAX's public API.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tffc.runtime.frameworks.jax.hlo import bindings, load_jax

MOST_NESTED = 40
"""The most regions that may be nested; following each uses Python's own stack."""


class ArrayType(NamedTuple):
    """What an array of a module is: of a known shape."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """Operations in order.  Values are numbers, which no other value in the function has.

    `constants` has the constants of the whole function, which are not among the operations.
    """

    parameters: tuple[int, ...]
    types: tuple[ArrayType, ...]
    operations: tuple[ModuleOperation, ...]
    returned: tuple[int, ...]
    constants: Mapping[int, np.ndarray]

    def source(self, value: int) -> ModuleOperation | None:
        """Return the operation that computes a value, or None if it is not of this region."""
        return next((each for each in self.operations if value in each.results), None)


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleOperation:
    """An operation, such as `stablehlo.add`.

    Attributes are integers, texts, arrays, sequences and mappings of these.  One that has its
    default value may be left out.
    """

    name: str
    attributes: Mapping[str, Any]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[ArrayType, ...]
    regions: tuple[Region, ...]


def functions_of(artifact: bytes) -> dict[str, Region]:
    """Return the functions in a portable artifact by name; `main` is what a call computes.

    Raises:
      ValueError: it is no artifact, or has types other than arrays of known shape.
    """
    with bindings() as read:
        module = read(artifact)  # Its operations are gone when it is.
        operations = [each.operation for each in module.body.operations]
        return {
            each.attributes["sym_name"].value: _FunctionReader().region(each.regions[0])
            for each in operations
            if each.name == "func.func"
        }


class _FunctionReader:
    """Reads a function."""

    def __init__(self) -> None:
        self._ir = importlib.import_module("jaxlib.mlir.ir")
        dialect = importlib.import_module("jaxlib.mlir.dialects.stablehlo")
        kinds = [kind for kind in vars(dialect).values() if isinstance(kind, type)]
        self._kinds: list[Any] = [kind for kind in kinds if issubclass(kind, self._ir.Attribute)]
        self._numbers: dict[Any, int] = {}
        self._constants: dict[int, np.ndarray] = {}
        self._depth = 0

    def region(self, region: Any) -> Region:
        """Return a region as data."""
        if self._depth == MOST_NESTED:
            raise ValueError(f"more than {MOST_NESTED} nested regions")
        self._depth += 1
        (block,) = region.blocks
        parameters = tuple(self._number(value) for value in block.arguments)
        types = tuple(self._type(value.type) for value in block.arguments)
        *operations, last = (operation.operation for operation in block.operations)
        body = tuple(self._operations(operations))
        self._depth -= 1
        return Region(parameters, types, body, self._operands(last), self._constants)

    def _operations(self, operations: Iterable[Any]) -> Iterator[ModuleOperation]:
        for operation in operations:
            types = tuple(self._type(value.type) for value in operation.results)
            results = tuple(self._number(value) for value in operation.results)
            if operation.name == "stablehlo.constant":
                self._constants[results[0]] = _constant(operation, *types[0])
                continue
            names = operation.attributes
            attributes = {name: self._plain(operation.attributes[name]) for name in names}
            regions = tuple(self.region(region) for region in operation.regions)
            operands = self._operands(operation)
            yield ModuleOperation(operation.name, attributes, operands, results, types, regions)

    def _operands(self, operation: Any) -> tuple[int, ...]:
        return tuple(self._numbers[value] for value in operation.operands)

    def _number(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _type(self, kind: Any) -> ArrayType:
        if not isinstance(kind, self._ir.RankedTensorType) or not kind.has_static_shape:
            raise ValueError(f"a value of type {kind}")
        return ArrayType(tuple(kind.shape), _dtype(str(kind.element_type)))

    def _plain(self, attribute: Any) -> Any:
        ir = self._ir
        if isinstance(attribute, ir.DenseElementsAttr):
            return np.array(attribute)
        if isinstance(attribute, ir.ArrayAttr):
            return tuple(map(self._plain, attribute))
        if isinstance(attribute, ir.DictAttr):
            return {each.name: self._plain(each.attr) for each in attribute}
        if hasattr(attribute, "value"):
            return attribute.value
        if hasattr(attribute, "__iter__"):
            return tuple(attribute)
        # The bindings do not say themselves of which kind an attribute of StableHLO is.
        kind = next((each for each in self._kinds if each.isinstance(attribute)), None)
        return str(attribute) if kind is None else _fields(kind, kind(attribute))


def _fields(kind: Any, attribute: Any) -> Any:
    """Return the fields of an attribute of StableHLO, or its value if that is all it has."""
    own: Mapping[str, Any] = kind.__dict__
    names = [name for name, field in own.items() if isinstance(field, property)]
    values = {name: _field(getattr(attribute, name)) for name in names}
    return values.get("value", values)


def _field(value: Any) -> Any:
    if isinstance(value, int | str):
        return value
    return tuple(value) if hasattr(value, "__iter__") else str(value)


def _constant(operation: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the array of a constant; it takes little memory if all elements are equal."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    if dtype.kind in "biuf":
        attribute = operation.attributes["value"]
        array = np.asarray(attribute)
        return np.broadcast_to(array.flat[0], shape) if attribute.is_splat else array.copy()
    # The bindings convert no complex numbers, and no numbers that NumPy does not have itself.
    text = re.search(r"dense<(.*)> : tensor<", operation.get_asm(), re.DOTALL)
    if text is None:
        raise ValueError("a constant that is not written out")
    elements = _elements(text[1], dtype)
    return np.broadcast_to(elements[0], shape) if elements.size == 1 else elements.reshape(shape)


def _elements(text: str, dtype: np.dtype) -> np.ndarray:
    """Return the elements that MLIR writes so: their bytes, or each number."""
    if text.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(text[3:-1]), dtype)
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    words = re.findall(r"[^\s,()\[\]]+", text)
    # A number that is not finite is written as its bits.
    parts = [
        np.array(int(word, 16), f"u{part.itemsize}").view(part)
        if word.startswith("0x")
        else np.array(float(word)).astype(part)
        for word in words
    ]
    return np.stack(parts).view(dtype)


def _dtype(name: str) -> np.dtype:
    """Return the type of elements that MLIR calls so.

    Raises:
      ValueError: tensors of programs have none such.
    """
    if name == "bf16":
        return np.dtype(load_jax().numpy.bfloat16)
    if name not in DTYPES:
        raise ValueError(f"elements of type {name}")
    return np.dtype(DTYPES[name])


DTYPES = {
    "i1": "bool",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""The types of elements in MLIR and in NumPy."""
