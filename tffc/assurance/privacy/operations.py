"""TensorFlow's operations that privacy is shown through.

What is not among them is followed no further.
"""

from __future__ import annotations

from tffc.assurance.privacy.arithmetic import ARITHMETIC
from tffc.assurance.privacy.clocks import CLOCKS
from tffc.assurance.privacy.layouts import LAYOUTS
from tffc.assurance.privacy.matrices import MATRICES
from tffc.assurance.privacy.random_numbers import RANDOM_NUMBERS

TABLES = (ARITHMETIC, LAYOUTS, MATRICES, RANDOM_NUMBERS, CLOCKS)

OPERATIONS = {name: rule for table in TABLES for name, rule in table.rules.items()}
"""The rules of operations, by their names."""
