"""Whatever a stranger wrote is read behind a boundary, which makes a refusal of what was not
expected; nothing reads files, messages or texts elsewhere."""

from __future__ import annotations

import ast
import collections
import pathlib
from collections.abc import Iterator, Mapping
from typing import TypeGuard

import pytest

from tests.fuzz.readers import READERS as TARGETS
from tests.package_source import MODULES, PACKAGE, tree
from tests.processes import ROOT
from tffc.runtime.data.location import SCHEMES
from tffc.runtime.data.source import TypedClients
from tffc.support.errors import DataError, WireError, kind_read_by, reader

INTERPRETERS = frozenset(
    {
        "FromString",
        "MergeFromString",
        "ParquetFile",
        "ParseFromString",
        "loads",
        "open_stream",
        "read_json",
        "read_message",
        "read_record_batch",
        "read_schema",
        "read_yaml",
        "unpack_from",
    }
)
"""The names of functions that make values of bytes or texts."""

OWN = "what this process has serialized itself, or read before"
PEER = "what another process of the same run has written"
MEMORY = "what the node remembers of a sum, which only its own process writes"
PART = "a part of what a reader in another module reads"
ELSEWHERE: Mapping[str, str] = {
    "runtime/lowering/tensorflow_tracer.py": OWN,
    "runtime/data/arrow_messages.py": PART,
    "deploy/beam/shipment.py": PEER,
    "runtime/engines/encoding.py": PEER,
    "runtime/runs/metrics.py": PART,
    "runtime/engines/shipment.py": PEER,
    "deploy/export/saved_model.py": OWN,
    "deploy/export/signatures.py": OWN,
    "deploy/export/tflite.py": OWN,
    "support/files/strict_json.py": PART,
    "deploy/federation/masked_node.py": MEMORY,
    "deploy/flower/run.py": "what Flower's own command prints",
    "deploy/flower/warm.py": PEER,
    "runtime/frameworks/tensorflow/runner.py": OWN,
    "frontend/computation.py": OWN,
    "frontend/tensorflow_call.py": OWN,
    "frontend/type_queries.py": OWN,
    "assurance/golden/steadiness.py": PEER,
    "graphs/functions.py": OWN,
    "tff/building_blocks.py": OWN,
    "tff/federated_language/array.py": OWN,
    "language/notation/lexer.py": PART,
    "language/wire/arrays.py": PART,
    "linking/function_builder.py": OWN,
    "linking/iterations.py": OWN,
    "runtime/masking/participant.py": MEMORY,
    "runtime/runs/json_lines.py": PART,
    "assurance/proof/attributes.py": OWN,
    "assurance/proof/passes.py": OWN,
    "graphs/proto/__init__.py": "a table of tffc's own",
    "graphs/proto/messages.py": PART,
    "assurance/validation/stand_ins.py": OWN,
}
"""The modules that interpret bytes outside of a reader, and why they may."""


def test_unexpected_errors_become_refusals() -> None:
    @reader("a number", WireError)
    def read(content: bytes) -> int:
        return [7][content[0]]

    assert read(b"\0") == 7
    with pytest.raises(WireError, match="cannot be read as a number: IndexError: list") as refused:
        read(b"\1")
    assert refused.value.code == "E865"
    assert isinstance(refused.value.__cause__, IndexError)


def test_refusals_say_the_file() -> None:
    @reader("a number", DataError)
    def read(path: pathlib.Path) -> None:
        raise StopIteration

    with pytest.raises(DataError, match=r"^a/b: this cannot be read as a number: StopIteration"):
        read(pathlib.Path("a/b"))


def test_boundaries_hold_for_generators() -> None:
    @reader("numbers", WireError)
    def read(content: bytes) -> Iterator[float]:
        for each in content:
            yield 1 / each

    numbers = read(b"\2\0")
    assert next(numbers) == 0.5
    with pytest.raises(WireError, match="ZeroDivisionError"):
        next(numbers)


@pytest.mark.parametrize("error", [DataError("E600", ""), OSError(), MemoryError()])
def test_what_is_no_fault_of_the_input_passes(error: Exception) -> None:
    @reader("a number", WireError)
    def read() -> None:
        raise error

    with pytest.raises(type(error)) as passed:
        read()
    assert passed.value is error


def test_every_interpreter_is_behind_a_boundary() -> None:
    outside = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if str(path.relative_to(PACKAGE)) not in ELSEWHERE
        for name in unguarded(tree(path))
    }
    assert sorted(outside) == []


def unguarded(module: ast.Module) -> Iterator[str]:
    """Yield the functions of a module that interpret something, and are neither readers nor called
    by readers of the module alone."""
    functions = dict(_functions(module))
    callers: dict[str, set[str]] = collections.defaultdict(set)
    for name, function in functions.items():
        for called in _called(function):
            callers[called].add(name)
    guarded = {name for name, function in functions.items() if _is_reader(function)}
    changed = True
    while changed:
        before = len(guarded)
        for name in functions:
            owner, _, own = name.rpartition(".")
            by = callers[owner if own == "__init__" else own] - {name}
            if by and by <= guarded:
                guarded.add(name)
        changed = len(guarded) > before
    for name, function in functions.items():
        if INTERPRETERS.intersection(_called(function)) and name not in guarded:
            yield name


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _called(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def _is_reader(function: ast.FunctionDef) -> bool:
    return any(map(_is_boundary, function.decorator_list))


def _is_boundary(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reader"
    )


def _kinds(module: ast.Module) -> Iterator[str]:
    """Yield the kinds of input that the module's readers read."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            for each in filter(_is_boundary, node.decorator_list):
                yield ast.literal_eval(each.args[0])


def test_a_function_that_interprets_is_told() -> None:
    source = """
class Text:
    def first(self): return self._second()
    def _second(self): return json.loads(self)
@reader("a", Error)
def third(): return _fourth()
def _fourth(): return read_yaml("")
"""
    assert list(unguarded(ast.parse(source))) == ["Text._second"]


def test_every_reader_of_data_has_a_boundary() -> None:
    opened = [opened for opened, _ in SCHEMES.values() if isinstance(opened, type)]
    for each in (*opened, *TypedClients.__subclasses__()):
        if each.__name__ in ("PythonClients",):
            continue  # a function of the user's own
        names = ("__init__",) if each in opened else ("check", "read")
        assert [n for n in names if kind_read_by(getattr(each, n)) is None] == [], each


def test_every_reader_is_a_target_of_the_fuzzer() -> None:
    kinds = {kind for path in MODULES for kind in _kinds(tree(path))}
    tried = {kind for target in TARGETS.values() for kind in target.kinds}
    assert sorted(kinds - tried) == []
    assert sorted(tried - kinds) == []
