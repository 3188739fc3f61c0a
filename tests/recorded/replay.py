"""What tffc writes, loaded and run in TFF 0.87: every program that both trace.

    TFFC_PEER_PYTHON=PYTHON python -m tests.recorded.replay

The interpreter has to have TFF 0.87.  Prints what differs and the counts; the exit code is 1 if TFF
cannot read a program, prints it or its type otherwise, or computes another result.
"""

from __future__ import annotations

import collections
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

import tffc as tff
from tests.recorded import programs, record
from tffc.assurance.validation.arguments import Maker, Numbers
from tffc.language import Node
from tffc.language.types import (
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.language.values.concrete import Federated, to_value
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import TffcError

PEER_SIDE = pathlib.Path(__file__).with_name("peer_side.py")
CLIENTS = 3

Answer = dict[str, Any]


def encoded(value: Any, type_: Type) -> Any:
    """What stands for a value in a file, as `peer_side` reads it; values as the interpreter's."""
    match type_:
        case FederatedType():
            assert isinstance(value, Federated)
            members = [encoded(each, type_.member) for each in value.members]
            return members[0] if type_.all_equal else members
        case SequenceType():
            return [encoded(each, type_.element) for each in value]
        case StructType():
            return [encoded(each, t) for each, t in zip(value, type_.types, strict=True)]
        case TensorType():
            array = np.asarray(value)
            return [list(array.shape), [_number(each) for each in array.reshape(-1).tolist()]]
    raise TypeError(f"a file has no values of type `{type_}`")


def _number(value: Any) -> Any:
    if isinstance(value, complex):
        return [value.real, value.imag]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def same(one: Any, other: Any) -> bool:
    """Whether two encoded values are equal; numbers with a point up to 1e-5 of them."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-5)
    return one == other


def written(folder: pathlib.Path) -> dict[str, tuple[str, Answer]]:
    """Writes every program that is traced; by the name of its file, its own name and our answer."""
    language = programs.Language(tff)
    found: dict[str, tuple[str, Answer]] = {}
    for index, (name, program) in enumerate(record.all_programs().items()):
        try:
            computation = program(language)
            message = tff.serialize_computation(computation)
        except Exception:  # noqa: BLE001 - what is refused is compared by test_recorded
            continue
        answer, argument = _answer(computation.to_building_block(), name)
        answer |= record.answer(lambda _, traced=computation: traced, language)
        (folder / f"{index}.pb").write_bytes(message)
        (folder / f"{index}.json").write_text(json.dumps(argument))
        found[str(index)] = name, answer
    return found


def _answer(node: Node, name: str) -> tuple[Answer, Any]:
    """What the interpreter gives for an argument of the program's type, and that argument."""
    type_ = node.type
    assert isinstance(type_, FunctionType)
    try:
        if type_.parameter is None:
            return {"result": encoded(to_value(run(node), type_.result), type_.result)}, []
        maker = Maker(CLIENTS, Numbers.SMALL, random.Random(name))
        given = maker.case(type_.parameter).argument
        argument = encoded(to_value(given, type_.parameter), type_.parameter)
        result = encoded(to_value(run(node, given), type_.result), type_.result)
    except (TffcError, TypeError) as error:
        return {"not run": str(error)}, None
    return {"result": result}, argument


def verdict(ours: Answer, theirs: Answer) -> str:
    """How the two answers compare."""
    if "unread" in theirs:
        return f"not read: {theirs['unread']}"
    for key in ("text", "type"):
        if ours[key] != theirs[key]:
            return f"another {key}: {theirs[key]}"
    if "not run" in ours:
        return f"read, not run by tffc: {ours['not run']}"
    if "refused" in theirs:
        return f"read, not run by TFF: {theirs['refused']}"
    return "same" if same(ours["result"], theirs["result"]) else f"another result: {theirs}"


def _run(peer: str, folder: str) -> None:
    """Runs the peer's side, and stops the executor that TFF starts and leaves behind."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""}
    with subprocess.Popen(
        [peer, str(PEER_SIDE), folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as process:
        process.wait()
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise RuntimeError(f"the peer's side failed with exit code {process.returncode}")


def verdicts(peer: str) -> dict[str, tuple[Answer, str]]:
    """By the program's name, our answer and how TFF's compares."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ours = written(folder)
        _run(peer, name)
        theirs = json.loads((folder / "answers.json").read_text())
    return {program: (a, verdict(a, theirs[file])) for file, (program, a) in ours.items()}


def main() -> int:
    found = verdicts(os.environ["TFFC_PEER_PYTHON"])
    kinds = collections.Counter(text.partition(":")[0] for _, text in found.values())
    for name, (ours, text) in found.items():
        if text != "same":
            sys.stdout.write(f"{name}\n    tffc: {ours}\n    {text}\n")
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    sys.stdout.write(f"{counts}\n")
    return int(any(kind.startswith(("another", "not read")) for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
