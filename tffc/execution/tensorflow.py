"""The one place that imports TensorFlow: late, and without a word on the terminal."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

from tffc.errors import ExecutionError

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""What keeps TensorFlow's libraries silent when they load.

The notice about oneDNN ignores the log level; without oneDNN sums are also reproducible.
"""


def keep_quiet() -> None:
    """Makes TensorFlow silent from its import on, unless it is loaded or its user chose otherwise.

    Loads nothing itself; call it before running code that may import TensorFlow.
    """
    if "tensorflow" in sys.modules or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    # absl makes its logger of a class of its own, so it has to be loaded before the level is set.
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("absl.logging").set_verbosity("error")


def load_tensorflow() -> Any:
    """The module `tensorflow`.

    Raises:
      ExecutionError: it is not installed.
    """
    loaded = sys.modules.get("tensorflow")
    if loaded is not None:
        return loaded
    keep_quiet()
    try:
        return importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise ExecutionError(
            "E701",
            "TensorFlow is not installed, and this computation needs it",
            help="pip install tensorflow",
        ) from None


@contextlib.contextmanager
def chain_side_effects() -> Iterator[None]:
    """Orders what is added to the default graph: operations that change the same variable or
    table, or read it, run in the order in which they were added."""
    control = importlib.import_module("tensorflow.python.framework.auto_control_deps")
    logger = logging.getLogger("tensorflow")
    logger.addFilter(_is_no_complaint)
    try:
        with control.AutomaticControlDependencies():
            yield
    finally:
        logger.removeFilter(_is_no_complaint)


def _is_no_complaint(record: logging.LogRecord) -> bool:
    """Whether a message is another than the one about a check that its author does not use.

    TensorFlow gives it for graphs whose side effects nobody orders.
    """
    return "Object was never used" not in str(record.msg)


def tensor_name(edge: str) -> str:
    """The name of the tensor that an input of a node stands for; port 0 is not spelled out."""
    return edge if ":" in edge else f"{edge}:0"
