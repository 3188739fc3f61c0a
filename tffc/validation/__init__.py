"""Translation validation: tests that compiled programs compute what the traced program does.

The traced program, the result of each pass, and the form run on arguments generated from the type
of the program, or on real data, and their results are compared.
"""

from __future__ import annotations

from tffc.validation.validate import Report, validate

__all__ = ["Report", "validate"]
