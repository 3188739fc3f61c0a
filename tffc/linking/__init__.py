"""Graphs of sections linked into one, built and inspected, without TensorFlow."""
