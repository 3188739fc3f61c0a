"""Running sections of XLA code with JAX."""
