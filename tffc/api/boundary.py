"""The boundary between a caller in Python and tffc: where its errors are, and in which words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import TffcError

P = ParamSpec("P")
T = TypeVar("T")

ARGUMENTS = {
    "first state": "state=... gives tffc.run one, such as training.initialize(), and "
    "initialize=... gives tffc.compile its computation",
    "generated arguments": "leave data out",
    "impure duplicates": "allow_impure_duplicates=True allows them",
    "partial": "partial=True does so",
    "replace": "replace=True replaces it",
    "resume": "resume=True continues it",
    "resume later": "then resume=True continues the run",
    "run folder": "tffc.run writes one with out=...",
    "sample size": "clients_per_round=... sets the number",
}
"""For each remedy of an error, the arguments that stand for it, which are added to its help."""


SHOWING = ", with show_clients=True of tffc.run"
"""What is added to the help of an error from which values of clients were left out."""


def public(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function one for callers in Python: its errors point at the caller's line, show no
    frames of ours, and name arguments in their help."""

    @functools.wraps(function)
    def in_words_of_python(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TffcError as error:
            argument = ARGUMENTS.get(error.remedy)
            if argument is not None:
                error.help = f"{error.help}; {argument}" if error.help else argument
                # A public function may call another one, and the commands have their own words.
                error.remedy = ""
            if error.whole is not None and error.help and not error.help.endswith(SHOWING):
                error.help += SHOWING
            raise

    return entry_point(in_words_of_python)
