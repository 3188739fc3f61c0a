"""Loads serialized computations in TFF 0.87, prints them, and runs them; no part of tffc is here.

    python peer_side.py FOLDER

The folder has NAME.pb and NAME.json, the argument; what came of each is written to answers.json.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import signal
import sys
from typing import Any

import numpy as np

# Only where it is installed.
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

# Only where it is installed.
from tensorflow_federated.proto.v0 import computation_pb2  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

PATIENCE = 20
"""Seconds for a run: some computations make TFF's runtime wait for ever."""


def value_of(encoded: Any, type_: Any) -> Any:
    """The value of a type that stands in the file."""
    if isinstance(type_, tff.FederatedType):
        if type_.all_equal:
            return value_of(encoded, type_.member)
        return [value_of(each, type_.member) for each in encoded]
    if isinstance(type_, tff.SequenceType):
        return [value_of(each, type_.element) for each in encoded]
    if isinstance(type_, tff.StructType):
        parts = zip(tff.structure.to_elements(type_), encoded, strict=True)
        pairs = [(name, value_of(each, inner)) for (name, inner), each in parts]
        if pairs and all(name for name, _ in pairs):
            return collections.OrderedDict(pairs)
        return tff.structure.Struct(pairs)
    shape, numbers = encoded
    if type_.dtype.type is np.str_:
        array = np.array([*(text.encode("latin-1") for text in numbers), None], object)[:-1]
    else:
        array = np.array([complex(*n) if isinstance(n, list) else n for n in numbers], type_.dtype)
    return array.reshape(shape)[()]


def encoded_of(value: Any, type_: Any) -> Any:
    """What stands for a value of a type in a file."""
    if isinstance(type_, tff.FederatedType):
        if type_.all_equal:
            return encoded_of(value, type_.member)
        return [encoded_of(each, type_.member) for each in value]
    if isinstance(type_, tff.SequenceType):
        return [encoded_of(each, type_.element) for each in value]
    if isinstance(type_, tff.StructType):
        parts = list(value.values() if isinstance(value, dict) else value)
        types = [inner for _, inner in tff.structure.to_elements(type_)]
        return [encoded_of(each, inner) for each, inner in zip(parts, types, strict=True)]
    if not isinstance(type_, tff.TensorType):
        raise TypeError(f"a file has no values of type {type_}")
    array = np.asarray(value)
    flat = array.reshape(-1).tolist()
    return [list(array.shape), [_number(each) for each in flat]]


def _number(value: Any) -> Any:
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else value


def answer(file: pathlib.Path) -> dict[str, Any]:
    message = computation_pb2.Computation.FromString(file.read_bytes())
    computation = tff.framework.deserialize_computation(message)
    type_ = computation.type_signature
    text = re.sub(r"comp#[0-9a-f]+", "comp#", str(computation.to_building_block()))
    found = {"text": text, "type": str(type_)}
    argument = json.loads(file.with_suffix(".json").read_text())
    if argument is None:
        return found
    signal.alarm(PATIENCE)
    try:
        values = [] if type_.parameter is None else [value_of(argument, type_.parameter)]
        found["result"] = encoded_of(computation(*values), type_.result)
    except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
        found["refused"] = f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return found


def give_up(*_: object) -> None:
    raise TimeoutError(f"no result after {PATIENCE} s")


def main() -> None:
    signal.signal(signal.SIGALRM, give_up)
    folder = pathlib.Path(sys.argv[1])
    answers = {}
    for file in sorted(folder.glob("*.pb")):
        try:
            answers[file.stem] = answer(file)
        except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
            answers[file.stem] = {"unread": f"{type(error).__name__}: {error}"}
    (folder / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
