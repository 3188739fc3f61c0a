"""Bundles that somebody has changed: files, manifests with hashes made again, no files at all.

    python -m tests.hostile.bundles [--cases N] [--seed S] [--first CASE]

hands N of them to the commands that read bundles, and ends with status 1 at the first that is taken
for a defect.  A case that takes a minute ends the run with the place where it hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import hashlib
import json
import os
import pathlib
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from click.testing import CliRunner

from tests.fuzz.mutations import damaged_bytes, damaged_text
from tffc.backends import compile_form
from tffc.backends.bundle.bundle import MANIFEST, Bundle
from tffc.cli.application import application
from tffc.cli.failures import DEFECT
from tffc.language import Node, to_array, wire
from tffc.language.notation import parse
from tffc.linking.builder import GraphBuilder
from tffc.support.errors import TffcError

TIMEOUT_SECONDS = 60

MAP_REDUCE = """
(arg: <int32@SERVER,{<n=int32,s=str>}@CLIENTS> -> (let
  picked=federated_map:(<(<n=int32,s=str> -> int32),{<n=int32,s=str>}@CLIENTS> -> {int32}@CLIENTS)(
    <(x: <n=int32,s=str> -> x.n),arg[1]>),
  sum=federated_sum:({int32}@CLIENTS -> int32@SERVER)(picked)
 in <sum,<total=sum>>))
"""
BROADCAST = """
(arg: <int32@SERVER,{int32}@CLIENTS> -> (let
  sent=federated_broadcast:(int32@SERVER -> int32@CLIENTS)(arg[0]),
  both=federated_zip_at_clients:(<int32@CLIENTS,{int32}@CLIENTS> -> {<int32,int32>}@CLIENTS)(
    <sent,arg[1]>)
 in both))
"""

DATA = """\
import numpy as np


def clients():
    return {"a": {"n": np.int32(1), "s": "x"}}


def numbers():
    return {"a": np.int32(1)}
