"""Rewriting reductions of datasets into loops, which run faster.

loops       the rewriting: a While loop in place of each ReduceDataset
steps       the functions that a reduction applies to each element
slices      datasets of tensors' rows as index arithmetic
"""
