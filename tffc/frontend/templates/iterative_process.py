"""Iterative processes: a state, its initial value, and the round that updates it."""

from __future__ import annotations

from tffc.frontend.computation import Computation
from tffc.frontend.hints import described
from tffc.frontend.templates.errors import (
    TemplateInitFnParamNotEmptyError,
    TemplateNextFnNumArgsError,
    TemplateStateNotAssignableError,
)
from tffc.frontend.type_queries import contains_only
from tffc.language.assignability import difference_notes
from tffc.language.notation import formatted
from tffc.language.notation.cell import notation_cell
from tffc.language.types import FederatedType, StructType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError


class IterativeProcess:
    """A pair of computations: `initialize` returns the first state, `next` computes one round.

    `next` takes the state, alone or as the first of its arguments, and returns the next state,
    alone or as the first element of a struct.
    """

    @entry_point
    def __init__(
        self, initialize_fn: object, next_fn: object, next_is_multi_arg: bool | None = None
    ) -> None:
        """Check that the two computations fit each other.

        `next_is_multi_arg` says whether the state is the first of several arguments of `next_fn`;
        by default it is, unless the whole argument can be the state.

        Raises:
          LanguageTypeError: one of them is not a computation.
          TemplateInitFnParamNotEmptyError: `initialize_fn` takes an argument.
          TemplateNextFnNumArgsError: `next_fn` takes one argument where it should take several.
          TemplateStateNotAssignableError: the state returned by `initialize_fn` or by `next_fn`
            cannot be
            given to `next_fn`.
        """
        self._initialize = check_computation(initialize_fn, "initialize_fn")
        self._next = check_computation(next_fn, "next_fn")
        initialize, next_ = self._initialize.type_signature, self._next.type_signature
        if initialize.parameter is not None:
            raise TemplateInitFnParamNotEmptyError(
                f"initialize_fn must take no argument, but is of type `{initialize}`",
                code="E474",
                help="bind its arguments: tff.federated_computation(lambda: f(...))",
            )
        if next_.parameter is None:
            raise TemplateStateNotAssignableError(
                f"next_fn must take the state, but is of type `{next_}`, without argument",
                code="E474",
            )
        state = _taken_state(next_.parameter, initialize.result, next_is_multi_arg)
        if not state.is_assignable_from(initialize.result):
            raise TemplateStateNotAssignableError(
                f"the state that initialize_fn makes is of type `{initialize.result}`, but next_fn "
                f"takes one of type `{state}`",
                code="E495",
                notes=difference_notes(state, initialize.result),
                help="give both the same type: change what initialize_fn returns, or the type in "
                "next_fn's decorator",
            )
        _check_given_state(state, next_.result)
        self._state_type = state

    def _repr_html_(self) -> str:
        parts = (("initialize", self.initialize), ("next", self.next))
        return "".join(
            notation_cell(name, formatted(part.node), str(part.type_signature))
            for name, part in parts
        )

    @property
    def initialize(self) -> Computation:
        """The computation that returns the first state; it takes no argument."""
        return self._initialize

    @property
    def next(self) -> Computation:
        """The computation from the state, and whatever else a round needs, to the next state."""
        return self._next

    @property
    def state_type(self) -> Type:
        """The type of the state that `next` takes; that of `initialize` is assignable to it."""
        return self._state_type

    def __repr__(self) -> str:
        return f"<iterative process with state of type {self.state_type}>"


def is_stateful(process: IterativeProcess) -> bool:
    """Return whether the state of a process holds anything: a tensor or a sequence."""
    return not contains_only(process.state_type, (StructType, FederatedType))


def check_computation(source: object, role: str) -> Computation:
    """Return a computation of a process.

    Raises:
      LanguageTypeError: it is not a computation.
    """
    if not isinstance(source, Computation):
        raise LanguageTypeError(
            "E417",
            f"{role} must be a computation with types for its parameters, but is "
            f"{described(source)}",
            help="decorate it with @tff.tensorflow.computation(...) or "
            "@tff.federated_computation(...)",
        )
    return source


def _taken_state(parameter: Type, result: Type, first: bool | None) -> Type:
    """Return the type of the state that `next` takes: its whole parameter, or the first element."""
    if not first and (first is False or parameter.is_assignable_from(result)):
        return parameter
    if isinstance(parameter, StructType) and parameter.types:
        return parameter.types[0]
    if first:
        raise TemplateNextFnNumArgsError(
            "next_fn must take the state as the first of several arguments, but takes one of type "
            f"`{parameter}`",
            code="E197",
            help="leave next_is_multi_arg out",
        )
    return parameter


def _check_given_state(state: Type, result: Type) -> None:
    next_state = result
    if isinstance(result, StructType) and result.types and not state.is_assignable_from(result):
        next_state = result.types[0]
    if not state.is_assignable_from(next_state):
        raise TemplateStateNotAssignableError(
            f"the state that next_fn gives is of type `{next_state}`, but the one it takes is of "
            f"type `{state}`",
            code="E495",
            notes=difference_notes(state, next_state),
            help="give the next state first, with the element types and shapes of the state taken",
        )
