"""The operations of TensorFlow, HLO and StableHLO, and their effects besides computing.

Tables list the operations; modules of XLA are parsed only as far as needed to find theirs.
"""
