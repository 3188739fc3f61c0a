"""The runtime that runs single components of a round for engines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from tffc.backends.forms.steps import AggregationSteps, ClientGraphs
from tffc.language.nodes import Compiled, Lambda, Node
from tffc.language.type_parts import leaves
from tffc.language.types import FederatedType, Type
from tffc.language.values.concrete import Federated, flatten, unflatten
from tffc.runtime.batching.program_graphs import link_programs
from tffc.runtime.engines.folds import folds
from tffc.runtime.engines.sections import NO_PROGRAMS, EngineInterpreter, run_section
from tffc.runtime.engines.secure_sums import SecureSum, zero_of
from tffc.runtime.interpreter.interpreter import EMPTY, Interpreter
from tffc.support.trampoline import run


class EngineRuntime:
    """Runs graphs with TensorFlow, and programs with the interpreter; see `Runtime`.

    Errors may name `programs`, those of a bundle by name; see `run_section`.
    """

    def __init__(self, programs: Mapping[str, Node] = NO_PROGRAMS) -> None:
        self._programs = programs

    def placed(self, value: Any, type: Type) -> Any:
        """See `Runtime`."""
        parts = zip(flatten(value, type), leaves(type), strict=True)
        placed = (
            Federated((part,), all_equal=isinstance(leaf, FederatedType) and leaf.all_equal)
            for part, leaf in parts
        )
        return unflatten(placed, type)

    def unplaced(self, value: Any, type: Type) -> Any:
        """See `Runtime`."""
        parts = flatten(value, type)
        held = (part.members[0] if isinstance(part, Federated) else part for part in parts)
        return unflatten(held, type)

    def no_sum(self, type: Type) -> Any:
        """See `Runtime`."""
        return zero_of(type)

    def secure_sum(
        self, place: Hashable, uri: str, type: Type, bound: Any, bound_type: Type
    ) -> SecureSum:
        """See `Runtime`; this sum keeps no values secret."""
        return SecureSum(uri, type, bound, bound_type)

    def run(self, section: Compiled, argument: Any) -> Any:
        """See `Runtime`."""
        return run_section(section, argument, self._programs)

    def interpreter(self, clients: int) -> Interpreter:
        """Return an interpreter of programs for that many clients."""
        return EngineInterpreter(clients, self._programs)

    def evaluate(self, program: Lambda, argument: Any, clients: int) -> Any:
        """See `Runtime`."""
        interpreter = self.interpreter(clients)
        function = run(interpreter.evaluate(program, EMPTY))
        return run(interpreter.apply(function, argument))

    def aggregations(self, program: Lambda) -> Sequence[AggregationSteps]:
        """See `Runtime`."""
        return folds(program, self.interpreter, self.secure_sum)

    def link(self, work: Lambda, aggregation: Lambda) -> ClientGraphs:
        """See `Runtime`."""
        return link_programs(work, aggregation)
