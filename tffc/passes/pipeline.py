"""Pipelines: which passes run, in which order, with which options.

A pipeline is a YAML mapping of two keys:

    name: mapreduce
    passes:
      - drop-identity-maps
      - call-dominant: {option: value}

Unknown keys, passes and options are errors, and so is a pass whose requirements no earlier pass
ensures.  Nothing runs before all of this has been checked.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.resources
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tffc.errors import PipelineError
from tffc.ir.nodes import Node
from tffc.ir.verify import CLOSED

GIVEN = (CLOSED,)
"""The invariants that hold before any pass has run; compiling checks them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    """A named rewriting, with the invariants it relies on and those it brings about.

    Its options are the keyword-only parameters of `function`, of types bool, int and str.
    """

    name: str
    function: Callable[..., Node]
    requires: tuple[str, ...] = ()
    ensures: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of what is said about the pass."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]

    @property
    def options(self) -> dict[str, type]:
        """The types of the options by name."""
        parameters = inspect.signature(self.function, eval_str=True).parameters.values()
        return {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY}


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One pass with the options it runs with."""

    each: Pass
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


Observer = Callable[[Step, Node], None]
"""Told of the program after each step; verifying, printing and timing are observers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """A sequence of steps whose order has been checked."""

    name: str
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        held: set[str] = set(GIVEN)
        for step in self.steps:
            missing = [invariant for invariant in step.each.requires if invariant not in held]
            if missing:
                raise PipelineError(
                    "E360",
                    f"{step.each.name} requires {missing[0]}, which no pass before it ensures",
                    notes=(f"in the pipeline {self.name!r}",),
                )
            held.update(step.each.ensures)

    def run(self, program: Node, observers: Iterable[Observer] = ()) -> Node:
        """The program after all steps; the observers see it after each."""
        watching = tuple(observers)
        for step in self.steps:
            program = step.each.function(program, **step.options)
            for observe in watching:
                observe(step, program)
        return program

    def ensures(self, invariant: str) -> bool:
        """Whether a step brings `invariant` about."""
        return any(invariant in step.each.ensures for step in self.steps)


def load_pipeline(form: str, passes: Mapping[str, Pass]) -> Pipeline:
    """The pipeline that ships for a form.

    Raises:
      PipelineError: there is none of that name.
    """
    folder = importlib.resources.files("tffc.passes") / "pipelines"
    known = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir())
    if form not in known:
        raise PipelineError(
            "E361", f"there is no pipeline {form!r}", notes=(f"there are {', '.join(known)}",)
        )
    text = (folder / f"{form}.yaml").read_text(encoding="utf-8")
    return parse_pipeline(text, f"{form}.yaml", passes)


def parse_pipeline(text: str, source: str, passes: Mapping[str, Pass]) -> Pipeline:
    """The pipeline written in `text`; `source` names it in messages.

    Raises:
      PipelineError: the text is not YAML, or not a pipeline as the module's text describes it.
    """
    import yaml

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PipelineError("E362", f"{source} is not YAML", notes=(str(error),)) from None
    if not isinstance(content, dict) or set(content) != {"name", "passes"}:
        raise PipelineError("E363", f"{source} has to be a mapping with the keys name and passes")
    entries = content["passes"]
    if not isinstance(content["name"], str) or not isinstance(entries, list):
        raise PipelineError("E364", f"in {source}, name has to be text and passes a list")
    return Pipeline(content["name"], tuple(_step(entry, source, passes) for entry in entries))


def _step(entry: object, source: str, passes: Mapping[str, Pass]) -> Step:
    options: object = {}
    name = entry
    if isinstance(entry, dict) and len(entry) == 1:
        ((name, options),) = entry.items()
    if not isinstance(name, str) or not isinstance(options, dict):
        raise PipelineError(
            "E365", f"in {source}, {entry!r} is neither a pass nor a pass with a mapping of options"
        )
    if name not in passes:
        raise PipelineError(
            "E366", f"in {source}, there is no pass {name!r}", help=nearest(name, passes)
        )
    _check_options(passes[name], options, source)
    return Step(passes[name], options)


def _check_options(each: Pass, options: Mapping[object, object], source: str) -> None:
    known = each.options
    for name, value in options.items():
        if name not in known:
            raise PipelineError(
                "E367",
                f"in {source}, the pass {each.name} has no option {name!r}",
                help=nearest(str(name), known),
            )
        if type(value) is not known[str(name)]:
            raise PipelineError(
                "E368",
                f"in {source}, the option {name} of {each.name} has to be "
                f"{known[str(name)].__name__}, found {value!r}",
            )


def nearest(name: str, known: Iterable[str]) -> str:
    """A line of help for a name that is not among the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names) or 'none'}"