"""

VALUES: tuple[Any, ...] = (
    None, True, -1, 10**400, 1.5, float("nan"), "", "x", "9" * 5000, "1.0", "2.0", "0.0", "1.0\n",
    "٣.0", "\ud800", "\x1b[31m\n", [], {}, [[]], {"": ""}, {"a": 1}, "( -> int32)",
    "0" * 64, "../x.pb", "/etc/passwd", "components/zero.pb",
)  # fmt: skip
TEXTS = (
    "", "{", "null", "[]", "[" * 100_000, '{"a":' * 100_000, '{"format_version": NaN}', "\ufeff{}",
    '{"files": {}, "files": {}}', "9" * 5000, '"\\ud800"', "\0",
)  # fmt: skip


@functools.cache
def seeds() -> list[dict[str, bytes]]:
    """The files of a bundle of each form, and of one without first state."""
    array = to_array(np.int32(7))
    builder = GraphBuilder()
    first = builder.finish(builder.constant(array), array.type)
    made: list[dict[str, bytes]] = []
    for form, text in (
        ("mapreduce", MAP_REDUCE),
        ("distribute-aggregate", MAP_REDUCE),
        ("mergeable", MAP_REDUCE),
        ("broadcast", BROADCAST),
    ):
        program = parse(text)
        components = compile_form(program, form).components()
        for initialize in (first, None):
            bundle = Bundle(form, program, components, initialize, {"tffc": "0"})
            made.append(bundle.encode())
    return made


@functools.cache
def programs() -> list[bytes]:
    """Messages to stand in the place of any other: all in the seeds, and some of odd kinds."""
    texts = (
        "1", "<>", "SERVER", "(x: int32 -> x)", "( -> 1)", "( -> <>)", "<1,2>", "&x:int32",
        "&f:(int32 -> int32)", "federated_sum:({int32}@CLIENTS -> int32@SERVER)", "b'a'",
        "data#a where data#a: int32 \"u\" 0x61", "(x: <int32@SERVER,{int32}@CLIENTS> -> x)",
        "(x: (int32 -> int32) -> x)", "( -> (x: int32 -> x))", "(x: int32* -> x)",
        "nope:(int32 -> int32)", "(x: <int32@SERVER,{int32}@CLIENTS> -> x[0])",
        "(x: <int32@SERVER,{int32}@CLIENTS> -> <x[0],x[0]>)", "(x: placement -> x)",
    )  # fmt: skip
    found = {wire.to_bytes(parse(text)) for text in texts}
    for files in seeds():
        found |= {content for path, content in files.items() if path.endswith(".pb")}
    return sorted(found)


def changed_bundle(generator: random.Random, folder: pathlib.Path) -> None:
    """Write a bundle as `folder`, after changes that its hashes may or may not agree with."""
    files = dict(generator.choice(seeds()))
    manifest = json.loads(files.pop(MANIFEST))
    for _ in range(generator.choice((0, 1, 1, 2, 5))):
        changes = (_damage, _exchange, _substitute, _rename, _claim)
        generator.choice(changes)(generator, files, manifest)
    if generator.random() < 0.9:
        _sign(files, manifest)
    if generator.random() < 0.3:
        _change_value(generator, manifest)
    text = json.dumps(manifest)
    chance = generator.random()
    if chance < 0.05:
        text = generator.choice(TEXTS)
    elif chance < 0.15:
        text = damaged_text(generator, [text])
    files[MANIFEST] = text.encode(errors="surrogatepass")
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if generator.random() < 0.2:
        _put(generator, folder, folder / generator.choice(sorted(files)))


Files = dict[str, bytes]


def _messages(files: Files) -> list[str]:
    return sorted(path for path in files if path.endswith(".pb"))


def _damage(generator: random.Random, files: Files, manifest: Any) -> None:
    path = generator.choice(sorted(files))
    files[path] = damaged_bytes(generator, [files[path]])


def _exchange(generator: random.Random, files: Files, manifest: Any) -> None:
    first, second = generator.choices(_messages(files), k=2)
    files[first], files[second] = files[second], files[first]


def _substitute(generator: random.Random, files: Files, manifest: Any) -> None:
    files[generator.choice(_messages(files))] = generator.choice(programs())


def _rename(generator: random.Random, files: Files, manifest: Any) -> None:
    """Another form, other components, or no first state."""
    components = manifest["components"]
    match generator.randrange(4):
        case 0:
            manifest["form"] = generator.choice(
                ("mapreduce", "broadcast", "distribute-aggregate", "mergeable", "other")
            )
        case 1:
            manifest["initialize"] = generator.choice((None, "( -> int32)"))
        case 2 if components:
            components.pop(generator.choice(sorted(components)))
        case _:
            name = generator.choice(("zero", "extra", "update"))
            components[name] = "int32"
            files[f"components/{name}.pb"] = generator.choice(programs())


def _claim(generator: random.Random, files: Files, manifest: Any) -> None:
    """Say that it was proved, in some way or other."""
    digests = {path: manifest["files"].get(path, "") for path in _messages(files)}
    manifest["proof"] = {
        "prover": generator.choice((2, 3, 3, *VALUES)),
        "files": generator.choice((digests, digests, *VALUES)),
    }


def _sign(files: Files, manifest: Any) -> None:
    """Make the manifest agree with the files, as far as they are programs."""
    manifest["files"] = {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}
    for stem, type in _types(files).items():
        name = stem.removeprefix("components/")
        if stem == "computation":
            manifest["type"] = type
        elif stem == "initialize" and manifest.get("initialize") is not None:
            manifest["initialize"] = type
        elif name in manifest["components"]:
            manifest["components"][name] = type


def _types(files: Files) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for path in _messages(files):
        with contextlib.suppress(TffcError):
            program: Node = wire.from_bytes(files[path])
            found[path.removesuffix(".pb")] = str(program.type)
    return found


def _change_value(generator: random.Random, manifest: Any) -> None:
    """Change a key or a value somewhere in the manifest."""
    holder = manifest
    inner = [value for value in manifest.values() if isinstance(value, dict) and value]
    if inner and generator.random() < 0.5:
        holder = generator.choice(inner)
    key = generator.choice(sorted(holder))
    match generator.randrange(3):
        case 0:
            del holder[key]
        case 1:
            holder[key] = generator.choice(VALUES)
        case 2:
            holder[str(generator.choice(VALUES))] = holder.pop(key)


def _put(generator: random.Random, folder: pathlib.Path, path: pathlib.Path) -> None:
    """Put something that is not a file, or not in the folder, in the place of a file."""
    content = path.read_bytes()
    path.unlink()
    generator.choice(PLACED)(folder, path, content)


def _outside(folder: pathlib.Path, path: pathlib.Path, content: bytes) -> None:
    outside = folder.parent / "outside"
    outside.write_bytes(content)
    path.symlink_to(outside)


def _inside(folder: pathlib.Path, path: pathlib.Path, content: bytes) -> None:
    (folder / "inside").write_bytes(content)
    path.symlink_to(folder / "inside")


def _socket(folder: pathlib.Path, path: pathlib.Path, content: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _sparse(folder: pathlib.Path, path: pathlib.Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(2**42)


PLACED: tuple[Callable[[pathlib.Path, pathlib.Path, bytes], object], ...] = (
    _outside,
    _inside,
    _socket,
    _sparse,
    lambda folder, path, content: path.symlink_to("/dev/zero"),
    lambda folder, path, content: path.symlink_to(path.name),
    lambda folder, path, content: path.symlink_to("nowhere"),
    lambda folder, path, content: os.mkfifo(path),
    lambda folder, path, content: path.mkdir(),
    lambda folder, path, content: None,
)
"""What may stand where a file was; the last one is nothing."""

COMMANDS = (
    "print bundle --style compact",
    "print bundle --style structural",
    "decompile bundle -o made.pb",
    "diff bundle made.pb",
    "check bundle/computation.pb --form mapreduce",
    "data describe python:clients:clients --for bundle",
    "prove bundle",
    "prove made.pb bundle --json",
    "audit bundle",
    "explore bundle -o page.html",
    "diff --breaking bundle made.pb",
)
RUNS = (
    "run bundle --data python:clients:clients --rounds 1",
    "run bundle --data python:clients:numbers --rounds 1 --out kept",
)
"""What takes longer, for it loads TensorFlow."""


def run_case(seed: int, case: int, commands: tuple[str, ...] = COMMANDS) -> dict[str, int]:
    """Run commands on one bundle, known by its numbers, and return their exit codes.

    Raises:
      AssertionError: a command takes the bundle for a defect of tffc.
    """
    generator = random.Random(f"bundle {seed} {case}")
    codes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = pathlib.Path("bundle")
        folder.mkdir()
        pathlib.Path("clients.py").write_text(DATA)
        changed_bundle(generator, folder)
        for command in commands:
            ran = CliRunner().invoke(application, command.split())
            assert isinstance(ran.exception, SystemExit | None), (command, ran.exception)
            assert ran.exit_code != DEFECT, f"case {case} of seed {seed}, {command}: {ran.stderr}"
            codes[command] = ran.exit_code
        shutil.rmtree("kept", ignore_errors=True)
    return codes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.bundles")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--run", action="store_true", help="run a round of each too")
    options = parser.parse_args()
    done = failed = 0
    for case in range(options.first, options.first + options.cases):
        faulthandler.dump_traceback_later(TIMEOUT_SECONDS, exit=True)
        try:
            codes = run_case(options.seed, case, COMMANDS + (RUNS if options.run else ()))
        except AssertionError as error:
            # What the script is for.
            print(error, file=sys.stderr)
            failed += 1
        else:
            done += 0 in codes.values()
        finally:
            faulthandler.cancel_dump_traceback_later()
    # What the script is for.
    print(f"{options.cases} bundles, {done} read by some command, {failed} taken for a defect")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
