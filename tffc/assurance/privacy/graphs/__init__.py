"""TensorFlow's graphs, evaluated on what is known of tensors."""
