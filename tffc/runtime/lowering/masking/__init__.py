"""Batches of which only the first rows count, computed as if there were no others.

XLA compiles for fixed shapes, and the last batch of a client may be smaller than the others.  Here
it is filled up with rows that must change nothing: each operation is computed on all rows, and what
lies behind the real ones is masked wherever rows meet, as in a sum.  A shape that depends on the
number of real rows stays symbolic.  What is not described here is refused.
"""
