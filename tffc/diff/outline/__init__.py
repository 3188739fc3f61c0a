"""What a compiled section consists of, as rows that are compared and read.

    rows        graphs and functions, their nodes in canonical order
    constants   the constants in them, and how two differ
    tensorflow  the rows of a TensorFlow graph
    xla         the rows of an HLO module
    listing     all of a section as text that depends on what it computes alone

The order is that of the canonical graph, from which the fingerprint is made: two sections with the
same fingerprint have the same rows but for the names.
"""
