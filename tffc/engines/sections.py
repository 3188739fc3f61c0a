"""Running sections as engines do, unlike the interpreter, which runs them unchanged.

XLA sections are run by TensorFlow if possible, so that running rounds needs no JAX, and
TensorFlow's graphs are rewritten to run faster.
"""

from __future__ import annotations

import functools
from typing import Any

from tffc.engines.reductions.loops import loops_for_reductions
from tffc.errors import FormError, GraphError
from tffc.frameworks import sections
from tffc.interpreter.interpreter import Interpreter
from tffc.ir.nodes import Compiled
from tffc.linking.xla import tensorflow_section


def run_section(section: Compiled, argument: Any) -> Any:
    """Run a section on an argument; see `tffc.frameworks.sections.run_section`."""
    return sections.run_section(_graph(section), argument, loops_for_reductions)


def load_section(section: Compiled) -> sections.Runner:
    """Load a section, ready to run; see `tffc.frameworks.sections.load_section`."""
    return sections.load_section(_graph(section), loops_for_reductions)


@functools.lru_cache(maxsize=sections.CACHED_SECTIONS)
def _graph(section: Compiled) -> Compiled:
    """Return the section as a TensorFlow graph, or unchanged if XLA code has no such graph."""
    try:
        return tensorflow_section(section)
    except (FormError, GraphError):
        return section


class EngineInterpreter(Interpreter):
    """Evaluates components that are programs, with sections as engines run them."""

    def run_section(self, section: Compiled, argument: Any) -> Any:
        return run_section(section, argument)
