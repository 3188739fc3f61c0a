"""Passes, and pipelines of them: which run, in which order, with which options.

Invariants hold the order together: a pass names those that it relies on, those that it brings about
and those that it may undo.  A pipeline whose order does not fit is never made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from tffc.language.invariants import CLOSED
from tffc.language.nodes import Node
from tffc.support.errors import PassError, PipelineError, Span, TffcError
from tffc.support.near import nearest

GIVEN = (CLOSED,)
"""The invariants that hold before any pass has run; compiling checks them."""

OWN = "tffc"

ORDER = "put a pass that ensures it before; `tffc passes` lists what each ensures"


class Pass(NamedTuple):
    """A named rewriting of programs that keeps their type and what they compute.

    It relies on the invariants `requires`, brings `ensures` about, may undo `breaks`, and leaves
    all others as they were.  Its options are the keyword-only parameters of `function`, of types
    bool, int and str.  `package` is the distribution that it comes with.
    """

    name: str
    function: Callable[..., Node]
    requires: tuple[str, ...] = ()
    ensures: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    package: str = OWN

    @property
    def description(self) -> str:
        """The description of the pass."""
        return inspect.getdoc(self.function) or ""

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.partition("\n")[0]

    @property
    def details(self) -> str:
        """The description after its first line."""
        return self.description.partition("\n")[2].strip("\n")

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options by name, each with its type and default."""
        parameters = inspect.signature(self.function, eval_str=True).parameters.values()
        return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def example(self) -> str | None:
        """A case that shows what the pass does: `examples/NAME.case` beside its module, or None.

        A case is a line with a title, a program, a line `---`, and what becomes of the program.
        """
        import importlib.resources  # which compiling does without

        module = importlib.import_module(self.function.__module__)
        package = module.__spec__.parent if module.__spec__ is not None else None
        if not package:
            return None
        file = importlib.resources.files(package) / "examples" / f"{self.name}.case"
        return file.read_text(encoding="utf-8") if file.is_file() else None


class TextPlace(NamedTuple):
    """A place in the text of a pipeline: in a line of a file, or in the one line of `text`."""

    source: str
    span: Span | None = None
    text: str = ""
    start: int = 0
    end: int = 0

    def error(self, code: str, message: str, help: str | None = None) -> PipelineError:
        """Return the refusal of what stands here."""
        notes = ()
        if self.text:
            carets = " " * self.start + "^" * max(1, self.end - self.start)
            notes = (f"in the text:\n    {self.text}\n    {carets}",)
        return PipelineError(
            code, f"in {self.source}, {message}", notes=notes, help=help, span=self.span
        )


@dataclasses.dataclass(frozen=True, slots=True)
class PassStep:
    """One pass with the options it runs with, and where that is written, if it is."""

    each: Pass
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    place: TextPlace | None = dataclasses.field(default=None, compare=False)

    def __str__(self) -> str:
        """Return the text of the step, as `parse_passes` reads it."""
        options = ",".join(f"{name}={_text(value)}" for name, value in self.options.items())
        return self.each.name + (f"{{{options}}}" if options else "")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Finished(NamedTuple):
    """A step that has run: the program before and after it, and the seconds it took.

    `position` counts from 1 in the pipeline; `holds` are the invariants that hold now.
    """

    step: PassStep
    position: int
    before: Node
    after: Node
    seconds: float
    holds: tuple[str, ...]


Observer = Callable[[Finished], None]
"""Called after each step; verifying, printing and timing are observers."""

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("tffc_observers", default=())


@contextlib.contextmanager
def observing(*observers: Observer) -> Generator[None]:
    """Call these observers after each step of each pipeline that runs inside this scope.

    They are called after the observers of the run itself.
    """
    token = _observers.set((*_observers.get(), *observers))
    try:
        yield
    finally:
        _observers.reset(token)


