"""`python -m tests.mutation PACKAGE`: makes small faults, and tells which no test notices.

A fault is one change of one expression: a comparison turned round, a condition negated, a constant
changed, an `and` made an `or`, a statement left out.  Each is made in a copy of the checkout, where
the tests of the package run until one fails.

`python -m tests.mutation --planted [PACKAGE]` makes the faults of `tests/planted.py` instead, and
tells who sees each: the quick tests of its package, `tffc verify` and `tffc prove`.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import click

from tests.planted import PLANTED, QUICK_TESTS, Planted
from tests.processes import ROOT

TESTS = {
    "passes": (
        "tffc/passes",
        (
            "tests/passes",
            "tests/cli/test_passes.py",
            "tests/cli/test_opt.py",
            "tests/hostile/test_cost.py",
        ),
    ),
    "forms": ("tffc/backends/forms", ("tests/backends", "tests/runtime/engines/test_corpus.py")),
    "proof": ("tffc/assurance/proof", ("tests/assurance/proof", "tests/cli/test_prove.py")),
}
"""The packages with the tests that are to notice faults in them."""

SECONDS = 900
"""After these, tests that still run have noticed a fault: it hangs."""

TURNED = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """A text in place of what stands between two offsets of a file, in bytes."""

    path: pathlib.Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{place}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    def apply(self, checkout: pathlib.Path) -> None:
        """Make the fault in a copy of the checkout."""
        source = self.path.read_bytes()
        changed = source[: self.start] + self.after.encode() + source[self.end :]
        (checkout / self.path.relative_to(ROOT)).write_bytes(changed)

    def undo(self, checkout: pathlib.Path) -> None:
        """Take the fault back."""
        shutil.copyfile(self.path, checkout / self.path.relative_to(ROOT))


def faults(path: pathlib.Path) -> Iterator[Fault]:
    """Give every fault that can be made in a module."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    idle = {id(node) for each in ast.walk(tree) for node in _not_run(each)}
    for node in ast.walk(tree):
        if id(node) in idle or not isinstance(node, ast.expr | ast.stmt):
            continue
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for changed in _changed(node):
            # In brackets, for what stands around it may bind more tightly.
            text = "pass" if isinstance(changed, ast.Pass) else f"({ast.unparse(changed)})"
            yield Fault(path, node.lineno, start, end, source[start:end].decode(), text)


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Give what a node says of types, in f-strings, in docstrings or in messages of errors."""
    parts: list[ast.AST | None] = []
    if isinstance(node, ast.arg | ast.AnnAssign):
        parts.append(node.annotation)
    elif isinstance(node, ast.FunctionDef):
        parts += [node.returns, *node.decorator_list]
    elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        parts.append(node)
    elif isinstance(node, ast.If):
        parts.append(node if ast.unparse(node.test) == "TYPE_CHECKING" else None)
    for part in parts:
        if part is not None:
            yield from ast.walk(part)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Give what a fault makes of a node."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in TURNED:
        other.ops[0] = TURNED[type(other.ops[0])]()
        yield other
    elif isinstance(other, ast.BoolOp | ast.BinOp) and type(other.op) in TURNED:
        other.op = TURNED[type(other.op)]()
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        yield other.operand
    elif isinstance(other, ast.IfExp):
        other.body, other.orelse = other.orelse, other.body
        yield other
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        yield ast.Constant(not other.value)
    elif isinstance(other, ast.Constant) and isinstance(other.value, int):
        yield ast.Constant(other.value + 1)
    elif isinstance(other, ast.AugAssign | ast.Expr):
        if not isinstance(other.value, ast.Constant):  # as a docstring is
            yield ast.Pass()


@click.command()
@click.argument("package", type=click.Choice([*TESTS, "linking", "graphdef"]), required=False)
@click.option("--planted", is_flag=True, help="Make the planted faults, by default of all.")
@click.option("--skip-tests", is_flag=True, help="Of planted faults, try verify and prove alone.")
@click.option("--skip-programs", is_flag=True, help="Of planted faults, run the tests alone.")
@click.option("--count", default=40, show_default=True, help="How many faults are made.")
@click.option("--seed", default=0, show_default=True, help="Decides which.")
@click.option("--only", metavar="MODULE.py", help="In this module alone.")
def main(
    package: str | None,
    planted: bool,
    skip_tests: bool,
    skip_programs: bool,
    count: int,
    seed: int,
    only: str | None,
) -> None:
    """Make faults in a package, and print those that its tests do not notice."""
    if planted:
        chosen = [each for each in PLANTED if package in (None, each.package)]
        sys.exit(plant(chosen, tests=not skip_tests, programs=not skip_programs))
    if package not in TESTS:
        raise click.UsageError("name a package, or add --planted")
    folder, tests = TESTS[package]
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if only in (None, path.name)]
    possible = [fault for path in paths for fault in faults(path)]
    chosen = random.Random(seed).sample(possible, min(count, len(possible)))
    with checkout_copy() as checkout:
        if not passes(checkout, tests):
            sys.exit("the tests fail without a fault")
        survived = 0
        for fault in chosen:
            fault.apply(checkout)
            if passes(checkout, tests):
                survived += 1
                click.echo(fault)
            fault.undo(checkout)
    click.echo(f"{survived} of {len(chosen)} faults survived, of {len(possible)} possible")


@contextlib.contextmanager
def checkout_copy() -> Iterator[pathlib.Path]:
    """Yield a copy of the checkout, deleted at the end."""
    with tempfile.TemporaryDirectory() as scratch:
        checkout = pathlib.Path(scratch) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".venv", "build"))
        yield checkout


def plant(faults: list[Planted], *, tests: bool, programs: bool) -> str | None:
    """Make planted faults, and print who sees each; return what to say if one is missed."""
    missed = 0
    with checkout_copy() as checkout, tempfile.TemporaryDirectory() as folder:
        programs_in(checkout, "write", folder)
        for fault in faults:
            fault.apply(checkout)
            expected = {"tests"} if tests else set()
            seen: dict[str, str] = {}
            if tests and not passes(checkout, QUICK_TESTS[fault.package]):
                seen["tests"] = "tests"
            if programs:
                expected |= set(fault.seen_by)
                try:
                    seen |= json.loads(programs_in(checkout, "try", folder).splitlines()[-1])
                except (subprocess.SubprocessError, IndexError):
                    seen |= dict.fromkeys(("verify", "prove"), "it cannot be run")
            fault.undo(checkout)
            lacking = expected - set(seen)
            missed += bool(lacking)
            verdict = f"MISSED by {', '.join(sorted(lacking))}" if lacking else "seen"
            click.echo(f"{verdict}: {fault}\n    {seen}")
    return f"{missed} of {len(faults)} faults were missed" if missed else None


def programs_in(checkout: pathlib.Path, *arguments: str) -> str:
    """Return what the programs for planted faults print in a copy of the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "tests.planted_programs", *arguments],
        cwd=checkout,
        env=environment_of(checkout),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
        text=True,
    ).stdout


def environment_of(checkout: pathlib.Path) -> dict[str, str]:
    """Return an environment in which the copy is first in the path, also of further processes."""
    return {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}


def passes(checkout: pathlib.Path, tests: tuple[str, ...]) -> bool:
    """Return whether tests pass in a copy of the checkout."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        ran = subprocess.run(
            command,
            cwd=checkout,
            env=environment_of(checkout),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


if __name__ == "__main__":
    main()
