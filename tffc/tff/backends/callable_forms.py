"""Forms for users of Python, whose components are computations that can be called.

`tffc.tff.backends.mapreduce` offers them under TFF's names.  tffc itself uses the forms in
`tffc.backends.forms`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from tffc.backends.compiler import compile_form, compile_initialize
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import Form, signature, struct, struct_of
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.frontend.computation import Computation
from tffc.frontend.type_queries import TypedObject
from tffc.language import wire
from tffc.language.nodes import Node
from tffc.language.traverse import contains
from tffc.language.types import (
    FunctionType,
    StructType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_type,
)
from tffc.passes.local_processing import extract_local_processing
from tffc.passes.table import default_pipeline
from tffc.support.errors import LanguageTypeError

Preprocessing: TypeAlias = Callable[[Node], Node]
"""A function of the user that changes a program before it is compiled."""


class CallableForm:
    """A form whose components are computations, available as attributes."""

    form_class: ClassVar[type[Form]]
    form: Form
    round_type: FunctionType
    allow_effects: frozenset[str] | None

    def __init__(self, type_signature: Any, *components: Any, **named: Any) -> None:
        round_type: Any = to_type(type_signature)
        nodes = (_node(component) for component in components)
        named_nodes = {name: _node(component) for name, component in named.items()}
        self.form = self.form_class(round_type, *nodes, **named_nodes)
        self.round_type = round_type
        self.allow_effects = _allowed(*components, *named.values())

    @classmethod
    def of(cls, comp: Any, name: str, allow_impure_duplicates: bool) -> Any:
        """Return a round compiled to the form of this name."""
        instance = cls.__new__(cls)
        instance.form = compile_form(
            _node(comp), name, allow_impure_duplicates=allow_impure_duplicates
        )
        instance.round_type = comp.type_signature if isinstance(comp, Computation) else comp.type
        instance.allow_effects = _allowed(comp)
        return instance

    @property
    def type_signature(self) -> FunctionType:
        """The type of the round, with the Python containers of its author."""
        return self.round_type

    def _label(self, index: int) -> str | None:
        return struct(self.form.type_signature.parameter).names[index]

    def __getattr__(self, name: str) -> Computation:
        components = {} if name in CallableForm.__annotations__ else self.form.components()
        if name not in components:
            raise AttributeError(f"a {self.form_class.__name__} has no component {name!r}")
        return Computation.from_node(components[name], self.allow_effects)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.form.components()]

    def summary(self, print_fn: Callable[[str], object] = print) -> None:
        """Print a line for each component, with its name and type."""
        for line in self.form.summary().splitlines():
            print_fn(line)


class CallableMapReduceForm(CallableForm):
    """A round as ten local computations; see `tffc.backends.forms.map_reduce`."""

    form_class = MapReduceForm

    @property
    def securely_aggregates_tensors(self) -> bool:
        """Whether any tensor goes through a secure sum."""
        assert isinstance(self.form, MapReduceForm)
        outputs = struct(signature(self.form.work).result).types
        return any(contains(output, TensorType) for output in outputs[1:])

    @property
    def server_state_label(self) -> str | None:
        """The name of the round's first parameter."""
        return self._label(0)

    @property
    def client_data_label(self) -> str | None:
        """The name of the round's second parameter."""
        return self._label(1)


class CallableBroadcastForm(CallableForm):
    """A round without aggregations, as two computations; see `tffc.backends.forms.broadcast`."""

    form_class = BroadcastForm

    def __init__(
        self,
        compute_server_context: Any,
        client_processing: Any,
        server_data_label: str | None = None,
        client_data_label: str | None = None,
    ) -> None:
        """Create the form of two components, with names for the parameters of the round."""
        context, work = _node(compute_server_context), _node(client_processing)
        data = struct_of(_signature(work).parameter, 2, "client_processing", "parameter").types[1]
        server, clients = at_server(_parameter(context)), at_clients(data)
        names = (server_data_label, client_data_label)
        round_type = FunctionType(
            StructType.of(names, (server, clients)), at_clients(_signature(work).result)
        )
        super().__init__(round_type, compute_server_context, client_processing)

    @property
    def server_data_label(self) -> str | None:
        """The name of the round's first parameter."""
        return self._label(0)

    @property
    def client_data_label(self) -> str | None:
        """The name of the round's second parameter."""
        return self._label(1)


class CallableDistributeAggregateForm(CallableForm):
    """A round as five programs; see `tffc.backends.forms.distribute_aggregate`."""

    form_class = DistributeAggregateForm


TypedObject.register(CallableMapReduceForm)
TypedObject.register(CallableDistributeAggregateForm)


def get_map_reduce_form_for_computation(
    comp: Computation,
    grappler_config: object = None,
    *,
    tff_internal_preprocessing: Preprocessing | None = None,
    allow_impure_duplicates: bool = False,
) -> CallableMapReduceForm:
    """Return the MapReduceForm of a round.

    With `allow_impure_duplicates`, work whose results differ from run to run may run in several
    components.  `grappler_config` has no effect: it is there because TFF has it.
    `tff_internal_preprocessing` takes the program and returns the one to compile.

    Raises:
      FormError: the round cannot be expressed in this form.
    """
    ready = _preprocessed(comp, tff_internal_preprocessing)
    return CallableMapReduceForm.of(ready, "mapreduce", allow_impure_duplicates)


