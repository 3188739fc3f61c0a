"""StableHLO modules as functions of JAX, operation by operation, so that JAX can vectorise them.

evaluation     computing the functions of a module
definition     what an operation is in JAX
elementwise, arrays, sums, control
               the operations
orders         the orders in which modules sort
"""
