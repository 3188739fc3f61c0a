"""Sections as functions of tensors, for XLA: without state, and for many clients at once.

    retrace              a section traced again, operation by operation, by a tracer
    sequences            reading clients' sequences from arrays by index arithmetic
    tracer               what tracing needs of a framework
    jax_tracer           tracing with JAX: `operations`, `jax_checks` of their inputs, `jax_modules`
    modules              StableHLO modules in JAX, operation by operation
    tensorflow_tracer    tracing with TensorFlow, as far as `tensorflow_operations` allows
    operations           TensorFlow's operations in JAX
    masking              steps on batches of which only the first rows count
    runner               single sections, where TensorFlow is not installed

The engines use it; the interpreter runs sections as they are.
"""
