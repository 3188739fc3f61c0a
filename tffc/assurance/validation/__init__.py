"""Translation validation: tests that compiled programs compute what the traced program does.

The traced program, the result of each pass, and the form are run on the same arguments, which are
generated from the program's type or taken from real data, and their results are compared.
"""

from __future__ import annotations

from tffc.assurance.validation.validate import Report, validate

__all__ = ["Report", "validate"]
