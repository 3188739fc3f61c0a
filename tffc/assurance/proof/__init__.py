"""Proofs that the compiled form computes what the traced program does, for all arguments.

The prover evaluates the program and the components of the form symbolically, down to operations of
TensorFlow graphs.  Equal operations on equal inputs become one term.  State, output, random draws
and effects must be the same terms on both sides.

This package shares with passes, form builders and linking only the language, the reading of
messages, and graphs as data.  docs/proof.md lists what is trusted.
"""
