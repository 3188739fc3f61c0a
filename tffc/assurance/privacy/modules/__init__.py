"""XLA's modules, evaluated on what is known of arrays."""
