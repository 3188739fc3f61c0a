"""Loading Arrow, an optional dependency, and turning its errors into ours."""

from __future__ import annotations

import importlib
from typing import Any

from tffc.support.errors import MissingExtraError
from tffc.support.extras import installation
from tffc.support.printable import printable


def load_arrow(purpose: str, module: str = "pyarrow") -> Any:
    """Return a module of Arrow; `purpose` says in errors what it is needed for.

    Raises:
      MissingExtraError: Arrow is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        raise MissingExtraError(
            "E680",
            f"{purpose} needs pyarrow" + ("" if is_missing else ", which cannot be imported"),
            notes=() if is_missing else (printable(str(error)),),
            help=installation("parquet") if is_missing else "install releases that fit",
        ) from error
