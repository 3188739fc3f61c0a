"""Damaged data files handed to commands: they describe and run what can be read, and no more.

Each case is the data of three clients, of which a file is damaged.  It is read, described and, of
some cases, run: with all clients, and without those that cannot be read.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import random
import tempfile
from typing import Any

import numpy as np
from click.testing import CliRunner

from tests.hostile.data_fuzz import FILES, ROW, arrays, mutated_file, read
from tffc.backends.compiler import compile_bundle
from tffc.cli.application import application
from tffc.language import SequenceType
from tffc.language.notation import parse
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.state import State, encode_state
from tffc.support.errors import TffcError

TYPE = SequenceType(ROW)
PROGRAM = f"""
(arg: <int32@SERVER,{{{TYPE}}}@CLIENTS> -> (let
  sent=federated_broadcast:(int32@SERVER -> int32@CLIENTS)(arg[0]),
  both=federated_zip_at_clients:(<int32@CLIENTS,{{{TYPE}}}@CLIENTS> -> {{<int32,{TYPE}>}}@CLIENTS)(
    <sent,arg[1]>)
 in both))
"""
"""A round that gives each client what it had, and so reads it."""

OPTIONS = (
    "client=n", "client=s", "client=", "columns=n,s,x", "columns=n", "columns=", "delimiter=;",
    "delimiter=", "max-bytes=1", "max-bytes=99999999999", "links=follow", "x=1", "client=%00",
    "spec=spec.json", "columns=n,n", "delimiter=%22",
)  # fmt: skip
WHOLE = ("bob", "cy")
"""The clients whose `.npz` files are not damaged."""

RUN = "run bundle --rounds 1 --state-in state.npz --data"
EACH = 10
"""Of so many cases one is run, too; running takes far longer than reading."""


@functools.cache
def prepared() -> dict[str, bytes]:
    """The bundle and the first state that every case has."""
    program = parse(PROGRAM)
    bundle = compile_bundle(program, "broadcast")
    process = Process(bundle)
    state = encode_state(State(np.int32(5), process.program, 0), process.state_type, "state.npz")
    made = {f"bundle/{path}": content for path, content in bundle.encode().items()}
    return {**made, "state.npz": state}


def run_case(kind: str, seed: int, case: int) -> bool:
    """Read one case, known by its numbers, and return whether each client was read.

    Raises:
      AssertionError: a command takes the data for a defect of tffc, something is left behind, or a
        client whose data is whole is not read.
      Exception: what is not a refusal of tffc's own.
    """
    generator = random.Random(f"{kind} {seed} {case}")
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for path, content in prepared().items():
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_bytes(content)
        read(kind, mutated_file(kind, seed, case))
        is_usual = generator.random() < 0.9
        location = _location(kind) if is_usual else f"{kind}:{FILES[kind]}?{_options(generator)}"
        before = _files()
        found = _read(location)
        is_read = found is not None and None not in found.values()
        # Which looks at the heads of arrays alone, and so may find nothing where reading does.
        assert _invoke("data", "describe", location, "--for", "bundle") == 0 or not is_read
        if kind == "npz" and is_usual:
            assert found is not None
            assert {**found, **_whole()} == found
        if case % EACH == 0:
            _run(location, found)
        assert {path: content for path, content in _files().items() if path in before} == before
    return is_read


def _location(kind: str) -> str:
    if kind != "npz":
        return f"{kind}:{FILES[kind]}?client=client&columns=x,n,s"
    for client in WHOLE:
        np.savez(f"d/{client}.npz", **arrays()[0])  # pyright: ignore[reportArgumentType]  # no name is `allow_pickle`
    return "npz:d"


def _options(generator: random.Random) -> str:
    return "&".join(generator.choices(OPTIONS, k=generator.choice((1, 1, 2))))


def _read(location: str) -> dict[str, Any] | None:
    """Return what each client has; None for one that is refused, or for all of them."""
    found: dict[str, Any] = {}
    try:
        source = open_source(location, TYPE)
    except TffcError:
        return None
    for client in source.clients:
        try:
            found[client] = repr(source.read(client))
        except TffcError:
            found[client] = None
        else:
            source.check(client)
            assert repr(source.read(client)) == found[client]
    return found


@functools.cache
def _whole() -> dict[str, Any]:
    """What the clients have whose files are not damaged."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        pathlib.Path("d").mkdir()
        return _read(_location("npz")) or {}


def _run(location: str, read: dict[str, Any] | None) -> None:
    """Run a round of all clients, and one of those that can be read."""
    is_read = read is not None and None not in read.values()
    good = [client for client, value in (read or {}).items() if value is not None]
    assert _invoke(*RUN.split(), location, "--out", "all") == (0 if is_read else 1)
    assert is_read or not [path for path in _files() if path.startswith("all/clients")]
    skipping = _invoke(*RUN.split(), location, "--out", "good", "--skip-bad-clients")
    assert skipping == (1 if read is None else 0)
    kept = [path for path in _files() if path.startswith("good/clients")]
    assert len(kept) == len(good)
    left = [path for path in _files() if os.path.basename(path).startswith(".")]
    assert not left, left


def _files() -> dict[str, bytes]:
    found = (path for path in pathlib.Path().rglob("*") if path.is_file())
    return {path.as_posix(): path.read_bytes() for path in found}


def _invoke(*arguments: str) -> int:
    ran = CliRunner().invoke(application, arguments)
    assert isinstance(ran.exception, SystemExit | None), (arguments, ran.exception)
    assert ran.exit_code in (0, 1, 2), (arguments, ran.exit_code, ran.stderr)
    return min(ran.exit_code, 1)
