"""BroadcastForm: a round that sends something to the clients and gets nothing back.

    c  = compute_server_context(s)
    yi = client_processing((c, di))

What a client computes stays with it, and the state stays as it is.  The round's result cannot
depend on an aggregation, because the aggregate would have to be broadcast again; the assignment of
stages refuses that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tffc.backends.forms.component import ComponentBuilder, elements, local_struct
from tffc.backends.forms.form import (
    Connection,
    Form,
    Side,
    parameter,
    result_of,
    runs_at,
    signature,
    struct,
    taken_by,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import check_parameters, wrong_signature
from tffc.backends.forms.stages import Stage, StagedRound
from tffc.backends.forms.steps import BatchSteps, ClientGraphs, RoundSteps, Runtime, Value
from tffc.language.calls import apply, pack, zip_placed
from tffc.language.nodes import Compiled, Lambda, Node
from tffc.language.type_parts import local_type
from tffc.language.types import CLIENTS, FederatedType, StructType
from tffc.linking.builder import GraphBuilder

SIGNATURE = "(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)"


@dataclass(frozen=True, slots=True)
class BroadcastForm(Form):
    """A round as two local computations; see the picture at the top of this module.

    `type_signature` is `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.
    """

    aggregates = False
    compute_server_context: Compiled = field(metadata=runs_at(Side.SERVER))
    client_processing: Compiled = field(metadata=runs_at(Side.CLIENTS))

    def connections(self) -> Iterator[Connection]:
        state, data = self.taken_by_round()
        context, processing = self.compute_server_context, self.client_processing
        taken = taken_by("client_processing", processing)
        name = "compute_server_context"
        yield Connection("the state", state, taken_by(name, context))
        yield Connection(f"{name}'s result", result_of(name, context), taken.element(0))
        yield Connection("clients' data", data, taken.element(1))

    @staticmethod
    def check_signature(program: Node) -> None:
        result = check_parameters(program, SIGNATURE).result
        if not isinstance(result, FederatedType) or result.placement is not CLIENTS:
            raise wrong_signature(
                "the result is one value placed at the clients",
                program,
                SIGNATURE,
                "join several values with tff.federated_zip; a round that aggregates has another "
                "form",
                at=(),
            )

    @classmethod
    def build(cls, program: StagedRound, *, allow_impure_duplicates: bool = False) -> BroadcastForm:
        broadcasts = program.of_stage(Stage.BROADCAST)
        purity = None if allow_impure_duplicates else Purity(cls)
        state, data = (local_type(part) for part in struct(program.type.parameter))

        server = ComponentBuilder(program, "compute_server_context", [state], purity)
        server.scope(state=server.arguments[0])
        compute_server_context = server.finish_struct(program.sent)

        context = local_struct(program.sent)
        client = ComponentBuilder(program, "client_processing", [context, data], purity)
        received, held = client.arguments
        client.scope(data=held)
        client.give(broadcasts, received)
        (result,) = client.compute([program.result])
        client_processing = client.finish(result, local_type(program.type.result))
        return cls(program.type, compute_server_context, client_processing)

    def decompile(self) -> Lambda:
        writer = RoundWriter(self.type_signature)
        state, data = writer.state(), writer.data()
        received = writer.broadcast_each(self.compute_server_context, state)
        zipped = zip_placed(pack((received, data)), CLIENTS)
        return writer.close(writer.bind("output", apply(self.client_processing, zipped)))

    def steps(self, runtime: Runtime) -> BroadcastSteps:
        return BroadcastSteps(self, runtime)


class BroadcastSteps(RoundSteps):
    """The state stays as it is, and every client's update is its output."""

    def __init__(self, form: BroadcastForm, runtime: Runtime) -> None:
        self._form = form
        self._run = runtime.run
        self.state_type = parameter(form.compute_server_context)
        self.sent_type, self.data_type = struct(parameter(form.client_processing))
        self.output_type = StructType([])
        self.client_output_type = signature(form.client_processing).result
        self.batches = BatchSteps((), lambda: _link_graphs(form))

    def prepare(self, state: Value) -> tuple[Value, Value]:
        return state, self._run(self._form.compute_server_context, state)

    def work(self, data: Value, sent: Value) -> Value:
        return self._run(self._form.client_processing, (sent, data))

    def client_output(self, update: Value) -> Value:
        return update

    def finish(self, carried: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        return carried, ()


def _link_graphs(form: BroadcastForm) -> ClientGraphs:
    """Return the graphs for many clients; nothing is accumulated."""
    processing, nothing = signature(form.client_processing), StructType([])
    context, data = struct(processing.parameter)
    take, merge = GraphBuilder(), GraphBuilder()
    parameter = StructType([nothing, StructType([data, context])])
    held, received = elements(elements(take.parameter(parameter))[1])
    output = take.call(form.client_processing, (received, held))
    merge.parameter(StructType([nothing, nothing]))
    return ClientGraphs(
        take.finish(((), output), StructType([nothing, processing.result])),
        merge.finish((), nothing),
    )
