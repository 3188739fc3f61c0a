"""What runs a program unchanged imports nothing of what is compared with it: no pass, no linking,
no form, no engine, in no module that it needs."""

from __future__ import annotations

import functools

import pytest

from tests.test_architecture import imported_modules

COMPARED = ("tffc.backends", "tffc.engines", "tffc.linking", "tffc.passes")
"""What makes and runs the compiled program."""

SHARED = {
    "tffc.containers",
    "tffc.errors",
    "tffc.files",
    "tffc.graphdef",
    "tffc.ir",
    "tffc.near",
    "tffc.operations",
    "tffc.printable",
    "tffc.proto",
    "tffc.source_text",
    "tffc.trampoline",
    "tffc.values",
}
"""The language that both sides speak: programs, types and values, how they are written, the table
of TensorFlow's operations, and what a graph is: one that is malformed is run by neither side.  A
draw that the table lists as computing is not replaced, so it differs in each run and is seen."""

NAMES_OF_SECTIONS = "tffc.ir.fingerprint"
"""How a printed program names its sections, for which graphs are renamed; nothing that runs a
section asks for its name."""

OWN = {"tffc.frameworks", "tffc.interpreter"}
"""The reference interpreter, and how it has TensorFlow and JAX run sections.  Engines run linked
sections by the second too: it does so as it would any section."""

REFERENCE = (
    "tffc.validation.algebra",
    "tffc.validation.arguments",
    "tffc.validation.compare",
    "tffc.validation.draws",
    "tffc.validation.stand_ins",
    "tffc.validation.watched",
)


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


GRAPH = functools.cache(imported_modules)


def reached(root: str) -> dict[str, str]:
    """All modules that a module needs, each with the one that imports it."""
    graph = GRAPH()
    importers = {root: ""}
    pending = [root]
    while pending:
        importer = pending.pop()
        for module in graph[importer] if importer != NAMES_OF_SECTIONS else ():
            # A module runs the package that it is in; that of verification hands on names only.
            for each in (module, module.rpartition(".")[0]):
                if each in graph and each not in importers and each != "tffc.validation":
                    importers[each] = importer
                    pending.append(each)
    return importers


@pytest.mark.parametrize("root", REFERENCE)
def test_the_reference_side_stands_alone(root: str) -> None:
    strangers = {
        module: importer
        for module, importer in reached(root).items()
        if room_of(module) not in SHARED | OWN | {"tffc.debug", "tffc.validation"}
    }
    assert strangers == {}
    inside = {module for module in reached(root) if room_of(module) == "tffc.validation"}
    assert {"tffc.validation.rounds", "tffc.validation.validate"}.isdisjoint(inside)


def test_the_interpreter_is_all_there() -> None:
    importers = reached("tffc.validation.watched")
    assert {"tffc.interpreter.operators", "tffc.frameworks.tensorflow.datasets"} <= importers.keys()
    assert all(not module.startswith(COMPARED) for module in importers)


def test_what_is_compared_is_reached_from_elsewhere() -> None:
    importers = reached("tffc.validation.validate")
    assert {room_of(module) for module in importers} >= set(COMPARED)
