"""One module for each command, with its arguments, its help and its work.

Work that needs NumPy or TensorFlow is in a module of the parent package, imported when the command
runs, so that help is quick.
"""
