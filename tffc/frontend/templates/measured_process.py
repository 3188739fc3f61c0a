"""Measured processes: rounds that return a result and measurements beside the next state."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from tffc.frontend.computation import Computation, federated_computation
from tffc.frontend.hints import described
from tffc.frontend.operators import federated_zip
from tffc.frontend.templates.errors import TemplateNotMeasuredProcessOutputError
from tffc.frontend.templates.iterative_process import IterativeProcess
from tffc.frontend.value import Value
from tffc.language.types import FederatedType, StructType, StructWithPythonType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError
from tffc.support.guards import is_mapping


class MeasuredProcessOutput(NamedTuple):
    """The result of a round of a measured process."""

    state: Any
    result: Any
    measurements: Any


class MeasuredProcess(IterativeProcess):
    """An iterative process whose rounds return a `MeasuredProcessOutput`."""

    @entry_point
    def __init__(
        self, initialize_fn: object, next_fn: object, next_is_multi_arg: bool | None = None
    ) -> None:
        """Check that the two computations fit each other, as for an iterative process.

        Raises:
          LanguageTypeError: what `IterativeProcess` refuses.
          TemplateNotMeasuredProcessOutputError: `next_fn` returns something else.
        """
        super().__init__(initialize_fn, next_fn, next_is_multi_arg)
        result = self.next.type_signature.result
        container = result.container if isinstance(result, StructType) else None
        if container is None or not issubclass(container, MeasuredProcessOutput):
            raise TemplateNotMeasuredProcessOutputError(
                f"next_fn must return a MeasuredProcessOutput, but gives `{result}`",
                code="E187",
                help="return tff.templates.MeasuredProcessOutput(state, result, measurements)",
            )


@entry_point
def chain_measured_processes(
    measured_processes: Mapping[str, MeasuredProcess],
) -> MeasuredProcess:
    """Return the process in which each process takes the result of the previous one.

    State and measurements are structs of those of the processes, by their names.

    Raises:
      LanguageTypeError: it is not a mapping from names to measured processes, their states are not
        all at one placement, or one does not take the result of the previous one.
    """
    processes = _checked(measured_processes)
    first = next(iter(processes.values()))

    @federated_computation(_zipped_states(processes), _values_type(first))
    def next_fn(state: Any, values: Any) -> MeasuredProcessOutput:
        outputs: dict[str, Any] = {}
        for name, process in processes.items():
            outputs[name] = process.next(state[name], values)
            values = outputs[name].result
        return MeasuredProcessOutput(
            _zipped(outputs, "state"), values, _zipped(outputs, "measurements")
        )

    return MeasuredProcess(_initialize(processes), next_fn)


@entry_point
def concatenate_measured_processes(
    measured_processes: Mapping[str, MeasuredProcess],
) -> MeasuredProcess:
    """Return the process that runs all processes side by side, each on the value of its name.

    State, values, result and measurements are structs of those of the processes, by their names.

    Raises:
      LanguageTypeError: it is not a mapping from names to measured processes, or their states are
        not all at one placement.
    """
    processes = _checked(measured_processes)
    values_type = collections.OrderedDict(
        (name, _values_type(process)) for name, process in processes.items()
    )

    state_type = _zipped_states(processes, collections.OrderedDict)

    @federated_computation(state_type, values_type)
    def next_fn(state: Any, values: Any) -> MeasuredProcessOutput:
        outputs: dict[str, Any] = {
            name: process.next(state[name], values[name]) for name, process in processes.items()
        }
        result = collections.OrderedDict((name, output.result) for name, output in outputs.items())
        return MeasuredProcessOutput(
            _zipped(outputs, "state"), result, _zipped(outputs, "measurements")
        )

    return MeasuredProcess(_initialize(processes), next_fn)


def _checked(processes: object) -> dict[str, MeasuredProcess]:
    wrong: list[object] = [processes]
    named: dict[object, object] = {}
    if is_mapping(processes):
        named = dict(processes)
        wrong = [value for value in named.values() if not isinstance(value, MeasuredProcess)]
    if wrong or not named:
        raise LanguageTypeError(
            "E188",
            "expected a mapping from names to measured processes, but found "
            + (described(wrong[0]) if wrong else "an empty one"),
            help="give collections.OrderedDict(name=process, ...)",
        )
    return cast("dict[str, MeasuredProcess]", named)


def _initialize(processes: Mapping[str, MeasuredProcess]) -> Computation:
    def initialize_fn() -> Value:
        states = ((name, process.initialize()) for name, process in processes.items())
        return federated_zip(collections.OrderedDict(states))

    return federated_computation(initialize_fn)


def _zipped(outputs: Mapping[str, Any], part: str) -> Value:
    return federated_zip(
        collections.OrderedDict((name, getattr(output, part)) for name, output in outputs.items())
    )


def _zipped_states(
    processes: Mapping[str, MeasuredProcess], container: type | None = None
) -> FederatedType:
    """Return the type of all states as one value, at their one placement."""
    types = [(name, process.state_type) for name, process in processes.items()]
    members: list[Type] = []
    placement = None
    for _, type in types:
        if not isinstance(type, FederatedType) or placement not in (None, type.placement):
            raise LanguageTypeError(
                "E189",
                "the states of the processes must all be placed, and all at the same side",
                notes=tuple(f"{name}: {type}" for name, type in types),
                help="zip a state of several parts: tff.federated_zip((a, b))",
            )
        placement = type.placement
        members.append(type.member)
    names = tuple(processes)
    return FederatedType(
        StructWithPythonType.with_container(names, tuple(members), container), placement
    )


def _values_type(process: MeasuredProcess) -> Type:
    """Return the type of the values that a process takes beside its state."""
    parameter = process.next.type_signature.parameter
    if not isinstance(parameter, StructType) or len(parameter.types) != 2:
        raise LanguageTypeError(
            "E190",
            f"the next of each process must take a state and values, but one takes `{parameter}`",
            help="make what else it takes part of the values",
        )
    return parameter.types[1]
