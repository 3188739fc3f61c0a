"""Exporting the components of a form, and trained states, as models for other runtimes.

    signatures      one graph with a signature for each component, linked without TensorFlow
    saved_model     that graph as a SavedModel
    tflite          each component as a LiteRT file
    lite_graph      rewriting a graph to operations that LiteRT has
    lite_variables  replacing variables by values, for the same purpose
    trained         a function whose first argument is bound to a part of a trained state
    keras           the user's Keras model with the weights of a trained state
    target          writing the folder of models

TensorFlow is loaded, quietly, to check and convert models.
"""
