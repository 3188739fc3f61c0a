"""Forms of computations, under the names that users of TFF know.

Everything here takes and gives computations as they are in Python; the forms' parts can be called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tffc.backends.compiler import compile_form
from tffc.backends.forms import form as forms
from tffc.backends.forms.decompile import computation_of
from tffc.backends.forms.initialize import compile_initialize
from tffc.errors import LanguageTypeError
from tffc.frontend.computation import Computation
from tffc.frontend.modular_sum import federated_secure_modular_sum
from tffc.ir.nodes import Node
from tffc.ir.types import FunctionType, to_type
from tffc.passes.local_processing import extract_local_processing
from tffc.passes.table import default_pipeline

__all__ = [
    "BroadcastForm",
    "DistributeAggregateForm",
    "MapReduceForm",
    "check_computation_compatible_with_map_reduce_form",
    "consolidate_and_extract_local_processing",
    "federated_secure_modular_sum",
    "get_broadcast_form_for_computation",
    "get_computation_for_broadcast_form",
    "get_computation_for_distribute_aggregate_form",
    "get_computation_for_map_reduce_form",
    "get_distribute_aggregate_form_for_computation",
    "get_map_reduce_form_for_computation",
    "get_state_initialization_computation",
    "parse_tff_to_tf",
]


class _ComputationForm:
    """A form whose parts are computations; each part is an attribute of its name."""

    kind: ClassVar[type[forms.Form]]
    form: forms.Form
    allow_effects: frozenset[str] | None

    def __init__(self, type_signature: Any, *parts: Any, **named_parts: Any) -> None:
        nodes: list[Any] = [_node(part) for part in parts]
        named: dict[str, Any] = {name: _node(part) for name, part in named_parts.items()}
        signature: Any = to_type(type_signature)
        self.form = self.kind(signature, *nodes, **named)
        self.allow_effects = _allowed(*parts, *named_parts.values())

    @classmethod
    def of(cls, comp: Any, form: str, allow_impure_duplicates: bool) -> Any:
        """The form of a round, compiled to the form of this name."""
        made = cls.__new__(cls)
        made.form = compile_form(_node(comp), form, allow_impure_duplicates=allow_impure_duplicates)
        made.allow_effects = _allowed(comp)
        return made

    @property
    def type_signature(self) -> FunctionType:
        """The type of the round."""
        return self.form.type_signature

    def __getattr__(self, name: str) -> Computation:
        parts = {} if name in ("form", "allow_effects") else self.form.components()
        if name not in parts:
            raise AttributeError(f"a {type(self).__name__} has no part {name!r}")
        return Computation.from_node(parts[name], self.allow_effects)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.form.components()]

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Prints one line a part: its name and its type."""
        for line in self.form.summary().splitlines():
            print_fn(line)


class MapReduceForm(_ComputationForm):
    """A round as ten local computations; see `tffc.backends.forms.form.MapReduceForm`."""

    kind = forms.MapReduceForm

    @property
    def securely_aggregates_tensors(self) -> bool:
        """Whether any tensor goes through a secure sum."""
        assert isinstance(self.form, forms.MapReduceForm)
        return self.form.securely_aggregates_tensors

    @property
    def server_state_label(self) -> str | None:
        """The name of the round's first parameter."""
        return forms.label(self.type_signature, 0)

    @property
    def client_data_label(self) -> str | None:
        """The name of the round's second parameter."""
        return forms.label(self.type_signature, 1)


class BroadcastForm(_ComputationForm):
    """A round that gets nothing back; see `tffc.backends.forms.form.BroadcastForm`."""

    kind = forms.BroadcastForm

    @property
    def server_data_label(self) -> str | None:
        """The name of the round's first parameter."""
        return forms.label(self.type_signature, 0)

    @property
    def client_data_label(self) -> str | None:
        """The name of the round's second parameter."""
        return forms.label(self.type_signature, 1)


