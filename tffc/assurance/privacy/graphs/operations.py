"""TensorFlow's operations that privacy is shown through.

What is not among them is followed no further.
"""

from __future__ import annotations

from tffc.assurance.privacy.graphs.arithmetic import ARITHMETIC
from tffc.assurance.privacy.graphs.clocks import CLOCKS
from tffc.assurance.privacy.graphs.layouts import LAYOUTS
from tffc.assurance.privacy.graphs.matrices import MATRICES
from tffc.assurance.privacy.graphs.poisson import POISSON_NUMBERS
from tffc.assurance.privacy.graphs.random_numbers import RANDOM_NUMBERS

TABLES = (ARITHMETIC, LAYOUTS, MATRICES, RANDOM_NUMBERS, POISSON_NUMBERS, CLOCKS)

OPERATIONS = {name: rule for table in TABLES for name, rule in table.rules.items()}
"""The rules of operations, by their names."""
