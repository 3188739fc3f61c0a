"""The operations of TensorFlow, HLO and StableHLO: what they are, and do besides computing.

What is known of them stands in tables; modules of XLA are read as far as their operations need it.
"""
