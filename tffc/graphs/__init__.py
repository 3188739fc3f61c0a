"""TensorFlow graphs as data: sections are linked, built and inspected without TensorFlow."""
