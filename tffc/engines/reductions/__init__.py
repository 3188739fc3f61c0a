"""Reductions of datasets rewritten into loops, which run faster."""
