"""Prints the page of the documentation that leads to all pages of errors."""

from __future__ import annotations

import sys

from tffc.support.explanations import index

sys.stdout.write(index())
