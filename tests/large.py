"""The examples whose models are so large that tests of them take minutes, and run at night."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

LARGE = ("torch-lora", "torch-text")
"""Golden checks and tests of what they print run them by day."""


def each_example(
    argument: str, examples: Iterable[Any], name_of: Callable[[Any], str] = str
) -> pytest.MarkDecorator:
    """Run a test with each example, and with the large ones at night."""
    return pytest.mark.parametrize(
        argument,
        [
            pytest.param(
                example,
                id=name_of(example),
                marks=[pytest.mark.long] if name_of(example) in LARGE else [],
            )
            for example in examples
        ],
    )
