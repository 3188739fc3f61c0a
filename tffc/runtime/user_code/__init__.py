"""Importing a user's Python module, and speaking of places and failures in it."""