class DistributeAggregateForm(_ComputationForm):
    """A round as five computations; see `tffc.backends.forms.form.DistributeAggregateForm`."""

    kind = forms.DistributeAggregateForm


def get_map_reduce_form_for_computation(
    comp: Computation, *, allow_impure_duplicates: bool = False
) -> MapReduceForm:
    """The MapReduceForm of a round.

    `allow_impure_duplicates` lets work that gives something else each time run in several parts.

    Raises:
      FormError: the round cannot be expressed in this form.
    """
    return MapReduceForm.of(comp, "mapreduce", allow_impure_duplicates)


def get_broadcast_form_for_computation(
    comp: Computation, *, allow_impure_duplicates: bool = False
) -> BroadcastForm:
    """The BroadcastForm of a round; options and errors as for MapReduceForm."""
    return BroadcastForm.of(comp, "broadcast", allow_impure_duplicates)


def get_distribute_aggregate_form_for_computation(
    comp: Computation, *, allow_impure_duplicates: bool = False
) -> DistributeAggregateForm:
    """The DistributeAggregateForm of a round; options and errors as for MapReduceForm."""
    return DistributeAggregateForm.of(comp, "distribute-aggregate", allow_impure_duplicates)


def get_computation_for_map_reduce_form(form: MapReduceForm) -> Computation:
    """The round that a MapReduceForm computes."""
    return _inverse(form, MapReduceForm)


def get_computation_for_broadcast_form(form: BroadcastForm) -> Computation:
    """The round that a BroadcastForm computes."""
    return _inverse(form, BroadcastForm)


def get_computation_for_distribute_aggregate_form(form: DistributeAggregateForm) -> Computation:
    """The round that a DistributeAggregateForm computes."""
    return _inverse(form, DistributeAggregateForm)


def get_state_initialization_computation(comp: Computation) -> Computation:
    """The TensorFlow computation `( -> S)` of a computation `( -> S@SERVER)`.

    Raises:
      FormError: the computation is of another type, or communicates.
    """
    return Computation.from_node(compile_initialize(_node(comp)), _allowed(comp))


def check_computation_compatible_with_map_reduce_form(comp: Computation) -> Node:
    """The round in call-dominant form, if it has a MapReduceForm.

    Raises:
      FormError: it has none, and why.
    """
    node = _node(comp)
    compile_form(node, "mapreduce")
    return default_pipeline("mapreduce").run(node)


def consolidate_and_extract_local_processing(comp: Computation | Node) -> Computation:
    """The TensorFlow computation `(T -> U)` of one `(T@p -> U@p)` that works at one place alone.

    Raises:
      FormError: it works at two, or communicates.
    """
    return Computation.from_node(extract_local_processing(_node(comp)), _allowed(comp))


def parse_tff_to_tf(comp: Computation | Node) -> Computation:
    """The TensorFlow computation of one whose values have no placement; raises likewise."""
    return consolidate_and_extract_local_processing(comp)


def _inverse(form: _ComputationForm, kind: type[_ComputationForm]) -> Computation:
    if not isinstance(form, kind):
        raise LanguageTypeError(
            "E526", f"expected a {kind.__name__}, found a {type(form).__name__}"
        )
    return Computation.from_node(computation_of(form.form), form.allow_effects)


def _allowed(*made_of: Any) -> frozenset[str] | None:
    """What a computation may do that is made of others: what all of those may that came from files.

    See `Computation`; None if none of them did.
    """
    given = [c.allow_effects for c in made_of if isinstance(c, Computation)]
    asked = [allowed for allowed in given if allowed is not None]
    return frozenset.intersection(*asked) if asked else None


def _node(comp: Any) -> Node:
    if isinstance(comp, Computation):
        return comp.to_building_block()
    if isinstance(comp, Node):
        return comp
    raise LanguageTypeError(
        "E527",
        f"expected a computation, found {comp!r}",
        help="decorate the function with tff.federated_computation and the types of its parameters",
    )
