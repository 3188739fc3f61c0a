"""The modules that users access as `tff.backends.NAME`."""