def get_broadcast_form_for_computation(
    comp: Computation,
    grappler_config: object = None,
    *,
    tff_internal_preprocessing: Preprocessing | None = None,
    allow_impure_duplicates: bool = False,
) -> CallableBroadcastForm:
    """Return the BroadcastForm of a round; options and errors as for MapReduceForm."""
    ready = _preprocessed(comp, tff_internal_preprocessing)
    return CallableBroadcastForm.of(ready, "broadcast", allow_impure_duplicates)


def get_distribute_aggregate_form_for_computation(
    comp: Computation,
    *,
    tff_internal_preprocessing: Preprocessing | None = None,
    allow_impure_duplicates: bool = False,
) -> CallableDistributeAggregateForm:
    """Return the DistributeAggregateForm of a round; options and errors as for MapReduceForm."""
    ready = _preprocessed(comp, tff_internal_preprocessing)
    return CallableDistributeAggregateForm.of(
        ready, "distribute-aggregate", allow_impure_duplicates
    )


def get_computation_for_map_reduce_form(mrf: CallableMapReduceForm) -> Computation:
    """Return the round that a MapReduceForm computes."""
    return _round_of(mrf, CallableMapReduceForm)


def get_computation_for_broadcast_form(bf: CallableBroadcastForm) -> Computation:
    """Return the round that a BroadcastForm computes."""
    return _round_of(bf, CallableBroadcastForm)


def get_computation_for_distribute_aggregate_form(
    daf: CallableDistributeAggregateForm,
) -> Computation:
    """Return the round that a DistributeAggregateForm computes."""
    return _round_of(daf, CallableDistributeAggregateForm)


def get_state_initialization_computation(
    initialize_computation: Computation, grappler_config: object = None
) -> Computation:
    """Return the TensorFlow computation `( -> S)` of a computation `( -> S@SERVER)`.

    `grappler_config` has no effect.

    Raises:
      FormError: the computation is of another type, or communicates.
    """
    comp = initialize_computation
    return Computation.from_node(compile_initialize(_node(comp)), _allowed(comp))


def check_computation_compatible_with_map_reduce_form(
    comp: Computation, *, tff_internal_preprocessing: Preprocessing | None = None
) -> Node:
    """Return the round in call-dominant form, if it has a MapReduceForm.

    Raises:
      FormError: it has none; the message says why.
    """
    node = _node(_preprocessed(comp, tff_internal_preprocessing))
    compile_form(node, "mapreduce")
    return default_pipeline().run(node)


def consolidate_and_extract_local_processing(
    comp: Computation | Node, grappler_config_proto: object = None
) -> Computation:
    """Return the TensorFlow computation `(T -> U)` of a computation `(T@p -> U@p)`.

    `grappler_config_proto` has no effect.

    Raises:
      FormError: it works at more than one placement, or communicates.
    """
    return Computation.from_node(extract_local_processing(_node(comp)), _allowed(comp))


def parse_tff_to_tf(comp: Computation | Node, grappler_config_proto: object = None) -> Computation:
    """Do as `consolidate_and_extract_local_processing`, under another name of TFF."""
    return consolidate_and_extract_local_processing(comp)


def _preprocessed(comp: Computation, preprocessing: Preprocessing | None) -> Computation:
    """Return a round after a user's function has changed its program."""
    if preprocessing is None:
        return comp
    changed = preprocessing(_node(comp))
    return Computation(changed, comp.type_signature, allow_effects=_allowed(comp))


def _round_of(form: object, wanted: type[CallableForm]) -> Computation:
    if not isinstance(form, wanted):
        kind = form.form_class if isinstance(form, CallableForm) else type(form)
        raise LanguageTypeError(
            "E500", f"expected a {wanted.form_class.__name__}, found a {kind.__name__}"
        )
    node = form.form.decompile()
    return Computation(node, form.round_type, allow_effects=form.allow_effects)


def _allowed(*made_of: object) -> frozenset[str] | None:
    """Return the effects allowed to a computation made of others, as `Computation` takes them.

    These are the effects that all computations from files among them may have, or None if there
    are no such computations.
    """
    effects = [c.allow_effects for c in made_of if isinstance(c, Computation)]
    asked = [allowed for allowed in effects if allowed is not None]
    return asked[0].intersection(*asked) if asked else None


def _signature(component: Node) -> FunctionType:
    if not isinstance(component.type, FunctionType):
        raise LanguageTypeError(
            "E501",
            f"a component of a form is a function, but this is of type `{component.type}`",
            help="give what tff.tensorflow.computation returns",
        )
    return component.type


def _parameter(component: Node) -> Type:
    parameter = _signature(component).parameter
    if parameter is None:
        raise LanguageTypeError(
            "E501",
            "compute_server_context takes what the server has, but is of type "
            f"`{component.type}`, without argument",
        )
    return parameter


def _node(comp: object) -> Node:
    if isinstance(comp, Computation):
        return comp.to_building_block()
    if isinstance(comp, Node):
        return wire.opened(comp)
    raise LanguageTypeError(
        "E417",
        f"expected a computation, found {comp!r}",
        help="decorate the function with tff.federated_computation and the types of its parameters",
    )
