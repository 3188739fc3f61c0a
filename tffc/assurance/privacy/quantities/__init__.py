"""What is known of tensors, and arithmetic on it."""
