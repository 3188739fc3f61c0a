"""Run folders that somebody changed, handed to the commands that go on with them and show them.

Each case is the folder of a run of two rounds, changed in one to three places, in ways that know
its structure.  Going on must refuse it, without changing anything, or leave what an undisturbed run
leaves; and nothing may be written outside of the folder.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from tests.hostile.kills import contents
from tffc.backends.bundle.bundle import Bundle, write_bundle
from tffc.backends.compiler import compile_bundle
from tffc.cli.application import application
from tffc.language import Node
from tffc.language.notation import parse

PROGRAM = """
(arg: <int32@SERVER,{int32}@CLIENTS> -> (let
  total=federated_sum:({int32}@CLIENTS -> int32@SERVER)(arg[1])
 in <total,total>))
"""

EACH_CLIENT = """
(arg: <int32@SERVER,{int32}@CLIENTS> -> (let
  sent=federated_broadcast:(int32@SERVER -> int32@CLIENTS)(arg[0])
 in federated_zip_at_clients:(<int32@CLIENTS,{int32}@CLIENTS> -> {<int32,int32>}@CLIENTS)(
   <sent,arg[1]>)))
"""

CLIENTS = 4
ROUNDS = 4
"""Two are finished."""

GO_ON = f"run bundle --data data --rounds {ROUNDS} --clients-per-round 2 --seed 7 --out run"
SHOW = ("show run", "show run:1 --to json", "report run -o outside.html")

Root = pathlib.Path
Change = Callable[[random.Random, Root], object]


def bundle_of(form: str) -> Bundle:
    program: Node = parse(EACH_CLIENT if form == "broadcast" else PROGRAM)
    return compile_bundle(program, form)


@functools.cache
def prepared(form: str) -> tuple[str, Mapping[str, bytes | None]]:
    """A folder with a run of two rounds, and what the run leaves that goes on."""
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    with contextlib.chdir(place):
        os.mkdir("data")
        for number in range(CLIENTS):
            np.savez(f"data/{number}.npz", np.int32(number))
        np.savez("first.npz", np.int32(5))
        write_bundle(bundle_of(form), pathlib.Path("bundle"))
        begun = GO_ON.replace(f"--rounds {ROUNDS}", "--rounds 2")
        assert ran(f"{begun} --state-in first.npz").exit_code == 0
        shutil.copytree("run", "kept")
        assert ran(f"{GO_ON} --resume").exit_code == 0
        whole = contents(pathlib.Path("run"))
        shutil.rmtree("run")
        os.rename("kept", "run")
    return place, whole


def ran(command: str) -> Result:
    return CliRunner().invoke(application, command.split())


def run_case(seed: int, case: int) -> bool:
    """Change a run folder and go on with it; return whether that ended with 0.

    Raises:
      AssertionError: a command ends with a defect, a refusal changes the folder, the run goes on to
        something else, or something outside of the folder is written.
    """
    generator = random.Random(f"tampered {seed} {case}")
    form = generator.choice(("distribute-aggregate", "distribute-aggregate", "broadcast"))
    place, whole = prepared(form)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        shutil.copytree(place, name, dirs_exist_ok=True)
        pathlib.Path("outside").mkdir()
        for entry in ("file", "round-3.npz", "round-4.npz", "2.npz"):
            pathlib.Path("outside", entry).write_text("as it was")
        folder = pathlib.Path("run")
        changes = [generator.choice(CHANGES) for _ in range(generator.choice((1, 1, 2, 3)))]
        for change in changes:
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                change(generator, folder)
        told = f"case {case} of seed {seed}: {[each.__name__ for each in changes]}"
        outside = contents(pathlib.Path("outside"))
        before = snapshot(folder)
        for command in SHOW:
            check_code(ran(command), told)
        assert snapshot(folder) == before, told
        result = ran(f"{GO_ON} --resume")
        check_code(result, told)
        assert contents(pathlib.Path("outside")) == outside, told
        if result.exit_code:
            assert snapshot(folder) == before, f"{told}: {result.stderr}"
        elif not set(changes) & set(FORGED):
            check_whole(contents(folder), whole, before, told)
        return result.exit_code == 0


def check_code(result: Result, told: str) -> None:
    assert isinstance(result.exception, SystemExit | None), (told, result.exception)
    assert result.exit_code in (0, 1), f"{told}: {result.exit_code}, {result.stderr}"
    if result.exit_code:
        assert "error[E" in result.stderr, f"{told}: {result.stderr}"


def check_whole(
    found: Mapping[str, bytes | None],
    whole: Mapping[str, bytes | None],
    before: Mapping[str, object],
    told: str,
) -> None:
    """Check what goes on: all that the run reads or writes is that of an undisturbed one.

    Results of earlier rounds are not read again, and what is no name of a run is let be.
    """
    for name, content in whole.items():
        is_earlier = any(part.startswith(("round-1", "round-2")) for part in name.split("/"))
        if not is_earlier and name not in ("observed.jsonl", "commands.jsonl"):
            assert found.get(name, 0) == content, f"{told}: {name} is another"
    more = [name for name in found if name not in whole and f"run/{name}" not in before]
    assert not more, f"{told}: {more} was written"


def snapshot(folder: Root) -> dict[str, object]:
    """What is in a folder, with links and their targets, and other kinds of files."""
    found: dict[str, object] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = pathlib.Path(parent, name)
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
            elif path.is_file():
                found[str(path)] = path.read_bytes()
            else:
                found[str(path)] = path.lstat().st_mode
    found.pop(str(folder / "run.lock"), None)
    return found


# Changes of one JSON file, in its structure.

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 4, -1, -(2**63), 2**63, 2**64, 10**400, 0.5, 1e308, "", "x",
    "../outside/file", "\0", "\u202e", "1.0", "2.0", [], [[]], {}, {"": 0}, [None] * 3, "0" * 64,
    "round-3.npz", "\ud800",
)  # fmt: skip

TEXTS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"'x'", b"", b"{", b"]", b"\xff",
    b"\xef\xbb\xbf", b"/*", b"[" * 3000, b'"\\ud800"', b"0x10", b"1_0", b"01", b"-0", b"2.0",
)  # fmt: skip

JSON_FILES = ("run.json", "run.json", "run.json", "source.json", "batching.json")


def parts(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value with each of its keys."""
    found: list[tuple[Any, Any]] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += parts(inner)
    return found


