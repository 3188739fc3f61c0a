"""ClientStateForm: a round like that of MapReduceForm, whose clients keep a state of their own.

One round, for the server's state `s`, and the data `d1 ... dn` and states `k1 ... kn` of clients:

    c      = prepare(s)
    ui, ki = work(((di, ki), c))        each: (update, bitwidth, max_input, modulus), and its state

The rest is as in MapReduceForm, from the updates `ui`.  A client's new state stays with the client,
and is the one that it begins its next round with; see `tffc.runtime.engines.client_states`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tffc.backends.forms.form import Connection, End, result_of, struct
from tffc.backends.forms.map_reduce import MapReduceForm, MapReduceSteps
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.signatures import (
    check_new_state,
    check_next_state,
    check_output,
    check_parameters,
    place_of_result,
    wrong_signature,
)
from tffc.backends.forms.steps import Runtime
from tffc.language.calls import element
from tffc.language.nodes import Node
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import CLIENTS, FederatedType, StructType, TensorType, Type

SIGNATURE = "(<S@SERVER,{<D,K>}@CLIENTS> -> <S@SERVER,{K}@CLIENTS,X@SERVER>)"

KEPT = MapReduceForm.work_results
"""The position of a client's new state in the result of `work`."""


@dataclass(frozen=True, slots=True)
class ClientStateForm(MapReduceForm):
    """A round as ten local computations; see the picture at the top of this module.

    `type_signature` is `(<S@SERVER,{<D,K>}@CLIENTS> -> <S@SERVER,{K}@CLIENTS,X@SERVER>)`.
    """

    work_results = KEPT + 1

    def connections(self) -> Iterator[Connection]:
        yield from MapReduceForm.connections(self)
        kept = result_of("work", self.work).element(KEPT, self.work_results)
        yield Connection("a client's new state", kept, self.taken_by_round()[1].element(1))

    def results_of_round(self) -> tuple[End, End]:
        whole = End("the round", "result", self.type_signature.result)
        return self._local(whole.element(0, 3)), self._local(whole.element(2, 3))

    @staticmethod
    def check_signature(program: Node) -> None:
        signature = check_parameters(program, SIGNATURE)
        result = signature.result
        if not isinstance(result, StructType) or len(result) != 3:
            raise wrong_signature(
                "a round whose clients have states returns three values: the new server state, the "
                "new state of each client, and the server output",
                program,
                SIGNATURE,
                "return all three; an empty struct stands for no output",
                at=(),
            )
        check_new_state(program, SIGNATURE)
        kept = result[1]
        if not isinstance(kept, FederatedType) or kept.placement is not CLIENTS:
            raise wrong_signature(
                "the second result of the round, the clients' new states, is one value placed at "
                "the clients",
                program,
                SIGNATURE,
                "join several values with tff.federated_zip",
                at=(1,),
            )
        _check_taken(program, local_type(struct(signature.parameter)[1]), kept)
        check_output(program, result[2], SIGNATURE, 2)

    @classmethod
    def data_type(cls, held: Type) -> Type:
        return struct(held)[0]

    def _written_results(self, writer: RoundWriter, worked: Node, updated: Node) -> Node:
        return writer.results(updated, element(worked, KEPT))

    def steps(self, runtime: Runtime) -> MapReduceSteps:
        return _ClientStateSteps(self, runtime)


def _check_taken(program: Node, held: object, kept: FederatedType) -> None:
    """Check that what a client holds, without its placement, ends in a state such as is kept."""
    if not isinstance(held, StructType) or len(held) != 2:
        raise wrong_signature(
            "what a client holds is a struct of two, its data and its state",
            program,
            SIGNATURE,
            "take the two as arguments after the server state; join several values of the data in "
            "a struct",
        )
    state = held[1]
    check_next_state("a client", state, kept.member, place_of_result(program, 1))
    if not all(isinstance(leaf, TensorType) for leaf in distinct_leaves(state)):
        raise wrong_signature(
            "the state of a client consists of tensors", program, SIGNATURE, "keep no sequences"
        )


class _ClientStateSteps(MapReduceSteps):
    """A client's state is the last part of what it holds, and of what it computes."""

    def __init__(self, form: ClientStateForm, runtime: Runtime) -> None:
        super().__init__(form, runtime)
        self.client_state_type = struct(self.data_type)[1]
        self.client_output_type = struct(self._worked)[KEPT]
