"""Importing TensorFlow late and quietly, also when a user's module imports it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeAlias

from tffc.runtime.frameworks.environment import prepare_environment
from tffc.runtime.frameworks.tensorflow.deferred import deferring
from tffc.runtime.frameworks.tensorflow.quiet import keep_quiet, may_speak, quiet
from tffc.support.errors import ExecutionError

TensorFlow: TypeAlias = Any
"""The module `tensorflow`.  It is loaded when it is needed, and type checkers do not know it."""

Tensor: TypeAlias = Any
"""A tensor of TensorFlow, or an array or a number where TensorFlow takes one for a tensor."""

LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
"""The libraries that importing TensorFlow loads, in this order."""


def load_tensorflow() -> TensorFlow:
    """Return the module `tensorflow`.

    Raises:
      ExecutionError: it is not installed, or its import fails.
    """
    loaded = sys.modules.get("tensorflow")
    if loaded is not None:
        return loaded
    keep_quiet()
    try:
        with quiet(), deferring():
            load_libraries()
            loaded = importlib.import_module("tensorflow")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "tensorflow":
            raise ExecutionError(
                "E701",
                "TensorFlow is not installed, and this computation needs it",
                help="pip install tensorflow",
            ) from None
        raise ExecutionError(
            "E701",
            f"TensorFlow cannot be imported: {type(error).__name__}: {error}",
            help="see whether `python -c 'import tensorflow'` works, and install it again if not",
        ) from error
    find_devices(loaded)
    return loaded


def is_installed() -> bool:
    """Return whether TensorFlow is loaded, or is there to be loaded; this does not load it."""
    if "tensorflow" in sys.modules:
        # Python's mark for a module that may not be imported is None.
        return sys.modules.get("tensorflow") is not None
    return importlib.machinery.PathFinder.find_spec("tensorflow") is not None


def load_libraries() -> None:
    """Preload TensorFlow's libraries, if they exist, without blocking other threads.

    The import itself holds the GIL, for seconds where libraries come from a slow disk; Ctrl-C would
    have to wait.
    """
    spec = importlib.machinery.PathFinder.find_spec("tensorflow")
    load = getattr(ctypes.CDLL(None), "dlopen", None) if os.name == "posix" else None
    if spec is None or spec.origin is None or load is None:
        return
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    for name in LIBRARIES:
        load(os.fsencode(os.path.join(os.path.dirname(spec.origin), name)), os.RTLD_NOW)


def use_threads(count: int) -> None:
    """Make TensorFlow compute each operation with that many threads.

    No effect once TensorFlow has computed anything, or if environment variables set it.
    """
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(count))


def use_accelerators() -> None:
    """Let sections that run by themselves use accelerators, which is slower for small ones."""
    global _uses_accelerators
    _uses_accelerators = True


def uses_accelerators() -> bool:
    """Return whether sections that run by themselves may use accelerators."""
    return _uses_accelerators


_uses_accelerators = False


def use_processors(count: int) -> None:
    """Make TensorFlow divide the processor into this many devices, `CPU:0`, `CPU:1` and so on, each
    with threads of its own.

    XLA runs parts of a call in the threads of the call's device, so calls on one device wait for
    one another.  No effect once TensorFlow has looked for its devices, or if the user's module has
    divided the processor itself.
    """
    global _processors
    _processors = count
    os.environ.setdefault("TF_OVERRIDE_GLOBAL_THREADPOOL", "1")


_processors = 1


@functools.cache
def find_devices(tf: TensorFlow) -> None:
    """Let TensorFlow find its devices, quietly; it does so once.

    Must be called before anything runs: a TensorFlow that the user imported would log otherwise.
    """
    prepare_environment()
    with quiet():
        _divide_processor(tf)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.run(tf.constant(0))


def _divide_processor(tf: TensorFlow) -> None:
    if _processors == 1:
        return
    config, (processor, *_) = tf.config, tf.config.list_physical_devices("CPU")
    if config.get_logical_device_configuration(processor) is None:
        parts = [config.LogicalDeviceConfiguration()] * _processors
        with contextlib.suppress(RuntimeError):  # TensorFlow has computed something already
            config.set_logical_device_configuration(processor, parts)


def devices_for_calls(tf: TensorFlow) -> list[str]:
    """Return the devices that compiled functions run on by default: accelerators if there are any,
    otherwise the processors."""
    devices = _logical_devices(tf)
    names = [device for device in devices if device.device_type == "GPU"] or [
        device for device in devices if device.device_type == "CPU"
    ]
    return [device_name(device) for device in names]


def all_devices() -> list[str]:
    """Return the names of all devices.

    Raises:
      ExecutionError: TensorFlow is not installed.
    """
    return [device_name(device) for device in _logical_devices(load_tensorflow())]


def device_name(device: Any) -> str:
    """Return the short name of a device, such as `CPU:0`."""
    return f"{device.device_type}:{device.name.rpartition(':')[2]}"


def _logical_devices(tf: TensorFlow) -> Any:
    find_devices(tf)
    return tf.config.list_logical_devices()


def quiet_import() -> None:
    """Make TensorFlow quiet whenever it is imported from now on; this loads nothing.

    Setting the environment variable TFFC_DEBUG to 1, or TensorFlow's own TF_CPP_MIN_LOG_LEVEL to 0,
    lets it log.
    """
    keep_quiet()
    prepare_environment()
    loaded = "tensorflow" in sys.modules
    installed = any(isinstance(finder, _QuietFinder) for finder in sys.meta_path)
    if not loaded and not installed and not may_speak():
        sys.meta_path.insert(0, _QuietFinder())


def quiet_start() -> None:
    """Load TensorFlow and let it find its devices, quietly.

    Raises:
      ExecutionError: it is not installed.
    """
    quiet_import()
    find_devices(load_tensorflow())


def hear_prints(write: Callable[[str], object]) -> None:
    """Pass what `tf.print` prints to a function instead of stderr, for the rest of the process.

    Prints to files are unaffected.  If this release of TensorFlow cannot do that, it prints to
    stderr as usual.
    """
    library = os.path.join(os.path.dirname(load_tensorflow().__file__), "libtensorflow_cc.so.2")

    @ctypes.CFUNCTYPE(None, ctypes.c_char_p)
    def listen(message: bytes) -> None:
        write(message.decode(errors="backslashreplace"))

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(library).TF_RegisterLogListener(listen)
        _listeners.append(listen)


_listeners: list[Any] = []
"""Callbacks that TensorFlow holds, which must live as long as the process."""


class _QuietFinder(MetaPathFinder):
    """Finds TensorFlow as usual, once, but makes it load quietly."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _QuietLoader(spec.loader)
        return spec


class _QuietLoader(Loader):
    """Loads a module quietly, leaving no trace in it."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        assert module.__spec__ is not None
        module.__spec__.loader = self.loader
        with quiet(), deferring():
            load_libraries()
            self.loader.exec_module(module)
            # The user's module may compute something, and from then on it is too late.
            _divide_processor(module)


def tensor_name(edge: str) -> str:
    """Return the name of the tensor that a node's input refers to; an edge omits port 0."""
    return edge if ":" in edge else f"{edge}:0"
