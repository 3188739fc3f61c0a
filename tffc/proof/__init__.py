"""Proving that the compiled form computes what the traced program does, for all arguments.

The program and the components of the form are evaluated symbolically, down to operations of
TensorFlow graphs.  Equal operations on equal inputs become one term; then state, output, random
draws and effects have to be the same terms on both sides.

This room shares nothing with passes, form builders and linking but the language, the reading of
messages, and graphs as data.  docs/proof.md says what is trusted.
"""
