"""TensorFlow's operations that privacy is shown through.

What is not among them is followed no further.
"""

from __future__ import annotations

from tffc.assurance.privacy.arithmetic import ARITHMETIC
from tffc.assurance.privacy.layouts import LAYOUTS
from tffc.assurance.privacy.matrices import MATRICES
from tffc.assurance.privacy.random_numbers import RANDOM_NUMBERS

OPERATIONS = {**ARITHMETIC.rules, **LAYOUTS.rules, **MATRICES.rules, **RANDOM_NUMBERS.rules}
"""The rules of operations, by their names."""
