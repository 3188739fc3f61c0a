"""StableHLO modules as functions of JAX, operation by operation, so that JAX can vectorise them.

stablehlo      modules as plain data
evaluation     computing the functions of a module
definition     what an operation is in JAX
elementwise    arithmetic, comparisons, bits and casts
arrays         shapes, slices, gathers, scatters and sorts
sums           contractions, convolutions, reductions and windows
control        loops, branches, random bits, and what only passes values on
orders         the orders in which modules sort
"""
