"""A bundle ready to run."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.buffered import BufferedSteps
from tffc.backends.forms.discount import check_discountable
from tffc.backends.forms.form import struct
from tffc.backends.forms.kinds import load_form
from tffc.backends.forms.mergeable import MergeableForm
from tffc.backends.forms.steps import RoundSteps
from tffc.language.type_parts import leaves
from tffc.language.types import Type
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.effects.consent import check_consent, read_kinds
from tffc.runtime.engines.runtime import EngineRuntime
from tffc.runtime.engines.sections import run_section
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.state import State
from tffc.support.errors import BundleError, FormError, MissingExtraError
from tffc.support.extras import installation
from tffc.support.trampoline import Task
from tffc.support.trampoline import run as run_task


class Process:
    """A bundle ready to run: its steps, its initial state, and the digests of its programs.

    A bundle may come from anybody, so its side effects need consent: `allow_effects` names the
    allowed kinds, from `tffc.runtime.effects.consent.KINDS`.  One that `is_own`, traced in this
    process from the user's module, needs none, and may call the functions of Python in it.

    Raises:
      FormError: the bundle does not hold the components of its form.
      ConsentError: it has an effect that is not allowed.
      LanguageValueError: `allow_effects` names an unknown kind.
    """

    def __init__(
        self, bundle: Bundle, allow_effects: Collection[str] = (), *, is_own: bool = False
    ) -> None:
        self.bundle = bundle
        self.steps = steps_of_bundle(bundle)
        if not is_own:
            check_consent(bundle.run_by_rounds(), read_kinds(allow_effects))

    def masked_steps(self, clients: Sequence[str]) -> RoundSteps:
        """Return the steps of one round with these clients, whose secure sums are masked sums.

        Raises:
          MissingExtraError: the cryptography package is not installed.
        """
        if importlib.util.find_spec("cryptography") is None:
            raise MissingExtraError(
                "E701",
                "cryptography is not installed, and masked sums need it",
                help=installation("masking"),
            )
        # Imported late: it imports cryptography.
        from tffc.runtime.engines.masked_sums import MaskedRuntime

        return self.bundle.read_form().steps(MaskedRuntime(clients, self.bundle.run_by_rounds()))

    @functools.cached_property
    def buffered_steps(self) -> BufferedSteps:
        """The steps of buffered rounds.

        Raises:
          FormError: the bundle does not say that its rounds may be buffered.
        """
        return buffered_steps_of(self.bundle)

    @functools.cached_property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of every program in the bundle, by the path of its file without suffix."""
        return self.bundle.digests()

    @property
    def program(self) -> str:
        """The SHA-256 of the program that was compiled."""
        return self.digests["computation"]

    @property
    def state_type(self) -> Type:
        """The type of the server state."""
        return self.steps.state_type

    @property
    def data_type(self) -> Type:
        """The type of each client's data."""
        return _data_type(self.bundle, self.steps)

    @property
    def output_type(self) -> Type:
        """The type of the server output."""
        return self.steps.output_type

    @property
    def client_output_type(self) -> Type | None:
        """The type of each client's final value; None if clients have none."""
        return self.steps.client_output_type

    @property
    def client_state_type(self) -> Type | None:
        """The type of the state that each client keeps from round to round; None if they keep
        none."""
        return self.steps.client_state_type

    def first_state(self) -> State:
        """Return the state before the first round.

        Raises:
          BundleError: the state is not empty, and the bundle does not say how to make it.
          ExecutionError: making the state fails.
        """
        initialize = self.bundle.initialize
        if initialize is not None:
            with showing():
                return State(
                    run_section(initialize, None, self.bundle.run_by_rounds()), self.program, 0
                )
        check_beginning(self.bundle)
        return State(run_task(_empty(self.state_type)), self.program, 0)

    def state_to_python(self, state: State) -> Any:
        """Return a state in Python containers with NumPy tensors, as TFF's program managers take
        it."""
        return to_python(state.value, self.state_type)

    def state_from_python(self, value: Any, rounds: int = 0) -> State:
        """Return the state held by Python containers, as the one after `rounds` rounds.

        Raises:
          LanguageTypeError: the value does not have the type of the state.
        """
        return State(to_value(value, self.state_type, "the state"), self.program, rounds)


def steps_of_bundle(bundle: Bundle) -> RoundSteps:
    """Return the steps of a bundle's rounds, with components run as engines run them.

    Raises:
      FormError: the bundle does not hold the components of its form.
    """
    return bundle.read_form().steps(EngineRuntime(bundle.run_by_rounds()))


def buffered_steps_of(bundle: Bundle) -> BufferedSteps:
    """Return the steps of a bundle's buffered rounds.

    Raises:
      FormError: the bundle does not say that its rounds may be buffered.
    """
    form = bundle.read_form()
    if bundle.discount is None or not isinstance(form, MergeableForm):
        why = "" if form.has_groups() else f"; its form is {bundle.form}"
        raise FormError(
            "E748",
            f"the bundle does not say that its rounds may be buffered{why}",
            help="write @tffc.buffered(discount=...) above the round, and compile it to the form "
            "mergeable; or run it without a buffer",
        )
    check_discountable(bundle.computation)
    return BufferedSteps(form, bundle.discount, EngineRuntime(bundle.run_by_rounds()))


def data_type_of_bundle(bundle: Bundle) -> Type:
    """Return the type of each client's data in the rounds of a bundle.

    Raises:
      FormError: the bundle does not hold the components of its form.
    """
    return _data_type(bundle, steps_of_bundle(bundle))


def _data_type(bundle: Bundle, steps: RoundSteps) -> Type:
    return load_form(bundle.form).data_type(steps.data_type)


def check_beginning(bundle: Bundle) -> None:
    """Check that a bundle says how its initial state is made, or that its state is empty.

    Raises:
      BundleError: neither is the case.
      FormError: the bundle does not hold the components of its form.
    """
    type = steps_of_bundle(bundle).state_type
    if bundle.initialize is None and leaves(type):
        raise BundleError(
            "E661",
            f"the bundle does not say how the state of type `{type}` begins",
            help="give a state, or compile an iterative process, or compile with a computation "
            "of the first state",
            remedy="first state",
        )


def _empty(type: Type) -> Task[Any]:
    """Return the value of a type without tensors."""
    elements: list[object] = []
    for element in struct(type):
        elements.append((yield _empty(element)))
    return tuple(elements)
