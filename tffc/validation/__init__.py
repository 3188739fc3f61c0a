"""Translation validation: checking that compiled programs compute what the traced program does.

The reference interpreter runs the traced program, the result of each pass, and the form, on
arguments made from the program's type or from real data, and compares the results.
"""

from __future__ import annotations

from tffc.validation.validate import Report, validate

__all__ = ["Report", "validate"]
