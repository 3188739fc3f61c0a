"""Readers of clients' data in tables and packs."""

from __future__ import annotations

import functools
import pathlib
import random

import numpy as np

from tests.fuzz.reader import (
    Reader,
    damage_bytes,
    damage_file,
    damage_text,
    folder,
    read_any,
)
from tests.hostile.data_fuzz import TYPES, mutated_csv, parquet_files
from tffc.language import StructType, TensorType
from tffc.runtime.data.location import open_data
from tffc.runtime.data.pack_format import ARROW_FILE, MANIFEST
from tffc.runtime.data.packing import write_pack

PACKED = StructType([("x", TensorType(np.float32, [None])), ("s", np.str_)])


def read_csv(data: bytes) -> bool:
    """Read a CSV file in each of several ways."""
    path = folder("csv") / "d.csv"
    path.write_bytes(data)
    return read_any(
        (f"csv:{path}{options}" for options in ("", "?columns=x", "?delimiter=;")), TYPES
    )


def read_parquet(data: bytes) -> bool:
    """Read a Parquet file in each of several ways."""
    path = folder("parquet") / "d.parquet"
    path.write_bytes(data)
    return read_any(
        (f"parquet:{path}{options}" for options in ("", "?columns=x", "?client=n")), TYPES
    )


def read_pack(data: bytes) -> bool:
    """Read a pack after one of its two files was replaced: the manifest if the first byte is 0."""
    place = _pack()
    name = MANIFEST if data[:1] == b"\0" else ARROW_FILE
    whole = (place / name).read_bytes()
    (place / name).write_bytes(data[1:])
    try:
        return read_any([f"packed:{place}"], [*TYPES, PACKED])
    finally:
        (place / name).write_bytes(whole)


@functools.cache
def _pack() -> pathlib.Path:
    arrays = folder("packed-arrays")
    for name in ("ada", "bob", "céline"):
        np.savez(arrays / f"{name}.npz", x=np.ones(len(name), np.float32), s=np.array(name))
    place = folder("packed") / "pack"
    write_pack(open_data(arrays), None, place)
    return place


def _seed_packs() -> list[bytes]:
    return [b"\0" + (_pack() / MANIFEST).read_bytes(), b"\1" + (_pack() / ARROW_FILE).read_bytes()]


READERS = {
    "csv": Reader(
        read_csv,
        lambda: [mutated_csv(random.Random(seed)) for seed in range(40)],
        damage_text,
        ("a CSV file", "a table of clients"),
    ),
    "parquet": Reader(read_parquet, parquet_files, damage_bytes, ("Parquet files",)),
    "pack": Reader(
        read_pack, _seed_packs, damage_file(b"\0"), ("a pack", "the manifest of a pack")
    ),
}
