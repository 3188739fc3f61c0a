"""Running compiled sections."""

from __future__ import annotations

import atexit
import functools
from typing import Any, Protocol

from tffc.ir.nodes import Compiled

CACHED_SECTIONS = 256
"""How many sections stay loaded."""


class Runner(Protocol):
    """A loaded section: a function of its argument, or of None where it takes none."""

    def __call__(self, argument: Any) -> Any: ...


def run_section(section: Compiled, argument: Any) -> Any:
    """The result of a section for an argument, both as `tffc.values.concrete` describes them.

    Every call starts from freshly initialised variables and tables.  Nothing is shared between
    calls, nor between sections.

    Raises:
      ExecutionError: the section can not be loaded, or fails while it runs.
    """
    return load_section(section)(argument)


@functools.lru_cache(maxsize=CACHED_SECTIONS)
def load_section(section: Compiled) -> Runner:
    """A section ready to run; it stays loaded.

    Raises:
      ExecutionError: the section can not be loaded.
    """
    if section.kind == "tensorflow":
        from tffc.frameworks.tensorflow.runner import TensorFlowRunner

        return TensorFlowRunner(section)
    from tffc.frameworks.jax.runner import XlaRunner

    return XlaRunner(section)


# TensorFlow complains about sessions that outlive its modules.
atexit.register(load_section.cache_clear)
