"""Models for other runtimes: the components of a form, and what was trained with them.

    signatures      one graph with a signature for each component, linked without TensorFlow
    saved_model     that graph as a SavedModel
    tflite          each component as a file for LiteRT
    lite_graph      a graph in the words that LiteRT has, and lite_variables its variables as values
    trained         a function that has a part of a trained state as its first argument
    keras           a Keras model of the user's with the weights of a trained state
    target          where models are written

TensorFlow is loaded to check and to convert, in silence.
"""
