"""The functions that the modules of a Flower app call; such a module is a few lines long.

from tffc.deploy.flower.apps import server_app

app = server_app(__file__)
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import importlib.util
import os
from types import ModuleType
from typing import TYPE_CHECKING

from tffc.support.errors import MissingExtraError
from tffc.support.extras import installation

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp  # pyright: ignore[reportMissingImports]  # an extra
    from flwr.serverapp import ServerApp  # pyright: ignore[reportMissingImports]  # an extra


def server_app(module: str | os.PathLike[str]) -> ServerApp:
    """Return the server's side, a Flower `ServerApp`, of the app that the module belongs to.

    Raises:
      MissingExtraError: Flower is not installed.
    """
    return _sides().server_app(module)


def client_app(module: str | os.PathLike[str]) -> ClientApp:
    """Return a node's side, a Flower `ClientApp`, of the app that the module belongs to.

    Raises:
      MissingExtraError: Flower is not installed.
    """
    return _sides().client_app(module)


def _sides() -> ModuleType:
    if importlib.util.find_spec("flwr") is None:
        raise MissingExtraError(
            "E701",
            "Flower is not installed, and its apps need it",
            help=installation("flower"),
        )
    # This imports Flower.
    from tffc.deploy.flower import sides

    return sides
