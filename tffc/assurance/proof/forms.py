"""The rounds of the forms: the order in which a system runs the components, as in docs/forms.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tffc.assurance.proof import folds
from tffc.assurance.proof.machine import ONCE, Machine
from tffc.assurance.proof.merging import Merging, check_repeated
from tffc.assurance.proof.operators import EACH
from tffc.assurance.proof.sequences import Place
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import Value, elements_of, leaf_terms
from tffc.language.nodes import Node
from tffc.language.types import FunctionType, StructType, Type
from tffc.support.trampoline import Task

BOUNDS = {
    "federated_secure_sum_bitwidth": "secure_sum_bitwidth",
    "federated_secure_sum": "secure_sum_max_input",
    "federated_secure_modular_sum": "secure_modular_sum_modulus",
}
"""The secure sums in the order of their channels, and the component that bounds each."""

ZERO, BOUND = Place("zero"), Place("bound")


class Components:
    """The components of a form, run by the machine.

    `law` is what the form has to hold besides that its results are those of the program, if it is
    anything: two values that have to be the same, of which the second is of a component, and their
    type.
    """

    law: tuple[Value, Value, Type] | None = None

    def __init__(self, machine: Machine, components: Mapping[str, Node]) -> None:
        self.machine = machine
        self._components = components

    def run(self, name: str, place: Place, argument: Value | None) -> Task[Value]:
        """Return the result of a component at a place; `argument` is None if it takes none."""
        self.machine.terms.span = None
        self.machine.terms.run += 1
        return (yield self.machine.component(self._components[name], place, argument))

    def type(self, name: str) -> FunctionType:
        """Return the type of a component."""
        kind = self._components[name].type
        assert isinstance(kind, FunctionType)
        return kind


def map_reduce(form: Components, state: Value, data: Value) -> Task[Value]:
    """Return the new state and the output of a round of MapReduceForm."""
    results, _ = yield _rounds(form, state, data)
    return results


def client_state(form: Components, state: Value, data: Value) -> Task[Value]:
    """Return the results of a round of ClientStateForm, with the clients' new states between the
    others."""
    results, kept = yield _rounds(form, state, data)
    new_state, output = elements_of(results)
    (new,) = kept
    return (new_state, new, output)


def _rounds(form: Components, state: Value, data: Value) -> Task[tuple[Value, Sequence[Value]]]:
    """Return the new state and the output of a round, and what each client keeps of its work."""
    carried = form.machine.carried
    context = yield form.run("prepare", ONCE, state)
    carried.broadcast += leaf_terms(context)
    worked: Value = yield form.run("work", EACH, (data, context))
    update, *others = elements_of(worked)
    secured, kept = others[: len(BOUNDS)], others[len(BOUNDS) :]
    carried.aggregated += leaf_terms(update)
    carried.secured += leaf_terms(tuple(secured))
    symbols = folds.Symbols(form.machine.terms, *_struct(form.type("accumulate").parameter).types)
    zero = yield form.run("zero", ZERO, None)
    taken = yield form.run("accumulate", folds.ACCUMULATE, (symbols.one, symbols.update))
    merged = yield form.run("merge", folds.MERGE, (symbols.one, symbols.other))
    whole = folds.fold(symbols, zero=zero, accumulated=taken, merged=merged, update=update)
    sums: list[Value] = [(yield form.run("report", ONCE, whole))]
    kinds = _struct(form.type("work").result)
    types = kinds.types[1 : 1 + len(BOUNDS)]
    for (uri, bound), value, kind in zip(BOUNDS.items(), secured, types, strict=True):
        limits = yield form.run(bound, BOUND, None)
        pair = kind, form.type(bound).result
        sums.append(folds.secure(form.machine.terms, uri, value, limits, pair))
    return (yield form.run("update", ONCE, (state, tuple(sums)))), kept


def distribute_aggregate(form: Components, state: Value, data: Value) -> Task[Value]:
    """Return the new state and the output of a round of DistributeAggregateForm."""
    for_clients, for_server = yield form.run("server_prepare", ONCE, state)
    received = yield form.run("server_to_client_broadcast", ONCE, for_clients)
    worked = yield form.run("client_work", ONCE, (data, received))
    form.machine.carried.broadcast += leaf_terms(received)
    form.machine.carried.collected += leaf_terms(worked)
    summed = yield form.run("client_to_server_aggregation", ONCE, (for_server, worked))
    return (yield form.run("server_result", ONCE, (for_server, summed)))


def broadcast(form: Components, state: Value, data: Value) -> Task[Value]:
    """Return what each client holds after a round of BroadcastForm."""
    context = yield form.run("compute_server_context", ONCE, state)
    form.machine.carried.broadcast += leaf_terms(context)
    return (yield form.run("client_processing", EACH, (context, data)))


def mergeable(form: Components, state: Value, data: Value) -> Task[Value]:
    """Return the new state and the output of a round of MergeableForm with one group of clients.

    It has to hold that `merge` joins the results of groups, whatever the groups are.
    """
    terms = form.machine.terms
    partial = yield form.run("up_to_merge", ONCE, (state, data))
    check_repeated(terms, terms.run)
    merging = Merging(form.machine, form.type("merge").result, partial)
    form.law = merging.law((yield form.run("merge", folds.MERGE, merging.pair)))
    return (yield form.run("after_merge", ONCE, ((state, data), partial)))


def _struct(kind: Type | None) -> StructType:
    if not isinstance(kind, StructType):
        raise Undecided("components that do not fit each other")
    return kind


FORMS: dict[str, Callable[[Components, Value, Value], Task[Value]]] = {
    "mapreduce": map_reduce,
    "distribute-aggregate": distribute_aggregate,
    "broadcast": broadcast,
    "client-state": client_state,
    "mergeable": mergeable,
}
"""The round of each form, by the names that bundles use."""
