"""Measurements of tffc and of TensorFlow Federated, the peer, which runs as a black box."""
