"""Sections as engines run them: rewritten to run faster, where the judge runs them as they are."""

from __future__ import annotations

from typing import Any

from tffc.engines.reductions.loops import loops_for_reductions
from tffc.frameworks import sections
from tffc.interpreter.interpreter import Interpreter
from tffc.ir.nodes import Compiled


def run_section(section: Compiled, argument: Any) -> Any:
    """Return what a section gives for an argument; see `tffc.frameworks.sections.run_section`."""
    return sections.run_section(section, argument, loops_for_reductions)


def load_section(section: Compiled) -> sections.Runner:
    """Make a section ready to run; see `tffc.frameworks.sections.load_section`."""
    return sections.load_section(section, loops_for_reductions)


class EngineInterpreter(Interpreter):
    """Evaluates components that are programs, with sections as engines run them."""

    def run_section(self, section: Compiled, argument: Any) -> Any:
        return run_section(section, argument)
