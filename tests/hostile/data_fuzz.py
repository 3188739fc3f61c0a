"""Damaged data files of every kind, and what becomes of them when they are read.

`python -m tests.hostile.data_fuzz --count 100000 --seed 7 npz` makes a long run.  A case is known
by its kind, the seed and its number, and `--case` shows one again.
"""

from __future__ import annotations

import argparse
import collections
import functools
import io
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import random
import resource
import signal
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations import damaged_bytes
from tests.records import example, framed
from tffc.language import SequenceType, StructType, TensorType, Type
from tffc.runtime.data.location import open_data, open_source
from tffc.support.errors import DataError

FINE, REFUSED, DEFECT = "fine", "data error", "DEFECT"

SECONDS = 60
"""A file is read or refused in less time, also on a machine that others use."""

MEGABYTES = 1500
"""Reading a file takes less memory."""

ROW = StructType([("x", TensorType(np.float32)), ("n", TensorType(np.int32)), ("s", np.str_)])
TYPES: list[Type] = [
    SequenceType(ROW),
    SequenceType(TensorType(np.float32)),
    ROW,
    SequenceType(StructType([("v", TensorType(np.float32, [None])), ("n", np.int32)])),
]
CLIENTS = ("ada", "bob", "céline")


def mutated_files(kind: str, seed: int, count: int) -> Iterator[bytes]:
    """The contents of so many damaged files of a kind."""
    return (mutated_file(kind, seed, case) for case in range(count))


def mutated_file(kind: str, seed: int, case: int) -> bytes:
    """The content of the damaged file with this number."""
    return MUTATIONS[kind](random.Random(f"{kind} {seed} {case}"))


def rows() -> list[dict[str, Any]]:
    """Rows of three clients."""
    return [
        {"client": CLIENTS[n % 3], "x": n / 2, "n": n, "s": f"s{n}", "v": [1.0, n]}
        for n in range(12)
    ]


@functools.cache
def arrays() -> list[dict[str, np.ndarray[Any, Any]]]:
    """What `.npz` files that fit one of the types or another hold."""
    numbers = np.arange(4, dtype=np.float32)
    return [
        {"x": numbers, "n": np.arange(4, dtype=np.int32), "s": np.array(["a", "b", "c", "d"])},
        {"arr_0": numbers},
        {"x": np.float32(1), "n": np.int32(1), "s": np.array(b"one")},  # pyright: ignore  # NumPy's scalars are arrays here
        {"v": np.asfortranarray(np.ones((4, 3), np.float32)), "n": np.arange(4, dtype=">i4")},
        {
            "x": numbers,
            "n": np.arange(4, dtype=np.int32),
            "s.bytes": np.zeros(4, np.uint8),
            "s.lengths": np.ones(4, np.int64),
        },
    ]


HEADS = (
    b"{", b"(", b")", b"[", b"-", b"True", b"None", b"'descr'", b"'shape'", b"'<f4'", b"'|O'",
    b"'<U9'", b"'|S0'", b"'<M8[ns]'", b"[('a', '<f4')]", b"(4,)", b"(99999999999,)", b"(-1,)",
    b"(2, 2)", b"1e9", b"9" * 5000, b"\\x00", b"{" * 300, b"(" * 3000, b"'<f4', (2,)", b"\n", b"",
)  # fmt: skip


def mutated_npz(generator: random.Random) -> bytes:
    """A damaged zip file, or a whole one with damaged arrays in it."""
    chosen = generator.choice(arrays())
    method = generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    damaged = generator.choice(("zip", "array", "head"))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        for name, array in chosen.items():
            content = io.BytesIO()
            np.lib.format.write_array(
                content, np.asanyarray(array), version=generator.choice(((1, 0), (2, 0), (3, 0)))
            )
            made = content.getvalue()
            if damaged == "array" and generator.random() < 0.5:
                made = damaged_bytes(generator, [made])
            elif damaged == "head":
                made = damaged_head(generator, made)
            file.writestr(f"{name}.npy", made)
    return damaged_bytes(generator, [target.getvalue()]) if damaged == "zip" else target.getvalue()


def damaged_head(generator: random.Random, made: bytes) -> bytes:
    """An array with another text in its head, whose length is right."""
    size = 2 if made[6] == 1 else 4
    length = int.from_bytes(made[8 : 8 + size], "little")
    text, rest = made[8 + size : 8 + size + length], made[8 + size + length :]
    for _ in range(generator.choice((1, 1, 2, 4))):
        start, end = sorted(generator.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + generator.choice((0, 1, 5, 20)))
        text = text[:start] + generator.choice(HEADS) + text[end:]
    if size == 2:
        text = text[:65535]
    return made[:8] + len(text).to_bytes(size, "little") + text + rest


CELLS = (
    "", " ", "1e400", "-1e39", "9" * 5000, "nan", "inf", "0x1", "1_0", "\0", '"', '""', '"a\nb"',
    "\r", "\r\n", "\n", ",", ";", "\ufeff", "é", "\U0001f600", "1 2 3", "x" * 140_000, "client",
)  # fmt: skip


def mutated_csv(generator: random.Random) -> bytes:
    """A table with other cells, lines and bytes."""
    lines = ["client,x,n,s,v", *(f"{r['client']},{r['x']},{r['n']},{r['s']},1 2" for r in rows())]
    words = [word for line in lines for word in (*line.replace(",", "\t,\t").split("\t"), "\n")]
    for _ in range(generator.choice((1, 2, 3, 8))):
        at = generator.randrange(len(words))
        words[at : at + generator.choice((0, 1, 1, 2))] = [generator.choice(CELLS)]
    content = "".join(words).encode()
    return damaged_bytes(generator, [content]) if generator.random() < 0.4 else content


