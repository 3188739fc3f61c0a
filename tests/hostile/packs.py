"""Packs that are damaged, or that change while they are read.

A damaged pack is refused, or all that it gives can be read.  If a pack changes at some moment after
it was opened, each client has the values that it had, or is refused: no client gets anything else.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import filecmp
import functools
import json
import os
import pathlib
import pickle
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

from tests.hostile.tampered_runs import TEXTS, VALUES, parts
from tffc.language import SequenceType, Type, to_type
from tffc.runtime.data import packed, packing
from tffc.runtime.data.groups import read_groups
from tffc.runtime.data.location import open_data, open_source
from tffc.runtime.data.packed import PackedFolder
from tffc.runtime.data.packing import write_pack
from tffc.support.errors import DataError, TffcError

TYPES: Sequence[Type] = (
    to_type(collections.OrderedDict(x=(np.float32, [None, 2]), n=np.int32, s=np.str_)),
    SequenceType(collections.OrderedDict(x=(np.float32, [2]), n=np.int32, s=np.str_)),
    SequenceType(np.bool_),
)

CLIENTS = [f"client {number}" for number in range(5)]


def arrays(type_: Type, client: int, other: bool) -> dict[str, Any]:
    """What a client has; what other data holds there has the same size."""
    size, first = client % 3 + 1, 100 * client + 10 * other
    if type_ is TYPES[2]:
        return {"arr_0": (np.arange(size * 3) + other) % 2 == 0}
    text = "other" if other else "texts"
    x = np.arange(first, first + 2 * size, dtype=np.float32).reshape(size, 2)
    if type_ is TYPES[0]:
        return {"x": x, "n": np.int32(first), "s": np.bytes_(text)}
    return {
        "x": x,
        "n": np.arange(first, first + size, dtype=np.int32),
        "s": [text.encode()] * size,
    }


@functools.cache
def prepared(number: int) -> str:
    """A folder with two packs of a type, whose files have the same sizes, and a smaller one."""
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    with mock.patch.object(packing, "BATCH_CLIENTS", 2):
        for name, clients in (("pack", CLIENTS), ("other", CLIENTS), ("small", CLIENTS[:3])):
            os.mkdir(f"{place}/data")
            for at, client in enumerate(clients):
                np.savez(f"{place}/data/{client}.npz", **arrays(TYPES[number], at, name == "other"))
            write_pack(open_data(f"{place}/data"), None, pathlib.Path(place, name))
            shutil.rmtree(f"{place}/data")
    return place


def plain(value: Any) -> Any:
    """A value to compare."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, bytes | str):
        return [plain(each) for each in value]
    return value


def run_case(seed: int, case: int) -> bool:
    """Damage or change a pack; return whether a client was read.

    Raises:
      AssertionError: a client gets other values than it had.
      Exception: reading fails in another way than by a refusal.
    """
    generator = random.Random(f"packs {seed} {case}")
    number = generator.randrange(len(TYPES))
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        shutil.copytree(prepared(number), name, dirs_exist_ok=True)
        if generator.random() < 0.5:
            return _damaged(generator, TYPES[number])
        return _changing(generator, TYPES[number])


# Damage before a pack is opened.


def _damaged(generator: random.Random, type_: Type) -> bool:
    for _ in range(generator.choice((1, 1, 2))):
        damage = generator.choice(DAMAGES)
        with contextlib.suppress(ValueError, LookupError, TypeError):
            # What was damaged before may not be JSON any more.
            damage(generator)
        if damage is _put_another_kind:
            break
    with contextlib.suppress(TffcError):
        data = open_data("pack")
        data.kinds()
        source = data.typed(type_)
        for each in source.clients:
            with contextlib.suppress(DataError):
                source.check(each)
                source.read(each)
        read_groups(source, type_, list(source.clients))
        return True
    return False


def _damage_bytes(generator: random.Random) -> None:
    content = bytearray(pathlib.Path("pack/clients.arrow").read_bytes())
    for _ in range(generator.choice((1, 1, 8))):
        at = generator.randrange(len(content))
        content[at] = generator.choice((0, 255, 128, content[at] ^ 1, generator.randrange(256)))
    pathlib.Path("pack/clients.arrow").write_bytes(content)


