"""A pass that finds all that it ensures changes nothing: no program, and no golden file."""

from __future__ import annotations

import operator
import pathlib

import pytest

from tests.large import each_example
from tests.processes import ROOT
from tffc.assurance.golden.examples import Example, read_examples
from tffc.assurance.golden.printing import Recipe, print_program
from tffc.frontend.load import load
from tffc.language.nodes import Node
from tffc.language.verify import holding
from tffc.passes import Pass
from tffc.passes.table import all_passes, default_pipeline

pytestmark = pytest.mark.slow

GOLDEN = ROOT / "golden"
EXAMPLES = read_examples(GOLDEN)


def idle_passes(held: tuple[str, ...]) -> list[Pass]:
    """The passes that ensure something, and nothing but what holds."""
    return [
        each
        for each in all_passes().values()
        if each.ensures and {*each.requires, *each.ensures} <= set(held)
    ]


def check_no_change(program: Node) -> None:
    """Checks a program, and what each pass makes of it."""
    held = holding(program)
    ready = [each for each in all_passes().values() if set(each.requires) <= set(held)]
    for each in ready:
        after = each.function(program)
        for idle in idle_passes(holding(after)):
            assert idle.function(after) == after, (each.name, idle.name)
    for idle in idle_passes(held):
        assert idle.function(program) == program, idle.name


@each_example("example", EXAMPLES, operator.attrgetter("name"))
def test_programs_of_the_examples(example: Example) -> None:
    check_no_change(load(str(ROOT / example.target)).computation.node)


@each_example(
    "example", [each for each in EXAMPLES if each.recipe.forms], operator.attrgetter("name")
)
def test_golden_files(example: Example, tmp_path: pathlib.Path) -> None:
    loaded = load(str(ROOT / example.target))
    initialize = None if loaded.initialize is None else loaded.initialize.node
    discount = None if loaded.discount is None else loaded.discount.node
    for form in example.recipe.forms:
        pipeline = default_pipeline()
        names = [step.each.name for step in pipeline.steps]
        idle = [each.name for each in idle_passes(pipeline.holds(len(names)))]
        assert {"unique-names", "call-dominant", "drop-unused-bindings"} <= set(idle)
        file = tmp_path / "longer.yaml"
        file.write_text(f"name: longer\npasses: [{', '.join([*names, *idle])}]\n")
        recipe = Recipe((form,), str(file))
        printed = print_program(loaded.computation.node, initialize, recipe, discount)
        for name in ("summary.txt", "components.sexpr", "manifest.json"):
            golden = (GOLDEN / example.name / form / name).read_text(encoding="utf-8")
            assert printed[f"{form}/{name}"] == golden
        after = [text for path, text in printed.items() if "/passes/" in path]
        assert set(after[len(names) :]) == {"; as before\n"}
