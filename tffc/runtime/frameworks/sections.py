"""Running compiled sections."""

from __future__ import annotations

import atexit
import functools
from typing import TYPE_CHECKING, Any, Protocol

from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType

if TYPE_CHECKING:
    from tffc.runtime.frameworks.tensorflow.runner import Rewrite

CACHED_SECTIONS = 256
"""The number of sections that stay loaded."""


class Runner(Protocol):
    """A loaded section: a function of its argument, or of None if it takes none."""

    def __call__(self, argument: Any) -> Any: ...


def run_section(section: Compiled, argument: Any, rewrite: Rewrite | None = None) -> Any:
    """Return the result of a section; argument and result are as `tffc.language.values.concrete`
    describes.

    Every call starts with freshly initialised variables and tables.  Nothing is shared between
    calls or between sections.

    Raises:
      ExecutionError: the section cannot be loaded, or fails while it runs.
    """
    return load_section(section, rewrite)(argument)


@functools.lru_cache(maxsize=CACHED_SECTIONS)
def load_section(section: Compiled, rewrite: Rewrite | None = None) -> Runner:
    """Load a section, ready to run; it stays loaded.

    A section that gives resources alone needs no framework.  A TensorFlow graph is run as it is, or
    as `rewrite` changes it.  A section loaded both ways is loaded twice.

    Raises:
      ExecutionError: the section cannot be loaded.
    """
    # What reads and runs sections takes time to import, and most commands run none.
    from tffc.runtime.frameworks.resources import ResourceRunner, result_resources

    resources = result_resources(section)
    if resources is not None:
        assert isinstance(section.type, FunctionType)
        return ResourceRunner(section.type, resources)
    if section.kind == "tensorflow":
        from tffc.runtime.frameworks.tensorflow.runner import TensorFlowRunner

        return TensorFlowRunner(section, rewrite)
    from tffc.runtime.frameworks.jax.runner import XlaRunner

    return XlaRunner(section)


# TensorFlow complains about sessions that outlive its modules.
atexit.register(load_section.cache_clear)
