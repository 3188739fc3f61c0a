"""Running sections of XLA code by JAX."""
