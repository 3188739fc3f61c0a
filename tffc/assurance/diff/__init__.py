"""Differences between two programs, down to the operations of their graphs."""
