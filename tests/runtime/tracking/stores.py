"""What MLflow and Weights & Biases have stored of runs, read without a network."""

from __future__ import annotations

import importlib
import json
import pathlib
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

BLOCK, FILE_HEADER, HEADER = 32768, 7, struct.Struct("<IHB")
"""The layout of the file of an offline run: blocks of records, each whole or in parts."""


class Stored(NamedTuple):
    """A run as a tracker has it: its name, how it ended, parameters, points by the name of a
    metric, and the names of files."""

    name: str
    status: object
    parameters: dict[str, str]
    points: dict[str, list[tuple[int, float]]]
    files: list[str]


def mlflow_runs(uri: str) -> list[Stored]:
    """The runs of the experiment `tffc`."""
    client: Any = importlib.import_module("mlflow").MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("tffc")
    return [_mlflow_run(client, run) for run in client.search_runs([experiment.experiment_id])]


def _mlflow_run(client: Any, run: Any) -> Stored:
    number = run.info.run_id
    history = {name: client.get_metric_history(number, name) for name in run.data.metrics}
    points = {name: [(p.step, p.value) for p in history[name]] for name in history}
    files = [file.path for file in client.list_artifacts(number)]
    return Stored(run.info.run_name, run.info.status, run.data.params, points, files)


def wandb_runs(folder: pathlib.Path) -> list[tuple[str, Stored]]:
    """The offline runs below a folder with their ids, in order of time."""
    return [_wandb_run(file) for file in sorted(folder.rglob("run-*.wandb"))]


def _wandb_run(file: pathlib.Path) -> tuple[str, Stored]:
    messages: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    number = name = ""
    status: object = None
    parameters: dict[str, str] = {}
    points: dict[str, list[tuple[int, float]]] = {}
    files: list[str] = []
    for data in _records(file.read_bytes()):
        record = messages.Record.FromString(data)
        match record.WhichOneof("record_type"):
            case "run":
                number, name = record.run.run_id, record.run.display_name
                update = record.run.config.update
                parameters |= {item.key: json.loads(item.value_json) for item in update}
            case "history":
                for item in record.history.item:
                    key = item.key or "/".join(item.nested_key)
                    if not key.startswith("_"):
                        value = (record.history.step.num, json.loads(item.value_json))
                        points.setdefault(key, []).append(value)
            case "artifact":
                files += [entry.path for entry in record.artifact.manifest.contents]
            case "exit":
                status = record.exit.exit_code
            case _:
                pass
    return number, Stored(name, status, parameters, points, files)


def _records(content: bytes) -> Iterator[bytes]:
    position, whole = FILE_HEADER, b""
    while position + HEADER.size <= len(content):
        left = BLOCK - position % BLOCK
        if left < HEADER.size:
            position += left
            continue
        _, length, kind = HEADER.unpack_from(content, position)
        position += HEADER.size
        whole += content[position : position + length]
        position += length
        if kind in (1, 4):
            yield whole
            whole = b""
