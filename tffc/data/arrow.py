"""Arrow, which is an extra: loading it, and what it raises as errors of ours."""

from __future__ import annotations

import importlib
from typing import Any

from tffc.errors import MissingExtraError


def load_arrow(purpose: str, module: str = "pyarrow") -> Any:
    """Return a module of Arrow; `purpose` says in errors what needs it.

    Raises:
      MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            "E680", f"{purpose} needs pyarrow", help="pip install 'tffc[parquet]'"
        ) from error
