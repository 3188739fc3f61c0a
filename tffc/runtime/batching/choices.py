"""What can be chosen about batches, by name."""

from __future__ import annotations

AUTO, PJRT, TENSORFLOW = "auto", "pjrt", "tensorflow"
COMPILERS = (AUTO, PJRT, TENSORFLOW)
"""What compiles kernels."""

FULL, FAST = "full", "fast"
PRECISIONS = (FULL, FAST)
"""How products of matrices and convolutions are computed: in the precision of their types, or as
the device is fastest, such as in TF32 on a GPU, which has ten bits of a factor's fraction."""
