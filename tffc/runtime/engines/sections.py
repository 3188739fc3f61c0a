"""Running sections as engines do, unlike the interpreter, which runs them unchanged.

XLA sections are run by TensorFlow if it is installed and can, so that running rounds needs no JAX,
and by JAX otherwise.  TensorFlow's graphs are rewritten to run faster, and those of clients to
print nothing; where TensorFlow is not installed, they are compiled by way of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.linking.xla import tensorflow_section
from tffc.runtime.engines.showing import is_showing, leave_prints_out
from tffc.runtime.frameworks import sections
from tffc.runtime.frameworks.resources import result_resources
from tffc.runtime.frameworks.tensorflow.load import is_installed
from tffc.runtime.interpreter.interpreter import Interpreter
from tffc.runtime.reductions.loops import loops_for_reductions
from tffc.support.errors import MISSING_PACKAGE, FormError, GraphError, TffcError

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef
    from tffc.runtime.frameworks.tensorflow.runner import Columns, Rewrite


NO_PROGRAMS: Mapping[str, Node] = {}
"""No programs that an error could name."""


def run_section(
    section: Compiled, argument: Any, programs: Mapping[str, Node] = NO_PROGRAMS
) -> Any:
    """Run a section on an argument; see `tffc.runtime.frameworks.sections.run_section`.

    If it cannot run without a package, the error names those of `programs` that hold it.
    """
    try:
        return load_section(section)(argument)
    except TffcError as error:
        name_programs(error, section, programs)
        raise


def name_programs(error: TffcError, section: Compiled, programs: Mapping[str, Node]) -> None:
    """Add to the error of a section that needs a package which programs of a bundle hold it."""
    if error.code != MISSING_PACKAGE:
        return
    error.holds_values = False  # it was raised before anything was computed
    names = [f"`{name}`" for name, node in programs.items() if section in walk(node)]
    if names:
        error.notes += (f"it is in the bundle's {' and '.join(names)}",)


def load_section(section: Compiled) -> sections.Runner:
    """Load a section, ready to run; see `tffc.runtime.frameworks.sections.load_section`."""
    if section.kind == "tensorflow" and not is_installed() and result_resources(section) is None:
        return _lowered(section)
    return sections.load_section(_graph(section), _rewrite())


@functools.lru_cache(maxsize=sections.CACHED_SECTIONS)
def _lowered(section: Compiled) -> sections.Runner:
    # It imports JAX.
    from tffc.runtime.lowering.runner import LoweredRunner

    return LoweredRunner(section)


def _rewrite() -> Rewrite:
    """Return how graphs are changed here; those of clients print only if they may show values."""
    return loops_for_reductions if is_showing() else _silent_loops


def _silent_loops(graph: GraphDef, columns: Columns) -> None:
    leave_prints_out(graph)
    loops_for_reductions(graph, columns)


@functools.lru_cache(maxsize=sections.CACHED_SECTIONS)
def _graph(section: Compiled) -> Compiled:
    """Return the section as a TensorFlow graph, or unchanged if XLA code has no such graph, or if
    TensorFlow is not installed."""
    if section.kind != "tensorflow" and not is_installed():
        return section
    try:
        return tensorflow_section(section)
    except (FormError, GraphError):
        return section


class EngineInterpreter(Interpreter):
    """Evaluates components that are programs, with sections as engines run them; errors may name
    `programs`, see `run_section`."""

    def __init__(self, clients: int, programs: Mapping[str, Node] = NO_PROGRAMS) -> None:
        super().__init__(clients)
        self._programs = programs

    def run_section(self, section: Compiled, argument: Any) -> Any:
        return run_section(section, argument, self._programs)
