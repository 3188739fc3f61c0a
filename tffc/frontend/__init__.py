"""The front end: tracing Python functions into programs."""
