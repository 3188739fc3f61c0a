"""The front end: Python functions become programs."""
