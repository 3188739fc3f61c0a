"""Every public name of TFF's libraries is in a program, or it is said why not."""

from __future__ import annotations

import ast
import importlib
import json
import pathlib

import pytest

from tests.tff import names, record
from tests.tff.wheel import needs_wheel, programs

LIBRARIES = ("aggregators", "analytics", "learning")

ANNOTATION = "it only stands in annotations"
PYTHON = "it runs rounds of a process from Python, and puts nothing into a program"

NOT_IN_PROGRAMS = {
    "tff.aggregators.AggregationFactory": ANNOTATION,
    "tff.learning.metrics.FunctionalMetricFinalizersType": ANNOTATION,
    "tff.learning.metrics.MetricFinalizersType": ANNOTATION,
    "tff.learning.metrics.MetricsAggregatorType": ANNOTATION,
    "tff.learning.models.ReconstructionDatasetSplitFn": ANNOTATION,
    "tff.learning.programs.EvaluationManager": PYTHON,
    "tff.learning.programs.ProgramState": PYTHON,
    "tff.learning.programs.extract_and_rewrap_metrics": PYTHON,
    "tff.learning.programs.train_model": PYTHON,
    "tff.learning.programs.train_model_with_vizier": PYTHON,
}

SOURCE = pathlib.Path(__file__).with_name("programs.py")


def attributes(source: str) -> set[str]:
    """The names that a module takes from anything, as `build` in `library.build()`."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}


def without_program(public: list[str], source: str) -> list[str]:
    used = attributes(source)
    return [name for name in public if name.rpartition(".")[2] not in used]


def public_names() -> list[str]:
    return [name for name in json.loads(names.NAMES.read_text()) if name.split(".")[1] in LIBRARIES]


def test_every_public_name_is_in_a_program() -> None:
    assert without_program(public_names(), SOURCE.read_text()) == list(NOT_IN_PROGRAMS)


def test_a_name_without_a_program_is_found() -> None:
    source = SOURCE.read_text().replace("build_fed_sgd", "build_fed_avg")
    assert "tff.learning.algorithms.build_fed_sgd" in without_program(public_names(), source)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
@needs_wheel
def test_the_public_names_are_those_of_the_wheel() -> None:
    programs()
    found = []
    for library in LIBRARIES:
        module = importlib.import_module(f"tensorflow_federated.python.{library}")
        found += names.public_names(module, f"tff.{library}")
    assert found == public_names()


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
@needs_wheel
def test_every_program_has_an_answer() -> None:
    known = programs().all_programs()
    answers = json.loads(record.ANSWERS.read_text())
    assert [name for name in known if name not in answers] == list(record.UNANSWERED)
