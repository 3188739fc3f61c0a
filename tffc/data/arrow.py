"""Arrow, which is an extra: loading it, and what it raises as errors of ours."""

from __future__ import annotations

import importlib
from typing import Any

from tffc.errors import MissingExtraError
from tffc.printable import printable


def load_arrow(purpose: str, module: str = "pyarrow") -> Any:
    """Return a module of Arrow; `purpose` says in errors what needs it.

    Raises:
      MissingExtraError: it is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        raise MissingExtraError(
            "E680",
            f"{purpose} needs pyarrow" + ("" if is_missing else ", which cannot be imported"),
            notes=() if is_missing else (printable(str(error)),),
            help="pip install 'tffc[parquet]'" if is_missing else "install releases that fit",
        ) from error
