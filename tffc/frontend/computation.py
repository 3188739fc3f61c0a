"""Computations, and the decorators that make them from Python functions.

A function with declared parameter types is traced at once and becomes a `Computation`.  One without
becomes a `PolymorphicComputation`, traced again for each type that it is used with.

    @federated_computation(T, U)        @federated_computation        federated_computation(f, T)
    def f(x, y): ...                    def f(x): ...

What a call does depends on where it happens: in a federated computation it is bound to a symbol, in
a TensorFlow computation its graph is imported, and elsewhere the computation is run.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeAlias, cast

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext, FederatedContext
from tffc.frontend.conversion import Convertible, check_scope, convert, infer_type
from tffc.frontend.definitions import definition_span, result_span
from tffc.frontend.execution import ContextStack, context_stack
from tffc.frontend.hints import described
from tffc.frontend.operators import FederatedTrace
from tffc.frontend.packing import pack
from tffc.frontend.signature import (
    call_arguments,
    function_name,
    is_splatted,
    parameter_type,
    signature_of,
)
from tffc.frontend.value import Value
from tffc.language.containers.struct import Struct
from tffc.language.nodes import Call, Compiled, Node, Reference
from tffc.language.notation import formatted
from tffc.language.notation.cell import notation_cell
from tffc.language.traverse import walk
from tffc.language.type_parts import check_placements, without_containers
from tffc.language.types import FunctionType, StructType, Type, to_type
from tffc.runtime.user_code.seeds import steady_trace
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import (
    ComputationReturnedNoneError,
    ContextError,
    LanguageTypeError,
    LanguageValueError,
    TffcError,
)


class Computation(Convertible):
    """A program: a function of at most one parameter, closed unless it was traced inside another.

    Two computations are equal if their nodes are: they print and compute the same.  A computation
    that was read from a file may be anybody's, so `allow_effects` are the kinds of effects that it
    may have when it is called.  It is None for a computation traced in this process.
    """

    def __init__(
        self,
        node: Node,
        type_signature: FunctionType,
        *,
        scope: FederatedContext | None = None,
        function: Callable[..., object] | None = None,
        allow_effects: frozenset[str] | None = None,
    ) -> None:
        self._node = node
        self.allow_effects = allow_effects
        self._is_checked = allow_effects is None
        self._type = type_signature
        self._scope = scope
        self._discount: Computation | None = None
        self.__doc__ = None
        if function is not None:
            self.__doc__ = getattr(function, "__doc__", None)
            self.__module__ = getattr(function, "__module__", self.__module__)
        self._function_name = (function and function_name(function)) or ""

    @classmethod
    def from_node(cls, node: Node, allow_effects: frozenset[str] | None = None) -> Computation:
        """Return the computation of a closed node that is a function; the class describes
        `allow_effects`.

        Raises:
          LanguageTypeError: the node is not a function, or its type has another placement than
            those of programs.
        """
        if not isinstance(node.type, FunctionType):
            raise LanguageTypeError(
                "E413",
                f"a computation is a function, but this is of type `{node.type}`",
                help=f"make it a function without parameters, of type `( -> {node.type})`",
            )
        check_placements(node.type)
        return Computation(node, node.type, allow_effects=allow_effects)

    @classmethod
    def from_building_block(cls, node: Node) -> Computation:
        """Return the computation of a closed node that is a function; TFF's name for `from_node`.

        Raises:
          LanguageTypeError: the node is not a function.
          WireError: a message in it is malformed.
        """
        from tffc.language import wire

        return cls.from_node(wire.opened(node))

    @classmethod
    def with_type(cls, value: Computation, type_signature: FunctionType) -> Computation:
        """Return the computation with other names and Python containers in its type.

        Raises:
          TypeNotAssignableError: the types differ in more than that.
        """
        value.type_signature.check_assignable_from(type_signature)
        return Computation(
            value.node, type_signature, scope=value._scope, allow_effects=value.allow_effects
        )

    def with_discount(self, discount: Computation) -> Computation:
        """Return the computation as one whose rounds may be buffered; see `tffc.buffered`."""
        decorated = copy.copy(self)
        decorated._discount = discount
        return decorated

    @property
    def name(self) -> str:
        """The name of the Python function that it was traced from; empty if there is none."""
        return self._function_name

    @property
    def discount(self) -> Computation | None:
        """The weight of a contribution by its age, if rounds may be buffered."""
        return self._discount

    @staticmethod
    def get_proto(computation: Computation) -> Any:
        """Return the computation as a `Computation` message; see `serialize_computation`."""
        from tffc.graphs.proto.computation import Computation as Message

        return Message.FromString(serialize_computation(computation))

    def to_proto(self) -> Any:
        """Return the computation as a `Computation` message; see `serialize_computation`."""
        return Computation.get_proto(self)

    @staticmethod
    def from_proto(computation_pb: Any) -> Computation:
        """Return the computation in a `Computation` message, of this or another package's class.

        Raises:
          LanguageTypeError: it is no message, or of something other than a function.
          WireError: the message is not well formed.
        """
        return computation_of_message(computation_pb)

    @property
    def context_stack(self) -> ContextStack:
        """The contexts that run the computation."""
        return context_stack

    @property
    def node(self) -> Node:
        """The program as a node, without Python containers in its types."""
        return self._node

    @property
    def type_signature(self) -> FunctionType:
        """The type of the function, with the Python containers that its author used."""
        return self._type

    def to_building_block(self) -> Node:
        """Return the program as a node, which then has TFF's names for all its parts."""
        importlib.import_module("tffc.tff.building_blocks")
        return self._node

    def as_value(self, parameter: Type | None) -> Value:
        self.check_effects()
        return Value(self._node, self._type, self._scope)

    @entry_point
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        return self.invoke(pack(self._type.parameter, args, kwargs))

    def invoke(self, argument: object) -> Any:
        """Call the computation with its one argument, or None if it takes none.

        Outside of traces the current context runs it; see `tffc.frontend.execution`.
        """
        self.check_effects()
        context = contexts.current()
        if isinstance(context, FederatedContext):
            return self._bind_call(argument, context)
        if context is not None:
            return self._import(argument, context)
        self.check_closed("run")
        return context_stack.current.invoke(self, argument)

    def check_effects(self) -> None:
        """Check that the computation has only allowed effects, unless it was traced in this
        process.

        Raises:
          ConsentError: it has others.
          GraphError: a compiled section of it is malformed.
          WireError: the message of one is malformed.
        """
        if self._is_checked:
            return
        from tffc.runtime.effects.consent import check_consent

        check_consent({"computation": self._node}, self.allow_effects or ())
        self._is_checked = True

    def check_closed(self, use: str) -> None:
        """Check that the computation uses no values of an enclosing trace; `use` names the
        attempted use."""
        if self._scope is not None:
            raise ContextError(
                "E431",
                f"the computation cannot be {use} by itself, for it uses values of the trace of "
                f"{self._scope.name!r}",
                help="make them arguments of the computation",
            )

    def _bind_call(self, argument: object, context: FederatedContext) -> Value:
        check_scope(self._scope, context)
        parameter = self._type.parameter
        operand = None
        if parameter is not None:
            operand = convert(argument, parameter, context, zipping=True).comp
        reference = context.bind(Call(self._node, operand))
        return Value(reference, self._type.result, context)

    def _import(self, argument: object, context: CompiledContext) -> Any:
        section = self._node
        if isinstance(section, Compiled) and section.kind == context.kind == "tensorflow":
            from tffc.frontend.tensorflow_call import import_section

            return import_section(section, self._type, argument)
        raise LanguageValueError(
            "E430",
            f"a computation of type `{self._type}` is called inside a {context.kind}.computation, "
            "but only TensorFlow computations can be called, and only by one another",
            help="call it in a federated computation and pass on what it gives",
        )

    def __eq__(self, other: object) -> bool:
        return self._node == other._node if isinstance(other, Computation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"<computation of type {self._type}>"

    def _repr_html_(self) -> str:
        return notation_cell("Computation", formatted(self._node), str(self._type))


Tracer: TypeAlias = Callable[[Callable[..., object], Type | None, bool], Computation]
"""Traces a function at one parameter type; a parameter that is splatted, the last argument, is
given as its elements."""


class PolymorphicComputation(Convertible):
    """A computation without a parameter type, traced once for each type that it is used with."""

    def __init__(
        self,
        function: Callable[..., object],
        signature: inspect.Signature,
        trace: Callable[[Type, bool], Computation],
    ) -> None:
        self._function = function
        self._signature = signature
        self._trace = trace
        self._traced: dict[tuple[Type, bool], Computation] = {}
        self.__doc__ = getattr(function, "__doc__", None)

    def specialize(self, parameter: Type, *, splat: bool = False) -> Computation:
        """Return the computation for parameters of type `parameter`."""
        key = (parameter, splat)
        if key not in self._traced:
            self._traced[key] = self._trace(*key)
        return self._traced[key]

    @entry_point
    def fn_for_argument_type(self, arg_type: object, unpack: bool | None = None) -> Computation:
        """Return the computation for arguments of a type; it is traced once for each type.

        `unpack` demands that the elements of the argument be passed one by one.
        """
        return self.specialize(_declared(arg_type), splat=bool(unpack))

    def as_value(self, parameter: Type | None) -> Value:
        if parameter is None:
            raise LanguageTypeError(
                "E414",
                f"the types of the parameters of {self._named()} are not known here",
                help="give them to its decorator",
                span=definition_span(self._function),
            )
        return self.specialize(parameter).as_value(parameter)

    @entry_point
    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        arguments = Struct([*((None, arg) for arg in args), *kwargs.items()])
        names = (*(None for _ in args), *kwargs)
        parameter = StructType.of(names, tuple(infer_type(value) for value in arguments))
        return self.specialize(parameter, splat=True).invoke(arguments)

    def _named(self) -> str:
        name = function_name(self._function)
        return f"the polymorphic computation {name!r}" if name else "this polymorphic computation"

    def __repr__(self) -> str:
        return f"<polymorphic computation {function_name(self._function)}{self._signature}>"


def trace_federated(
    function: Callable[..., object], parameter: Type | None, splatted: bool
) -> Computation:
    """Trace `function` by running it once on a placeholder for its argument."""
    outer = contexts.current()
    context = FederatedTrace(
        function_name(function) or "FEDERATED",
        outer if isinstance(outer, FederatedContext) else None,
    )
    plain, value = None, None
    if parameter is not None:
        plain = without_containers(parameter)
        value = Value(Reference(context.parameter_name, plain), parameter, context)
    args, kwargs = call_arguments(parameter, value, splatted)
    returned = contexts.run_within(context, function, *args, **kwargs)
    result = returned_value(function, returned, context)
    return Computation(
        context.close(plain, result.comp, definition_span(function)),
        FunctionType(parameter, result.type_signature),
        scope=context.captured,
        function=function,
    )


def returned_value(
    function: Callable[..., object], returned: object, context: FederatedContext
) -> Value:
    """Return what a traced function returned as a value.

    Raises:
      ComputationReturnedNoneError: it is None.
      LanguageTypeError: it is no value.
    """
    name = function_name(function) or "the traced callable"
    if returned is None:
        raise ComputationReturnedNoneError(
            "E415",
            f"{name!r} returned None, which is not a value of a program",
            help="return the result; a function without a return statement returns None",
            span=result_span(function),
        )
    try:
        return convert(returned, None, context)
    except TffcError as error:
        error.notes += (f"it was returned by {name!r}",)
        error.span = error.span or result_span(function)
        raise


def trace_tensorflow(
    function: Callable[..., object], parameter: Type | None, splatted: bool
) -> Computation:
    """Trace `function` by running it once on symbolic tensors, and keep the graph."""
    from tffc.frontend.tensorflow_capture import capture

    section, result = capture(function, parameter, splatted)
    return Computation(section, FunctionType(parameter, result), function=function)


def trace_jax(
    function: Callable[..., object], parameter: Type | None, splatted: bool
) -> Computation:
    """Trace `function` by running it once on abstract arrays, and keep JAX's XLA module."""
    from tffc.frontend.jax_capture import capture

    section, result = capture(function, parameter, splatted)
    return Computation(section, FunctionType(parameter, result), function=function)


def trace_torch(
    function: Callable[..., object], parameter: Type | None, splatted: bool
) -> Computation:
    """Trace `function` by running it once on tensors without values, and keep an XLA module."""
    from tffc.frontend.torch.capture import capture

    section, result = capture(function, parameter, splatted)
    return Computation(section, FunctionType(parameter, result), function=function)


def _declared(source: object) -> Type:
    """Return the type that a decorator's argument declares for a parameter."""
    declared = to_type(source)
    if declared.is_abstract:
        raise LanguageTypeError(
            "E109",
            f"a parameter cannot be of type `{declared}`, which holds a type variable",
            help="leave the types out; the computation is then traced for each type it is used at",
        )
    check_placements(declared)
    if any(isinstance(part, StructType) and "" in part.names for part in walk(declared)):
        raise LanguageTypeError(
            "E107",
            f"an element of `{declared}` has an empty name, which no file can keep",
            help="name it, or leave the name out",
        )
    return declared


def _decorator(name: str, trace: Tracer) -> Callable[..., Any]:
    def wrap(function: object, types: tuple[object, ...]) -> Computation | PolymorphicComputation:
        if isinstance(function, Convertible) or not callable(function):
            raise LanguageTypeError(
                "E416",
                f"@{name} decorates Python functions, but was given {described(function)}",
                help="call a computation as it is, without a second decorator"
                if isinstance(function, Convertible)
                else "decorate a function, written with def or lambda",
            )
        signature = signature_of(function)

        def traced(parameter: Type | None, splat: bool) -> Computation:
            splatted = is_splatted(function, signature, parameter, splat=splat)
            with steady_trace(function_name(function), parameter):
                return trace(function, parameter, splatted)

        if signature.parameters and not types:
            return PolymorphicComputation(function, signature, traced)
        declared = [None if type is None else _declared(type) for type in types]
        return traced(parameter_type(function, signature, declared), False)

    @entry_point
    def decorate(*args: object, **kwargs: object) -> Any:
        if kwargs:
            raise LanguageTypeError(
                "E407",
                f"@{name} was given {next(iter(kwargs))!r} by keyword, but takes types by position",
                help="give one type for each parameter of the function, in order",
            )
        if args and callable(args[0]) and not isinstance(args[0], type):
            return wrap(args[0], args[1:])
        types = tuple(type if type is None else _declared(type) for type in args)

        @entry_point
        def decorate_function(function: object) -> Computation | PolymorphicComputation:
            return wrap(function, types)

        return decorate_function

    return decorate


federated_computation = _decorator("tff.federated_computation", trace_federated)
"""Makes a federated computation from a Python function by running it once on traced values."""

tf_computation = _decorator("tff.tensorflow.computation", trace_tensorflow)
"""Makes a TensorFlow computation from a Python function by running it once on symbolic tensors."""

jax_computation = _decorator("tff.jax.computation", trace_jax)
"""Makes a JAX computation from a Python function by running it once on abstract arrays."""

torch_computation = _decorator("tff.torch.computation", trace_torch)
"""Makes a PyTorch computation from a Python function by running it once on tensors without
values."""


@entry_point
def serialize_computation(computation: object) -> bytes:
    """Return the computation as the bytes of a `Computation` message, which TFF can read as well.

    Raises:
      LanguageTypeError: it is not a computation, or is a polymorphic one.
      ContextError: it uses values of the trace it was made in.
    """
    if not isinstance(computation, Computation):
        raise LanguageTypeError(
            "E417",
            f"only a computation can be serialized, not {described(computation)}",
            help="give its decorator the types of its parameters"
            if isinstance(computation, PolymorphicComputation)
            else None,
        )
    computation.check_closed("serialized")
    from tffc.language import wire

    return wire.to_bytes(computation.node)


@entry_point
def deserialize_computation(data: bytes, *, allow_effects: Collection[str] = ()) -> Computation:
    """Return the computation in the bytes of a `Computation` message.

    The bytes may come from anybody, so side effects need consent before the computation is called
    or used in another: `allow_effects` are the kinds "files", "network", "python" and "unknown".

    Raises:
      WireError: the bytes are not a well-formed message.
      LanguageTypeError: they hold something other than a function, or are not bytes.
      LanguageValueError: there is no such kind.
    """
    if not isinstance(cast("object", data), bytes):
        raise LanguageTypeError(
            "E198", f"a computation is read from bytes, not from {described(data)}"
        )
    from tffc.language import wire
    from tffc.runtime.effects.consent import read_kinds

    allowed = read_kinds(allow_effects)
    return Computation.from_node(wire.from_bytes(data), allowed)


@entry_point
def computation_of_message(message: Any, *, allow_effects: Collection[str] = ()) -> Computation:
    """Return the computation in a `Computation` message, of this or another package's class.

    `allow_effects` is that of `deserialize_computation`.
    """
    if not hasattr(message, "SerializeToString"):
        raise LanguageTypeError(
            "E198",
            f"a computation is read from a message `Computation`, not from {described(message)}",
            help="give what tff.framework.serialize_computation returns",
        )
    return deserialize_computation(message.SerializeToString(), allow_effects=allow_effects)
