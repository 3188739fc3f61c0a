"""The one place that imports TensorFlow: late, and without a word on the terminal."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.machinery
import logging
import os
import sys
from typing import Any

from tffc.errors import ExecutionError
from tffc.frameworks.tensorflow.silence import LEVEL, SILENT, may_speak, silence

LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
"""What importing TensorFlow loads, in this order."""


def keep_quiet() -> None:
    """Makes TensorFlow silent from its import on, unless it is loaded or may speak.

    That includes what it logs through Python's `logging`, such as AutoGraph's warnings, but errors.
    Without oneDNN, whose notice ignores the level, sums are also reproducible.  Loads nothing
    itself; call it before running code that may import TensorFlow.
    """
    if "tensorflow" in sys.modules or may_speak():
        return
    os.environ[LEVEL] = SILENT
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
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
        with silence():
            load_libraries()
            loaded = importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise ExecutionError(
            "E701",
            "TensorFlow is not installed, and this computation needs it",
            help="pip install tensorflow",
        ) from None
    find_devices(loaded)
    return loaded


def load_libraries() -> None:
    """Loads TensorFlow's libraries, if they are there, while other threads run.

    Its import would let none run meanwhile, which takes seconds where they come from a slow disk;
    Ctrl-C would have to wait.
    """
    spec = importlib.machinery.PathFinder.find_spec("tensorflow")
    load = getattr(ctypes.CDLL(None), "dlopen", None) if os.name == "posix" else None
    if spec is None or spec.origin is None or load is None:
        return
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    for name in LIBRARIES:
        load(os.fsencode(os.path.join(os.path.dirname(spec.origin), name)), os.RTLD_NOW)


@functools.cache
def find_devices(tf: Any) -> None:
    """Lets TensorFlow find its devices, and tell nobody; it does so once.

    To be called before anything is run, for the user may have imported it, which then speaks.
    """
    with silence(), tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.constant(0))


def tensor_name(edge: str) -> str:
    """The name of the tensor that an input of a node stands for; port 0 is not spelled out."""
    return edge if ":" in edge else f"{edge}:0"