def _damage_words(generator: random.Random) -> None:
    content = bytearray(pathlib.Path("pack/clients.arrow").read_bytes())
    at = generator.randrange(len(content) // 8) * 8
    word = generator.choice(
        (0, 1, -1, 2**31, 2**62, -(2**62), len(content), generator.randrange(99))
    )
    content[at : at + 8] = word.to_bytes(8, "little", signed=True)
    pathlib.Path("pack/clients.arrow").write_bytes(content)


def _cut_or_append(generator: random.Random) -> None:
    path = pathlib.Path("pack/clients.arrow")
    content = path.read_bytes()
    size = generator.choice((generator.randrange(len(content)), generator.randrange(20)))
    path.write_bytes(generator.choice((content[:size], content + content[size:], content[size:])))
    if generator.random() < 0.8:
        manifest = json.loads(pathlib.Path("pack/pack.json").read_text())
        manifest["bytes"] = path.stat().st_size
        pathlib.Path("pack/pack.json").write_text(json.dumps(manifest))


def _change_manifest(generator: random.Random) -> None:
    path = pathlib.Path("pack/pack.json")
    value = json.loads(path.read_text())
    container, key = generator.choice(parts(value))
    kind = generator.randrange(3)
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = generator.choice(VALUES)
    else:
        other, place = generator.choice(parts(value))
        container[key] = json.loads(json.dumps(other[place]))
    path.write_text(json.dumps(value))


def _change_manifest_text(generator: random.Random) -> None:
    path = pathlib.Path("pack/pack.json")
    content = path.read_bytes()
    at = generator.randrange(len(content))
    path.write_bytes(
        content[:at] + generator.choice(TEXTS) + content[at + generator.randrange(9) :]
    )


def _mix(generator: random.Random) -> None:
    file = generator.choice(("pack.json", "clients.arrow"))
    shutil.copy(f"{generator.choice(('other', 'small'))}/{file}", f"pack/{file}")
    if not any(_has_files_of(name) for name in ("other", "small")):
        with contextlib.suppress(DataError):
            PackedFolder("pack")
            raise AssertionError("files of two packs are taken for one")


def _has_files_of(name: str) -> bool:
    files = ("pack.json", "clients.arrow")
    return all(filecmp.cmp(f"{name}/{each}", f"pack/{each}", shallow=False) for each in files)


def _put_another_kind(generator: random.Random) -> None:
    path = pathlib.Path("pack", generator.choice(("pack.json", "clients.arrow")))
    if os.path.lexists(path):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    name = f"../other/{path.name}"
    generator.choice(
        (
            lambda: os.mkfifo(path),
            path.mkdir,
            lambda: path.symlink_to(name),
            lambda: path.symlink_to("/dev/zero"),
            lambda: path.symlink_to(path.name),
            lambda: (path.touch(), os.truncate(path, 2**40)),
        )
    )()


DAMAGES: Sequence[Callable[[random.Random], object]] = (
    _damage_bytes,
    _damage_bytes,
    _damage_words,
    _damage_words,
    _cut_or_append,
    _change_manifest,
    _change_manifest_text,
    _mix,
    _put_another_kind,
)


# Changes after a pack was opened.


def _changing(generator: random.Random, type_: Type) -> bool:
    """Read clients in different ways, and change the pack before one of the reads or in it."""
    source = open_source("pack", type_)
    expected = {client: plain(source.read(client)) for client in CLIENTS}
    left = generator.randrange(12)
    change = generator.choice(ALTERATIONS)
    read = packed._Part.read

    def changing_read(*given: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            change(generator)
        found = read(*given)
        if left == -1:
            change(generator)
        return found

    done = False
    with mock.patch.object(packed._Part, "read", changing_read):
        for at in range(6):
            if left == at:
                change(generator)
                left = -2
            with contextlib.suppress(DataError):
                done |= _read_somehow(generator, source, type_, expected)
    return done


def _read_somehow(
    generator: random.Random, source: Any, type_: Type, expected: dict[str, Any]
) -> bool:
    kind = generator.randrange(4)
    client = generator.choice(CLIENTS)
    if kind == 0:
        assert plain(source.read(client)) == expected[client]
    elif kind == 1:
        source.check(client)
        source.data.kinds()
    elif kind == 2:
        again = pickle.loads(pickle.dumps(source))
        assert plain(again.read(client)) == expected[client]
    else:
        asked = generator.sample(CLIENTS, 3)
        found = source.read_groups(asked)
        for group in found.groups:
            for row, position in enumerate(group.positions.tolist()):
                had = plain(source.layout.decode(_row(source, group, row), "its row"))
                assert had == expected[asked[position]]
    return True


def _row(source: Any, group: Any, row: int) -> dict[str, Any]:
    fields = zip(source.layout.fields, group.columns, strict=True)
    return {field.name: np.asarray(column[row]) for field, column in fields}


def _alter_in_place(generator: random.Random) -> None:
    path = pathlib.Path("pack/clients.arrow")
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(generator.randrange(status.st_size))
        file.write(os.urandom(generator.choice((1, 64))))
        file.truncate(status.st_size)
    # Somebody may hide it.
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace_content(generator: random.Random) -> None:
    with pathlib.Path("pack/clients.arrow").open("r+b") as file:
        file.write(pathlib.Path("other/clients.arrow").read_bytes())


ALTERATIONS: Sequence[Callable[[random.Random], object]] = (
    _alter_in_place,
    _replace_content,
    lambda generator: os.truncate("pack/clients.arrow", generator.choice((0, 1, 64, 700, 4096))),
    lambda _: os.system("cat other/clients.arrow >> pack/clients.arrow"),
    lambda _: shutil.copy("other/clients.arrow", "pack/clients.arrow"),
    lambda _: os.replace("other/clients.arrow", "pack/clients.arrow"),
    lambda _: (os.rename("pack", "gone"), os.rename("other", "pack")),
    lambda _: shutil.rmtree("pack"),
    lambda _: os.unlink("pack/pack.json"),
)
