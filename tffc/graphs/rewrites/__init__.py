"""Rewriting GraphDefs so that others can rewrite them further or run them.

    inlining  copying functions to where they are called
    waiting   moving the control edges of datasets to their readers

Neither the reference interpreter nor the prover imports anything of it.
"""
