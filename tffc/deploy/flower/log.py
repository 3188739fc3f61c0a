"""Flower's log, which operators read."""

from __future__ import annotations

import logging
import sys

from tffc.runtime.operations.json_log import write_as_configured
from tffc.support.errors import TffcError

LOG = logging.getLogger("flwr")


def configure_log() -> None:
    """Make a process of Flower's log as `TFFC_LOG` says, or end it if that says nothing known."""
    try:
        write_as_configured(LOG)
    except TffcError as error:
        sys.exit(str(error))
