"""Rounds with damaged graphs handed to every command that reads graphs.

    python -m tests.hostile.graph_commands --case N [--seed S]

shows what becomes of one case.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import pathlib
import random
import tempfile
from collections.abc import Iterator

from click.testing import CliRunner

from tests.fuzz.mutations import damaged_bytes
from tests.hostile.graph_damage import damaged_graph
from tests.processes import ROOT, run_python
from tffc.cli.application import application
from tffc.cli.failures import DEFECT
from tffc.language import Compiled, Node, wire
from tffc.language.traverse import rewrite, walk
from tffc.support.errors import TffcError

LARGEST = 30_000
"""Rounds are at most so many bytes, so that many can be tried."""

EXPORTED = 100
"""Of so many bundles one is exported, which loads TensorFlow and takes far longer."""

TRACING = """\
import json, pathlib, sys
from tffc.support.errors import TffcError
from tffc.frontend.load import load
from tffc.assurance.golden.examples import read_examples
from tffc.language import wire

for example in read_examples(pathlib.Path("golden")):
    try:
        node = load(example.target).computation.node
    except TffcError:
        continue
    for form in example.recipe.forms:
        print(json.dumps([example.name, form, wire.to_bytes(node).hex()]))
"""


class Round:
    """A round, its form, its sections of TensorFlow, and how often it is tried: each round gets
    the same time."""

    def __init__(self, form: str, node: Node) -> None:
        self.form = form
        self.weight = 1 / len(wire.to_bytes(node))
        self.node = node
        sections = {each.payload: each for each in walk(node) if isinstance(each, Compiled)}
        self.sections = [each for each in sections.values() if each.kind == "tensorflow"]


@functools.cache
def rounds() -> list[Round]:
    """Trace the examples, in a process of its own, that compile to a form and are not large."""
    traced = run_python("-c", TRACING, cwd=ROOT)
    assert traced.returncode == 0, traced.stderr
    read = [json.loads(line) for line in traced.stdout.splitlines() if line.startswith("[")]
    messages = [(form, bytes.fromhex(content)) for _, form, content in read]
    found = [
        Round(f, wire.from_bytes(content)) for f, content in messages if len(content) < LARGEST
    ]
    return [each for each in found if each.sections]


def damaged_round(generator: random.Random) -> tuple[Round, Node]:
    """Return a round, and it with another graph or other bindings in one of its sections."""
    (whole,) = generator.choices(rounds(), [each.weight for each in rounds()])
    section = generator.choice(whole.sections)
    payload = section.payload
    if generator.random() < 0.9:
        content = wire.read_tensorflow(payload)
        graph = damaged_graph(generator, content.graph_def)
        payload = wire.write_tensorflow(content._replace(graph_def=graph))
    else:
        payload = damaged_bytes(generator, [payload])
    other = Compiled(section.kind, payload, section.type)

    def exchange(node: Node) -> Node | None:
        is_it = isinstance(node, Compiled) and node.payload == section.payload
        return other if is_it else None

    return whole, rewrite(whole.node, exchange)


def commands(form: str, *, is_exported: bool) -> Iterator[str]:
    """Yield the commands for `r.pb`, a damaged round, and `w.pb`, the whole one."""
    yield f"check r.pb --form {form}"
    yield "print r.pb --sexpr"
    yield "diff w.pb r.pb"
    yield f"compile r.pb --form {form} --out b"
    if not pathlib.Path("b").exists():
        yield f"audit r.pb --form {form}"
        yield f"explore r.pb --form {form} -o e.html"
        return
    yield "prove r.pb b"
    yield "audit b"
    yield "explore b -o e.html"
    yield "diff --breaking w.pb b"
    if is_exported:
        yield "export b --to saved_model -o m --partial"


def run_case(seed: int, case: int) -> bool:
    """Hand one case to all commands, and return whether it compiles.

    Raises:
      AssertionError: a command takes the graph for a defect of tffc, or refuses it and leaves
        something behind.
    """
    return 0 in exit_codes(seed, case).values()


def exit_codes(seed: int, case: int) -> dict[str, int]:
    """Return the exit code of each command for a case, known by its numbers."""
    generator = random.Random(f"graphs {seed} {case}")
    whole, damaged = damaged_round(generator)
    codes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        pathlib.Path("w.pb").write_bytes(wire.to_bytes(whole.node))
        try:
            pathlib.Path("r.pb").write_bytes(wire.to_bytes(damaged, leaves=False))
        except TffcError:
            return codes
        is_exported = generator.randrange(EXPORTED) == 0
        for command in commands(whole.form, is_exported=is_exported):
            codes[command] = _run(command)
    return codes


def _run(command: str) -> int:
    before = set(pathlib.Path().iterdir())
    ran = CliRunner().invoke(application, command.split())
    text = f"{command}: {ran.exit_code}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise AssertionError(text) from ran.exception
    assert ran.exit_code != DEFECT, text
    assert "[E865]" not in text, text
    if ran.exit_code == 1:
        # What cannot be compiled can be explored, and its page says why.
        left = set(pathlib.Path().iterdir()) - before - {pathlib.Path("e.html")}
        assert not left, f"{text}{left}"
    return ran.exit_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for command, code in exit_codes(options.seed, options.case).items():
        # What the script is for.
        print(f"{code} {command}")


if __name__ == "__main__":
    main()
