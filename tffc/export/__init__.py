"""Bundles for other runtimes: the components of a form as TensorFlow's own kinds of models.

    signatures      one graph with a signature for each component, linked without TensorFlow
    saved_model     that graph as a SavedModel
    tflite          each component as a file for LiteRT
    target          where models are written

TensorFlow is loaded to check and to convert, in silence.
"""
