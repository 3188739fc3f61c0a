"""Sections as functions of tensors, for XLA: without state, and for many clients at once.

    retrace              a section traced again, operation by operation, by a tracer
    sequences            reading clients' sequences from arrays by index arithmetic
    tracer               what tracing needs of a framework
    jax_tracer           tracing with JAX, whose operations are in `operations`
    tensorflow_tracer    tracing with TensorFlow
    operations           TensorFlow's operations in JAX

The engines use it; the interpreter runs sections as they are.
"""
