"""What runs a program unchanged imports nothing of what is compared with it: no pass, no linking,
no form, no engine, in no module that it needs."""

from __future__ import annotations

import functools

import pytest

from tests.test_architecture import imported_modules

COMPARED = (
    "tffc.backends",
    "tffc.graphs.rewrites",
    "tffc.linking",
    "tffc.passes",
    "tffc.runtime.batching",
    "tffc.runtime.engines",
    "tffc.runtime.reductions",
)
"""What makes and runs the compiled program."""

SHARED = ("tffc.graphs", "tffc.language", "tffc.support")
"""The language that both sides speak: programs, types and values, how they are written, the table
of TensorFlow's operations, and what a graph is: one that is malformed is run by neither side.  A
draw that the table lists as computing is not replaced, so it differs in each run and is seen."""

NAMES_OF_SECTIONS = "tffc.language.fingerprint"
"""How a printed program names its sections, for which graphs are renamed; nothing that runs a
section asks for its name."""

OWN = ("tffc.runtime.frameworks", "tffc.runtime.interpreter")
"""The reference interpreter, and how it has TensorFlow and JAX run sections.  Engines run linked
sections by the second too: it does so as it would any section."""

REFERENCE = (
    "tffc.assurance.validation.algebra",
    "tffc.assurance.validation.arguments",
    "tffc.assurance.validation.compare",
    "tffc.assurance.validation.draws",
    "tffc.assurance.validation.stand_ins",
    "tffc.assurance.validation.watched",
)


OUTER = {"tffc.assurance", "tffc.runtime"}
"""Packages of packages, which hold a docstring alone."""


def is_in(module: str, *packages: str) -> bool:
    return f"{module}.".startswith(tuple(f"{package}." for package in packages))


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
                if each in graph and each not in importers and each != "tffc.assurance.validation":
                    importers[each] = importer
                    pending.append(each)
    return importers


@pytest.mark.slow
@pytest.mark.parametrize("root", REFERENCE)
def test_the_reference_side_stands_alone(root: str) -> None:
    strangers = {
        module: importer
        for module, importer in reached(root).items()
        if is_in(module, *COMPARED) or not is_in(module, *SHARED, *OWN, "tffc.assurance.validation")
        if module not in OUTER
    }
    assert strangers == {}
    assert {
        "tffc.assurance.validation.rounds",
        "tffc.assurance.validation.validate",
    }.isdisjoint(reached(root))


@pytest.mark.slow
def test_the_interpreter_is_all_there() -> None:
    importers = reached("tffc.assurance.validation.watched")
    assert {
        "tffc.runtime.interpreter.operators",
        "tffc.runtime.frameworks.tensorflow.datasets",
    } <= importers.keys()
    assert not any(is_in(module, *COMPARED) for module in importers)


def test_what_is_compared_is_reached_from_elsewhere() -> None:
    importers = reached("tffc.assurance.validation.validate")
    for package in COMPARED:
        assert any(is_in(module, package) for module in importers), package