def change_value(generator: random.Random, folder: Root) -> None:
    file = folder / generator.choice(JSON_FILES)
    value = json.loads(file.read_text())
    container, key = generator.choice(parts(value))
    kind = generator.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container[key], int | float):
        container[key] += generator.choice((-2, -1, 1, 2, 2**31, 0.5))
    elif kind == 2 and isinstance(container, dict):
        container[generator.choice(("x", "", "rounds", "seed", "options"))] = container[key]
    else:
        container[key] = generator.choice(VALUES)
    file.write_text(json.dumps(value, indent=generator.choice((None, 2))))


def change_text(generator: random.Random, folder: Root) -> None:
    file = folder / generator.choice(JSON_FILES)
    content = file.read_bytes()
    words = [at for at, byte in enumerate(content) if byte in b'":,{}[]0123456789']
    start, end = sorted((generator.choice(words), generator.choice(words)))
    kind = generator.randrange(4)
    if kind == 0:
        content = content[:start] + generator.choice(TEXTS) + content[start:]
    elif kind == 1:
        content = content[:start] + generator.choice(TEXTS) + content[end:]
    elif kind == 2:
        content = content[:end] + content[start:]
    else:
        content = content[:start]
    file.write_bytes(content)


def repeat_key(generator: random.Random, folder: Root) -> None:
    file = folder / generator.choice(JSON_FILES)
    lines = file.read_text().splitlines(keepends=True)
    at = generator.randrange(1, len(lines) - 1)
    lines.insert(at, lines[generator.randrange(1, len(lines) - 1)])
    file.write_text("".join(lines))


# Changes of any file.


def some_file(generator: random.Random, folder: Root) -> pathlib.Path:
    return generator.choice(sorted(path for path in folder.rglob("*") if path.is_file()))


def damage(generator: random.Random, folder: Root) -> None:
    file = some_file(generator, folder)
    content = bytearray(file.read_bytes())
    for _ in range(generator.choice((1, 1, 5))):
        content[generator.randrange(len(content))] = generator.randrange(256)
    file.write_bytes(content)


def cut(generator: random.Random, folder: Root) -> None:
    file = some_file(generator, folder)
    os.truncate(file, generator.randrange(file.stat().st_size + 1))


def append(generator: random.Random, folder: Root) -> None:
    file = some_file(generator, folder)
    more = generator.choice((b"\n", b"x", b"{}\n", b"\0" * 100, file.read_bytes()))
    with file.open("ab") as end:
        end.write(more)


