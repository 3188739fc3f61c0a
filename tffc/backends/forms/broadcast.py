"""BroadcastForm read off the stages of a round.

Nothing that a round of this type returns can depend on an aggregation: it would have to be
broadcast, which is refused when stages are assigned.
"""

from __future__ import annotations

from tffc.backends.forms.form import BroadcastForm
from tffc.backends.forms.part import Part, elements
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.stages import Stage, assign_stages
from tffc.ir.calls import operands
from tffc.ir.nodes import Node
from tffc.ir.type_parts import local_type
from tffc.ir.types import StructType


def build_broadcast_form(program: Node, *, allow_impure_duplicates: bool = False) -> BroadcastForm:
    """The BroadcastForm of a call-dominant program `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.

    Raises:
      FormError: the program is no such round, or one that this form cannot express.
    """
    program_round = assign_stages(program)
    broadcasts = program_round.of_stage(Stage.BROADCAST)
    purity = None if allow_impure_duplicates else Purity()
    parameter = program_round.type.parameter
    assert isinstance(parameter, StructType)
    state, data = (local_type(element) for element in parameter)
    sent = [node for step in broadcasts for node in operands(step.call)]
    context = StructType([local_type(node.type) for node in sent])

    server = Part(program_round, "compute_server_context", state, purity)
    server.scope(state=server.parameter)
    server.run(sent)
    compute_server_context = server.finish(tuple(map(server.operand, sent)), context)

    client = Part(program_round, "client_processing", StructType([context, data]), purity)
    received, held = elements(client.parameter)
    client.scope(data=held)
    client.give(broadcasts, received)
    client.run([program_round.result])
    client_processing = client.finish(
        client.operand(program_round.result), local_type(program_round.result.type)
    )
    return BroadcastForm(program_round.type, compute_server_context, client_processing)
