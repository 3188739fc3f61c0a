"""What cannot be lowered."""

from __future__ import annotations

from tffc.backends.forms.steps import CannotBatchError


class NotLoweredError(CannotBatchError):
    """A section cannot be computed by XLA as a whole, and why, in words for an engineer."""
