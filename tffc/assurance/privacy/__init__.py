"""Differential privacy that is shown from a round's graphs: derivations and their accounting."""
