"""The classes of computations, made as programs of `federated_language` make them.

Their instances are tffc's own computations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tffc.frontend import computation
from tffc.frontend.computation import Computation
from tffc.language.containers.struct import Struct
from tffc.language.types import FunctionType, StructType, Type
from tffc.runtime.user_code.source import entry_point


class _Concrete(type):
    """The metaclass of `ConcreteComputation`, whose instances are computations."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Computation)

    @entry_point
    def __call__(
        cls,
        *,
        computation_proto: Any,
        context_stack: object,
        annotated_type: FunctionType | None = None,
    ) -> Computation:
        own = Computation.from_proto(computation_proto)
        return own if annotated_type is None else Computation.with_type(own, annotated_type)


class ConcreteComputation(metaclass=_Concrete):
    """A computation that has a program."""

    from_building_block = Computation.from_building_block
    from_proto = Computation.from_proto


class PolymorphicComputation(computation.PolymorphicComputation):
    """A computation that a function makes for each type of its argument."""

    @entry_point
    def __init__(
        self,
        concrete_function_factory: Callable[[Type, bool | None], Computation],
        infer_type_fn: Callable[[object], Type],
    ) -> None:
        signature = inspect.Signature(
            [inspect.Parameter("arg", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        )
        super().__init__(concrete_function_factory, signature, concrete_function_factory)
        self._infer_type = infer_type_fn

    @entry_point
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        arguments = Struct([*((None, arg) for arg in args), *kwargs.items()])
        types = [(name, self._infer_type(value)) for name, value in arguments.items()]
        return self.specialize(StructType(types), splat=True)(arguments)
