"""The classes of computations, made as programs of `federated_language` make them.

Their instances are tffc's own computations.
"""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from tffc.frontend import computation
from tffc.frontend import context as contexts
from tffc.frontend.computation import Computation
from tffc.frontend.execution import ContextStack
from tffc.language.containers.struct import Struct
from tffc.language.nodes import Node
from tffc.language.types import FunctionType, StructType, Type, to_type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError
from tffc.tff.federated_language.type_messages import read_type


class _Standing(abc.ABCMeta):
    """The metaclass of classes that also stand for those of tffc that they derive from."""

    def __instancecheck__(cls, instance: object) -> bool:
        stands_for = cls.__bases__[0] if cls.__module__ == __name__ else cls
        return abc.ABCMeta.__instancecheck__(stands_for, instance)


class ConcreteComputation(Computation, metaclass=_Standing):
    """A computation that has a program, made of its message, which is read when it is used."""

    @entry_point
    def __init__(
        self,
        *,
        computation_proto: Any,
        context_stack: ContextStack,
        annotated_type: FunctionType | None = None,
    ) -> None:
        type_signature = read_type(computation_proto.type)
        if not isinstance(type_signature, FunctionType):
            raise LanguageTypeError(
                "E413",
                f"a computation is a function, but this is of type `{type_signature}`",
                help=f"make it a function without parameters, of type `( -> {type_signature})`",
            )
        if annotated_type is not None:
            type_signature.check_assignable_from(annotated_type)
            type_signature = annotated_type
        super().__init__(cast("Node", None), type_signature, allow_effects=frozenset[str]())
        del self._node  # it is read when it is asked for
        self._message = computation_proto
        self._context_stack = context_stack

    @functools.cached_property
    def _node(self) -> Node:  # type: ignore[override]  # see __init__
        return Computation.from_proto(self._message).node

    @property
    def context_stack(self) -> ContextStack:
        """The contexts that run the computation."""
        return self._context_stack

    def to_proto(self) -> Any:
        """Return the message."""
        return self._message

    @classmethod
    def from_building_block(cls, node: Node) -> Computation:
        """Return the computation of a closed node that is a function."""
        return Computation.from_building_block(node)

    def invoke(self, argument: object) -> Any:
        """Call the computation with its one argument, or None, in the current context."""
        if contexts.current() is not None:
            return super().invoke(argument)
        self.check_effects()
        return self._context_stack.current.invoke(self, argument)

    def check_effects(self) -> None:
        """Check the effects as other computations do; a message of a type alone has none."""
        if self._message.WhichOneof("computation") is not None:
            super().check_effects()

    def to_compiled_building_block(self) -> Node:
        """Return the program as a node."""
        return self.to_building_block()


class FactoryComputation(computation.PolymorphicComputation, metaclass=_Standing):
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
        self._factory = concrete_function_factory
        self._infer_type = infer_type_fn
        self._concrete: dict[tuple[Type, bool | None], Computation] = {}

    @entry_point
    def fn_for_argument_type(self, arg_type: object, unpack: bool | None = None) -> Computation:
        """Return the computation for arguments of a type, which the factory makes once.

        It gets `unpack` as it is.
        """
        key = (to_type(arg_type), unpack)
        if key not in self._concrete:
            self._concrete[key] = self._factory(*key)
        return self._concrete[key]

    @entry_point
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        arguments = Struct([*((None, arg) for arg in args), *kwargs.items()])
        types = [(name, self._infer_type(value)) for name, value in arguments.items()]
        return self.fn_for_argument_type(StructType(types), unpack=True)(arguments)


PolymorphicComputation = FactoryComputation
"""The name of the class of computations without a parameter type."""
