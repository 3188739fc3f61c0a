"""The option `--form`: what a round is compiled to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tffc.cli.near import Choice

FORMS = ("mapreduce", "broadcast", "distribute-aggregate")
"""The forms by name; those of `tffc.backends`, which the help does without loading."""


def form_option(help: str, *, required: bool = False) -> Callable[[Any], Any]:
    """Return the decorator that adds the option to a command."""
    return click.option("--form", required=required, type=Choice(FORMS), help=help)