@functools.cache
def parquet_files() -> list[bytes]:
    """Files of several encodings and compressions."""
    table = pa.Table.from_pylist(
        rows(),
        pa.schema(
            {
                "client": pa.string(),
                "x": pa.float32(),
                "n": pa.int32(),
                "s": pa.string(),
                "v": pa.list_(pa.float32()),
            }
        ),
    )
    made = []
    for compression in ("none", "snappy", "gzip", "zstd"):
        for options in ({}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
            target = io.BytesIO()
            given: dict[str, Any] = {**options, "compression": compression, "row_group_size": 5}
            pq.write_table(table, target, **given)
            made.append(target.getvalue())
    return made


def mutated_parquet(generator: random.Random) -> bytes:
    """A file with other bytes, in its pages or in what it says of them."""
    made = bytearray(generator.choice(parquet_files()))
    footer = len(made) - 8 - int.from_bytes(made[-8:-4], "little")
    if generator.random() < 0.2:
        return damaged_bytes(generator, [bytes(made)])
    first, last = generator.choice(((4, footer), (footer, len(made) - 8), (4, len(made))))
    for _ in range(generator.choice((1, 1, 2, 5, 20))):
        made[generator.randrange(first, last)] = generator.randrange(256)
    return bytes(made)


def mutated_tfrecord(generator: random.Random) -> bytes:
    """A file with damaged records, whose checksums are right in most."""
    records = [example(row | {"v": 1.0}) for row in rows()]
    content = b""
    for record in records:
        length = None
        changed = record
        if generator.random() < 0.15:
            changed = damaged_bytes(generator, records)
        if generator.random() < 0.02:
            length = generator.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1))
        content += framed(changed, length)
    return damaged_bytes(generator, [content]) if generator.random() < 0.2 else content


MUTATIONS = {
    "npz": mutated_npz,
    "csv": mutated_csv,
    "parquet": mutated_parquet,
    "tfrecord": mutated_tfrecord,
}

FILES = {"npz": "d/ada.npz", "csv": "d.csv", "parquet": "d.parquet", "tfrecord": "d.tfrecord"}
LOCATIONS = {
    "npz": ["npz:d"],
    "csv": ["csv:d.csv", "csv:d.csv?columns=x", "csv:d.csv?delimiter=;"],
    "parquet": ["parquet:d.parquet", "parquet:d.parquet?columns=x", "parquet:d.parquet?client=n"],
    "tfrecord": ["tfrecord:d.tfrecord?client=client", "tfrecord:d.tfrecord?columns=x"],
}


def read(kind: str, content: bytes) -> str:
    """The verdict on a file that is read in the working directory in every way, each type in turn.

    Raises:
      Exception: what is not data error.
    """
    path = pathlib.Path(FILES[kind])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    found = {_read(location, type) for location in LOCATIONS[kind] for type in TYPES}
    return FINE if FINE in found else REFUSED


def _read(location: str, type: Type) -> str:
    found = REFUSED
    try:
        open_data(location).kinds()
        source = open_source(location, type)
    except DataError:
        return REFUSED
    for client in source.clients:
        try:
            source.check(client)
            source.read(client)
            found = FINE
        except DataError as error:
            str(error)
    return found


def verdicts(kind: str, seed: int, cases: Iterable[int]) -> Iterator[tuple[int, str, str]]:
    """The number, the verdict and the traceback of each case, read in another process.

    That process is killed when it takes too long; if it dies, the case is a defect too.
    """
    waiting = collections.deque(cases)
    context = multiprocessing.get_context("spawn")
    while waiting:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, kind, seed, list(waiting)))
        process.start()
        theirs.close()
        while waiting:
            try:
                found = ours.recv() if ours.poll(60) else (DEFECT, "no answer")
            except EOFError:
                process.join()
                found = (DEFECT, f"the process ended with {process.exitcode}")
            yield waiting.popleft(), found[0], found[1]
            if found[0] == DEFECT and not found[1].startswith("Traceback"):
                break
        process.kill()
        process.join()


def _work(pipe: multiprocessing.connection.Connection, kind: str, seed: int, cases: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in cases:
            pipe.send(_judged(kind, mutated_file(kind, seed, case)))


def _judged(kind: str, content: bytes) -> tuple[str, str]:
    signal.alarm(SECONDS)  # which kills the process
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        found = read(kind, content)
    except BaseException:  # noqa: BLE001  (it is what is looked for)
        return DEFECT, traceback.format_exc()
    finally:
        signal.alarm(0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    if grown > MEGABYTES:
        return DEFECT, f"Traceback: none, but {grown} megabytes"
    return found, f"{time.monotonic() - started:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(MUTATIONS))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    given = parser.parse_args()
    for kind in given.kinds:
        cases = range(given.count) if given.case is None else [given.case]
        counts: collections.Counter[str] = collections.Counter()
        for case, verdict, said in verdicts(kind, given.seed, cases):
            counts[verdict] += 1
            if verdict == DEFECT or given.case is not None:
                print(f"{kind} --seed {given.seed} --case {case}: {verdict}\n{said}", flush=True)
        print(kind, dict(counts), flush=True)


if __name__ == "__main__":
    main()
