"""BroadcastForm: a round that sends something to the clients and gets nothing back.

    c  = compute_server_context(s)
    yi = client_processing((c, di))

What a client computes stays with it, and the state stays as it is.  Nothing that such a round
returns can depend on an aggregation: it would have to be broadcast, which is refused when stages
are assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tffc.backends.forms.component import ComponentBuilder, elements
from tffc.backends.forms.form import (
    Form,
    Side,
    connect,
    pair,
    parameter,
    runs_at,
    signature,
    struct,
)
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import check_parameters, place_of_result, wrong_signature
from tffc.backends.forms.stages import Stage, assign_stages
from tffc.backends.forms.steps import ClientGraphs, RoundSteps, Runtime, Value
from tffc.ir.calls import apply, operands, pack, zip_placed
from tffc.ir.nodes import Compiled, Lambda, Node
from tffc.ir.type_parts import local_type
from tffc.ir.types import CLIENTS, FederatedType, StructType
from tffc.linking.builder import GraphBuilder

SIGNATURE = "(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)"


@dataclass(frozen=True, slots=True)
class BroadcastForm(Form):
    """A round as two local computations; see the picture at the top of this module.

    `type_signature` is `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.
    """

    output = CLIENTS

    compute_server_context: Compiled = field(metadata=runs_at(Side.SERVER))
    client_processing: Compiled = field(metadata=runs_at(Side.CLIENTS))

    def _check_connections(self) -> None:
        context, data = pair(
            signature(self.client_processing).parameter, "client_processing", "parameter"
        )
        state, held = pair(self.type_signature.parameter, "the round", "parameter")
        wanted = signature(self.compute_server_context).parameter
        connect("the state", local_type(state), "compute_server_context", wanted)
        produced = signature(self.compute_server_context).result
        connect("compute_server_context's result", produced, "client_processing", context)
        connect("clients' data", local_type(held), "client_processing", data)

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
                place_of_result(program),
            )

    @classmethod
    def build(cls, program: Node, *, allow_impure_duplicates: bool = False) -> BroadcastForm:
        staged = assign_stages(program)
        broadcasts = staged.of_stage(Stage.BROADCAST)
        purity = None if allow_impure_duplicates else Purity(cls)
        state, data = (local_type(each) for each in struct(staged.type.parameter))
        sent = [node for call in broadcasts for node in operands(call.call)]
        context = StructType([local_type(node.type) for node in sent])

        server = ComponentBuilder(staged, "compute_server_context", state, purity)
        server.scope(state=server.parameter)
        compute_server_context = server.finish(server.compute(sent), context)

        client = ComponentBuilder(staged, "client_processing", StructType([context, data]), purity)
        received, held = elements(client.parameter)
        client.scope(data=held)
        client.give(broadcasts, received)
        (result,) = client.compute([staged.result])
        client_processing = client.finish(result, local_type(staged.result.type))
        return cls(staged.type, compute_server_context, client_processing)

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
        self.data_type = struct(parameter(form.client_processing))[1]
        self.output_type = StructType([])
        self.client_output_type = signature(form.client_processing).result
        self.batches = _BroadcastBatches(form)

    def prepare(self, state: Value) -> tuple[Value, Value]:
        return state, self._run(self._form.compute_server_context, state)

    def work(self, data: Value, sent: Value) -> Value:
        return self._run(self._form.client_processing, (sent, data))

    def finish(self, kept: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        return kept, ()


class _BroadcastBatches:
    """See `BatchSteps`: nothing is accumulated, and what each client gives stays with it."""

    def __init__(self, form: BroadcastForm) -> None:
        self._form = form

    def graphs(self) -> ClientGraphs:
        processing, nothing = signature(self._form.client_processing), StructType([])
        context, data = struct(processing.parameter)
        take, merge = GraphBuilder(), GraphBuilder()
        given = StructType([nothing, StructType([data, context])])
        held, received = elements(elements(take.parameter(given))[1])
        output = take.call(self._form.client_processing, (received, held))
        merge.parameter(StructType([nothing, nothing]))
        return ClientGraphs(
            take.finish(((), output), StructType([nothing, processing.result])),
            merge.finish((), nothing),
        )

    def graph_sent(self, sent: Value) -> Value:
        return sent

    def graph_accumulator(self, totals: list[Value]) -> Value:
        return ()

    def totals(
        self, accumulator: Value, given: Sequence[Value], clients: Sequence[str], kept: Value
    ) -> list[Value]:
        return []

    def outputs(self, given: Sequence[Value]) -> Sequence[Value]:
        return [output for (output,) in given]
