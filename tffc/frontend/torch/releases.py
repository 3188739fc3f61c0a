"""Late loading of PyTorch, and of the translations of its operations to JAX, from torchax.

PyTorch 2.13 dropped tensors whose dimensions have names.  The released torchax names the overloads
of operations for them, which nothing calls, and so cannot be imported beside it without stand-ins.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any
from unittest import mock

from tffc.support.errors import ExecutionError, MissingExtraError
from tffc.support.extras import installation

RELEASES = ("2.13",)
"""The releases of PyTorch that were tried."""

NAMED_DIMENSIONS = re.compile("dimname|names", re.IGNORECASE)
"""What overloads for tensors whose dimensions have names are called by."""

TORCHAX = ("0.0.13",)
"""The releases of torchax whose translations have been compared with PyTorch."""


def load_torch() -> Any:
    """Return the module `torch`.

    Raises:
      MissingExtraError: it is not installed.
      ExecutionError: its release has not been tried.
    """
    torch = _imported("torch")
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in RELEASES:
        raise ExecutionError(
            "E586",
            f"PyTorch {torch.__version__} has not been tried with this tffc",
            notes=(f"tried are {', '.join(RELEASES)}",),
            help=f"install a release that was, {installation('torch')}",
        )
    return torch


@functools.cache
def load_translations() -> Mapping[Any, Any]:
    """Return torchax's operators by the operations of PyTorch that they translate.

    Raises:
      MissingExtraError: torchax or JAX is not installed.
      ExecutionError: the release of torchax or PyTorch has not been tried.
    """
    torch = load_torch()
    fast = torch.backends.mha.get_fastpath_enabled()
    with _stand_ins(torch):
        torchax = _imported("torchax")
        torchax.default_env()
    # Importing torchax turns this off for the whole process.
    torch.backends.mha.set_fastpath_enabled(fast)
    if torchax.__version__ not in TORCHAX:
        raise ExecutionError(
            "E586",
            f"torchax {torchax.__version__} has not been tried with this tffc",
            notes=(f"tried is {', '.join(TORCHAX)}",),
            help=f"install the release that was, {installation('torch')}",
        )
    return importlib.import_module("torchax.ops.ops_registry").all_aten_ops


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            "E701",
            f"a PyTorch computation needs {name}, which cannot be imported",
            notes=(str(error),),
            help=installation("torch"),
        ) from None


@contextlib.contextmanager
def _stand_ins(torch: Any) -> Generator[None]:
    """Let operations of PyTorch have overloads for named dimensions: texts, which nothing calls."""
    packet = type(torch.ops.aten.add)
    own: Callable[[Any, str], Any] = packet.__getattr__

    def overload(operation: Any, name: str) -> Any:
        try:
            return own(operation, name)
        except AttributeError:
            if NAMED_DIMENSIONS.search(name) is None:
                raise
            return f"{operation}.{name}"

    with mock.patch.object(packet, "__getattr__", overload):
        yield
