"""Translation validation: whether what was made of a program computes what the program computes.

The reference interpreter runs the traced program and what each pass and the form made of it, on
arguments made from the program's type or on real data.
"""

from __future__ import annotations

from tffc.validation.validate import Report, validate

__all__ = ["Report", "validate"]
