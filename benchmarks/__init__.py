"""Measurements of tffc beside TensorFlow Federated, the peer, which runs as a black box."""
