"""The proof that what is emitted is what was traced, for all arguments.

The traced program and the components of a form are evaluated on symbols, down to operations of
TensorFlow's graphs.  Equal operations on equal inputs are one term; then state, output and what is
drawn or done on the way have to be the same terms.

This room shares nothing with passes, the builders of forms and linking but the language, the
reading of messages, and graphs as data.  What is trusted stands in docs/proof.md.
"""
