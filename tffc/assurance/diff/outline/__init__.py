"""Outlines of compiled sections: rows that can be compared and read.

    rows        graphs and functions, their nodes in canonical order
    constants   the constants in them, and how two differ
    tensorflow  the rows of a TensorFlow graph
    xla         the rows of an HLO module
    listing     a section as text that depends only on what it computes

The order is that of the canonical graph, from which the fingerprint is computed: two sections with
the same fingerprint have the same rows, up to names.
"""
