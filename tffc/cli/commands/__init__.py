"""One module for each command, with its arguments, its help and its work.

Work that needs NumPy or TensorFlow is in a module beside this folder, imported when the command is
called, so that help is quick.
"""
