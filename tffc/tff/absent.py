"""Optional dependencies of TFF's libraries, which import them although few programs use them.

If one is not installed, its attributes are classes that can be named, as in an annotation, but
refuse to be used.
"""

from __future__ import annotations

import importlib.abc
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from tffc.support.errors import MissingExtraError
from tffc.tff.stand_in import Creator

DISTRIBUTIONS = {"vizier": "google-vizier"}
"""The packages, and the distributions that install them."""


class _Absent(type):
    """The metaclass of classes that only have a name."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls.__qualname__} has no attribute {name!r}")
        return _Absent(f"{cls.__qualname__}.{name}", (), {})

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        distribution = DISTRIBUTIONS[cls.__qualname__.partition(".")[0]]
        raise MissingExtraError(
            "E181",
            f"{cls.__qualname__} is part of {distribution}, which is not installed",
            help=f"pip install {distribution}",
        )


class _AbsentModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _Absent(f"{self.__name__}.{name}", (), {})


class AbsentFinder(importlib.abc.MetaPathFinder):
    """Finds the packages in `DISTRIBUTIONS` and all their modules.

    It must come last among the finders, so that installed packages are found first.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module of these packages; None for any other."""
        if name.partition(".")[0] not in DISTRIBUTIONS:
            return None
        return ModuleSpec(name, Creator(_AbsentModule), is_package=True)
