"""The peer's counterpart of `tffc compile PROGRAM --form mapreduce -o FOLDER`."""

from __future__ import annotations

import pathlib
import sys

import tensorflow_federated as tff

from benchmarks.peer_side import load

PARTS = (
    "prepare",
    "work",
    "zero",
    "accumulate",
    "merge",
    "report",
    "secure_sum_bitwidth",
    "secure_sum_max_input",
    "secure_modular_sum_modulus",
    "update",
)

if __name__ == "__main__":
    program, folder = map(pathlib.Path, sys.argv[1:3])
    form = tff.backends.mapreduce.get_map_reduce_form_for_computation(load(program))
    folder.mkdir(exist_ok=True)
    for name in PARTS:
        message = getattr(form, name).to_building_block().proto
        (folder / f"{name}.pb").write_bytes(message.SerializeToString())
