"""The options of the engine on Ray, which are words of a text."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from tffc.support.errors import LanguageValueError


class RayOptions(NamedTuple):
    """The options of the engine; `workers` and `address` are None where Ray decides."""

    address: str | None = None
    workers: int | None = None
    cpus_per_worker: float = 1
    gpus_per_worker: float = 0
    shard: int | None = None
    fanout: int = 8
    wait: float = 300


def parse_options(words: Sequence[str]) -> RayOptions:
    """Parse the words of the options.

    Raises:
      LanguageValueError: they cannot be parsed.
    """
    parser = _OptionParser(prog="ray", add_help=False, allow_abbrev=False)
    parser.add_argument("--address")
    parser.add_argument("--workers", type=_positive)
    parser.add_argument("--cpus-per-worker", type=_amount)
    parser.add_argument("--gpus-per-worker", type=_amount)
    parser.add_argument("--shard", type=_positive)
    parser.add_argument("--fanout", type=_power_of_two)
    parser.add_argument("--wait", type=_amount)
    options = vars(parser.parse_args(list(words)))
    return RayOptions(**{name: value for name, value in options.items() if value is not None})


class _OptionParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LanguageValueError(
            "E931",
            "the engine on Ray does not take these options",
            notes=(message,),
            help="give --address=auto, --workers=N, --cpus-per-worker=X, --gpus-per-worker=X, "
            "--shard=N, --fanout=N or --wait=SECONDS",
        )


def _positive(text: str) -> int:
    return _number(text, int, lambda number: number > 0, "a positive number")


def _amount(text: str) -> float:
    return _number(text, float, lambda number: 0 <= number < 2**20, "a number from 0 on")


def _power_of_two(text: str) -> int:
    return _number(text, int, lambda number: number > 1 and not number & number - 1, "2, 4, 8 ...")


N = TypeVar("N", int, float)


def _number(text: str, kind: type[N], holds: Callable[[N], bool], expected: str) -> N:
    with contextlib.suppress(ValueError):
        if holds(kind(text)):
            return kind(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
