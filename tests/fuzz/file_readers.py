"""Readers of the files that tell tffc what to do: policies, pipelines, examples, reproducers."""

from __future__ import annotations

import pathlib

from tests.fuzz.reader import Reader, damage_text, folder
from tests.fuzz.targets import seed_programs
from tests.processes import ROOT
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.golden.examples import read_examples
from tffc.cli.reproducer import Reproducer, decode_reproducer
from tffc.passes.pipeline_text import parse_passes
from tffc.passes.table import all_passes, read_pipeline

POLICY = b"""\
version: 1
placements: true
operators: [federated_sum, federated_broadcast]
sums: {secure: true, masked: [2, 10]}
may-leave: ["rows.*", state]
effects: {files: [a], network: false}
exceptions:
  - {rule: operators, for: federated_collect, until: 2030-01-01, because: "small"}
"""
ANCHORED = b"a: &a [1, 2]\nb: [*a, *a, 1:30, 0x10, 0o7, 1_000, .inf, 2020-01-01, ~, on]\n"


def read_a_policy(data: bytes) -> bool:
    """Read a policy."""
    read_policy(_file("policy.yaml", data))
    return True


def read_a_pipeline(data: bytes) -> bool:
    """Read a pipeline."""
    read_pipeline(_file("pipeline.yaml", data))
    return True


def read_golden(data: bytes) -> bool:
    """Read a list of golden examples."""
    read_examples(_file("golden.yaml", data).parent)
    return True


def read_passes(data: bytes) -> bool:
    """Read a list of passes, as on the command line."""
    parse_passes(data.decode(errors="surrogateescape"), all_passes())
    return True


def read_reproducer(data: bytes) -> bool:
    """Read a reproducer."""
    decode_reproducer(data.decode(errors="replace"), "reproducer.txt").encode()
    return True


def _file(name: str, content: bytes) -> pathlib.Path:
    path = folder(name.partition(".")[0]) / name
    path.write_bytes(content)
    return path


def _seed_policies() -> list[bytes]:
    files = sorted((ROOT / "examples").rglob("policy.yaml"))
    return [POLICY, ANCHORED, b"version: 1\n", *(path.read_bytes() for path in files)]


def _seed_pipelines() -> list[bytes]:
    files = sorted((ROOT / "tffc" / "passes" / "pipelines").glob("*.yaml"))
    return [ANCHORED, *(path.read_bytes() for path in files)]


def _seed_passes() -> list[bytes]:
    names = sorted(all_passes())
    options = (
        f"{each.name}{{{name}=true}}" for each in all_passes().values() for name in each.options
    )
    return [",".join(names).encode(), names[0].encode(), *(each.encode() for each in options)]


def _seed_reproducers() -> list[bytes]:
    programs = sorted(seed_programs(), key=repr)[:40]
    return [Reproducer(each, "inline-bindings", ()).encode().encode() for each in programs]


READERS = {
    "policy": Reader(read_a_policy, _seed_policies, damage_text, ("a policy",)),
    "pipeline": Reader(read_a_pipeline, _seed_pipelines, damage_text, ("a pipeline",)),
    "golden": Reader(
        read_golden,
        lambda: [ANCHORED, (ROOT / "golden" / "golden.yaml").read_bytes()],
        damage_text,
        ("a list of golden examples",),
    ),
    "passes": Reader(read_passes, _seed_passes, damage_text, ("a list of passes",)),
    "reproducer": Reader(read_reproducer, _seed_reproducers, damage_text, ("a reproducer",)),
}