OnFailure = Callable[["Pipeline", Node, Exception], None]
"""Called on a failure with the steps from the failed one on, the program before it, and the
error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """A sequence of steps whose order has been checked, for programs of which `given` holds.

    Raises:
      PipelineError: a pass requires what neither holds before nor an earlier pass ensures.
    """

    name: str
    steps: tuple[PassStep, ...]
    given: tuple[str, ...] = GIVEN

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            missing = [name for name in step.each.requires if name not in self.holds(index)]
            if missing:
                place = step.place or TextPlace(f"the pipeline {self.name!r}")
                why = self._why_missing(missing[0], index)
                message = f"{step.each.name} requires {missing[0]}, {why}"
                raise place.error("E360", message, help=ORDER)

    def _why_missing(self, invariant: str, index: int) -> str:
        breakers = (s.each.name for s in self.steps[:index] if invariant in s.each.breaks)
        if invariant in self.given or any(invariant in s.each.ensures for s in self.steps[:index]):
            return f"which {list(breakers)[-1]} before it may undo"
        return "which no pass before it ensures"

    def holds(self, count: int) -> tuple[str, ...]:
        """Return the invariants that hold after the first `count` steps."""
        held = dict.fromkeys(self.given)
        for step in self.steps[:count]:
            for broken in step.each.breaks:
                held.pop(broken, None)
            held.update(dict.fromkeys(step.each.ensures))
        return tuple(held)

    def run(
        self,
        program: Node,
        observers: Iterable[Observer] = (),
        on_failure: OnFailure = lambda rest, program, error: None,
    ) -> Node:
        """Return the program after all steps; the observers are called after each.

        If a step or an observer fails, `on_failure` is called before the error is raised.

        Raises:
          PassError: a pass of another package failed.
          TffcError: a pass refuses the program; its notes name the pass.
        """
        watching = (*observers, *_observers.get())
        for position, step in enumerate(self.steps, start=1):
            try:
                start = time.perf_counter()
                after = self._apply(step, position, program)
                seconds = time.perf_counter() - start
                finished = Finished(step, position, program, after, seconds, self.holds(position))
                for observe in watching:
                    observe(finished)
            except Exception as error:
                on_failure(self._rest(position - 1), program, error)
                raise
            program = after
        return program

    def _rest(self, count: int) -> Pipeline:
        """Return the steps after the first `count`."""
        return Pipeline(self.name, self.steps[count:], self.holds(count))

    def _apply(self, step: PassStep, position: int, program: Node) -> Node:
        place = f"in the pass {step.each.name}, step {position} of the pipeline {self.name!r}"
        try:
            return step.each.function(program, **step.options)
        except TffcError as error:
            error.notes = (*error.notes, place)
            raise
        except Exception as error:
            if step.each.package == OWN:
                error.add_note(place)
                raise
            raise PassError(
                "E376",
                f"the pass {step.each.name} of {step.each.package} failed with "
                f"{type(error).__name__}: {error}",
                notes=(place,),
            ) from error

    def ensures(self, invariant: str) -> bool:
        """Tell whether `invariant` holds after all steps."""
        return invariant in self.holds(len(self.steps))

    def part(self, start_from: str | None = None, stop_after: str | None = None) -> Pipeline:
        """Return the steps from the first of one name to the first of another name after it.

        What the steps left out at the beginning ensure is taken as given.

        Raises:
          PipelineError: there are no such steps.
        """
        start = 0 if start_from is None else self._find(start_from, 0)
        stop = len(self.steps) if stop_after is None else self._find(stop_after, start) + 1
        return dataclasses.replace(self._rest(start), steps=self.steps[start:stop])

    def _find(self, name: str, start: int) -> int:
        names = [step.each.name for step in self.steps]
        if name not in names[start:]:
            place = f" from {names[start]} on" if start else ""
            raise PipelineError(
                "E361",
                f"the pipeline {self.name!r} has no step {name!r}{place}",
                help=nearest(name, names[start:]),
            )
        return names.index(name, start)

    def __str__(self) -> str:
        """Return the text of the steps, as `parse_passes` reads it."""
        return ",".join(map(str, self.steps))