def cut_lines(generator: random.Random, folder: Root) -> None:
    file = folder / generator.choice(("metrics.jsonl", "metrics.jsonl", "observed.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    at = generator.randrange(len(lines))
    change = generator.randrange(4)
    if change == 0:
        del lines[at]
    elif change == 1:
        lines.insert(at, lines[generator.randrange(len(lines))])
    elif change == 2:
        lines.reverse()
    else:
        lines[at] = lines[at][: generator.randrange(len(lines[at]))]
    file.write_bytes(b"".join(lines))


def swap(generator: random.Random, folder: Root) -> None:
    one, other = some_file(generator, folder), some_file(generator, folder)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def remove(generator: random.Random, folder: Root) -> None:
    path = generator.choice(sorted(folder.rglob("*")))
    shutil.rmtree(path) if path.is_dir() else path.unlink()


# Other kinds of files, under names that a run reads or writes.

NAMES = (
    "run.json", "source.json", "state.npz", "metrics.jsonl", "observed.jsonl", "batching.json",
    "run.lock", "outputs", "evaluations", "clients", "outputs/round-2.npz", "outputs/round-3.npz",
    "outputs/round-4.npz", "outputs/round-5.npz", "outputs/round-99999.npz", "clients/round-2",
    "clients/round-3", "clients/round-4", "clients/round-4/2.npz", "clients/round-9", "tensorboard",
    "evaluations/round-3.npz", "outputs/round-x.npz", "outputs/x", "x", "outputs/round-03.npz",
    "outputs/round-٣.npz", "outputs/round-" + "9" * 200 + ".npz",
)  # fmt: skip


def staged_names() -> list[str]:
    """The names of temporary files of a run's files."""
    files = ("run.json", "state.npz", "round-3.npz", "round-4.npz")
    return [f".tffc-{hashlib.sha256(each.encode()).hexdigest()[:16]}.new" for each in files]


def put_another_kind(generator: random.Random, folder: Root) -> None:
    path = folder / generator.choice((*NAMES, *staged_names()))
    content = path.read_bytes() if path.is_file() else b"x"
    if os.path.lexists(path):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    path.parent.mkdir(exist_ok=True)
    up = "../" * len(path.relative_to(folder).parts)
    kind = generator.randrange(8)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path.name)
    elif kind == 3:
        path.symlink_to("nowhere")
    elif kind == 4:
        path.symlink_to(f"{up}outside")
    elif kind == 5:
        (folder.parent / "outside/copy").write_bytes(content)
        path.symlink_to(f"{up}outside/copy")
    elif kind == 6:
        path.symlink_to(generator.choice((f"{up}outside/file", f"{up}outside/new", "/dev/zero")))
    else:
        path.write_bytes(content)


def put_another_state(generator: random.Random, folder: Root) -> None:
    shutil.copy(generator.choice(("first.npz", "data/1.npz")), folder / "state.npz")


# Changes whose digests are made to agree: who can write to the folder can do that.


def forge(generator: random.Random, folder: Root) -> None:
    name, key = generator.choice(
        (("source.json", "source"), ("state.npz", "state"), ("metrics.jsonl", "metrics"))
    )
    generator.choice((_forge_json, _forge_bytes))(generator, folder / name)
    content = (folder / name).read_bytes()
    record = json.loads((folder / "run.json").read_text())
    record[key]["sha256"] = hashlib.sha256(content).hexdigest()
    if key == "metrics":
        record[key]["bytes"] = len(content)
    (folder / "run.json").write_text(json.dumps(record))


def _forge_bytes(generator: random.Random, file: pathlib.Path) -> None:
    content = bytearray(file.read_bytes())
    content[generator.randrange(len(content))] = generator.randrange(256)
    file.write_bytes(content[: generator.choice((len(content), len(content) // 2))])


def _forge_json(generator: random.Random, file: pathlib.Path) -> None:
    if file.suffix == ".npz":
        _forge_bytes(generator, file)
        return
    lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    at = generator.randrange(len(lines))
    value = json.loads(lines[at])
    container, key = generator.choice(parts(value))
    container[key] = generator.choice(VALUES)
    lines[at] = json.dumps(value)
    file.write_text("\n".join([*lines, ""]))


FORGED: tuple[Change, ...] = (forge,)

CHANGES: tuple[Change, ...] = (
    change_value,
    change_value,
    change_text,
    repeat_key,
    damage,
    cut,
    append,
    cut_lines,
    swap,
    remove,
    put_another_kind,
    put_another_kind,
    put_another_kind,
    put_another_state,
    *FORGED,
)
