"""The option `--form`: what a round is compiled to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from tffc.cli.usage import TableChoice


def form_option(help: str, *, required: bool = False) -> Callable[[Any], Any]:
    """Return the decorator that adds the option to a command."""
    return click.option("--form", required=required, type=TableChoice(_names), help=help)


def _names() -> Iterable[str]:
    from tffc.backends.forms.kinds import FORMS

    return FORMS
