"""Programs of TFF's own libraries as rounds: a server state and clients' data in and out."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import tempfile
from typing import Any

import tffc as tff
from tests.tff import record
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import cases
from tffc.backends.bundle.bundle import write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.language.types import CLIENTS, SERVER, FederatedType, StructType, Type
from tffc.passes.table import default_pipeline

FORMS = ("mapreduce", "distribute-aggregate")


@dataclasses.dataclass(frozen=True)
class ProgramRound:
    """A computation of one round, and the clients' data of each.

    The output is a struct of those elements of the program's result that are not the state.

    Attributes:
      state: Where the state is in the program's result; None if it has none.
      outputs: Where the elements of the output are in the program's result, by their names.
    """

    computation: Any
    initialize: Any
    data: list[list[Any]]
    state: str | None
    outputs: dict[str, str]


def as_bundles(program: Any) -> dict[str, list[dict[str, Any]]] | None:
    """Compile a program to each form, try the form on one case, and run its rounds as a bundle.

    Returns the tensors that each round gives, by their paths in the program's result; None if the
    program is not a round.
    """
    round_ = round_of(program)
    if round_ is None:
        return None
    node = round_.computation.node
    first = round_.initialize and round_.initialize.node
    found = {}
    for form in FORMS:
        assert (
            validate(node, cases(node.type.parameter, 1, seed=0), default_pipeline(), form).trials
            == 1
        )
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / form
            write_bundle(compile_bundle(node, form, initialize=first), path)
            found[form] = run(path, round_)
    return found


def run(path: pathlib.Path, round_: ProgramRound) -> list[dict[str, Any]]:
    """The tensors that each round of a bundle gives on the local engine."""
    bundle = tff.load(path)
    state, given = None, []
    for data in round_.data:
        (done,) = tff.run(bundle, data, 1, state=state)
        state = done
        values = {path: done.output[name] for name, path in round_.outputs.items()}
        if round_.state is not None:
            values[round_.state] = done.state
        given.append(
            {
                f"{place}.{path}".strip("."): leaf
                for place, value in values.items()
                for path, leaf in tensors(record.leaves(value)).items()
            }
        )
    return given


def tensors(leaves: dict[str, Any]) -> dict[str, Any]:
    """The leaves without the containers: a bundle does not know what Python held its tensors in."""
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, list)}


def round_of(program: Any) -> ProgramRound | None:
    """Return a program as a round; None if nothing in it is at the clients, or the result is."""
    type_ = program.next.type_signature
    arguments = placed(type_.parameter)
    if not all(isinstance(each, FederatedType) for each in arguments):
        return None
    stateful = program.initialize is not None
    at_clients = [each for each in arguments if each.placement is CLIENTS]
    at_server = [each for each in arguments if each.placement is SERVER]
    if not at_clients or len(at_server) != stateful or arguments[: len(at_server)] != at_server:
        return None
    single = len(at_clients) == 1
    data_type = at_clients[0].member if single else [each.member for each in at_clients]
    state_type = at_server[0] if stateful else tff.types.at_server(())
    whole = stateful and isinstance(type_.result, FederatedType)
    paths = [""] if isinstance(type_.result, FederatedType) else paths_of(type_.result)
    state_path = paths.pop(0) if stateful else None
    outputs = {f"at_{path}": path for path in paths}

    @tff.federated_computation(state_type, tff.types.at_clients(data_type))
    def round_(state: Any, data: Any) -> Any:
        values = [data] if single else [data[i] for i in range(len(at_clients))]
        result = program.next(*([state] if stateful else []), *values)
        if whole:
            return result, tff.federated_value((), tff.SERVER)
        parts = [result]
        if not isinstance(type_.result, FederatedType):
            parts = [result[i] for i in range(len(type_.result))]
        following = parts.pop(0) if stateful else state
        output = collections.OrderedDict(zip(outputs, parts, strict=True))
        return following, tff.federated_zip(output)

    data = [list(r[0]) if single else list(zip(*r, strict=True)) for r in program.rounds]
    return ProgramRound(round_, program.initialize, data, state_path, outputs)


def placed(type_: Type) -> list[Any]:
    return list(type_.types) if isinstance(type_, StructType) else [type_]


def paths_of(type_: Type) -> list[str]:
    assert isinstance(type_, StructType)
    return [name or str(index) for index, (name, _) in enumerate(type_.items())]
