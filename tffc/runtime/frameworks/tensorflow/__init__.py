"""Loading TensorFlow quietly, and running sections in its sessions."""
