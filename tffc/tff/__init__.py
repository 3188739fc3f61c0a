"""tffc under the name of TensorFlow Federated, for programs and libraries written for that.

install         makes `import tensorflow_federated` give tffc
names           the table of tffc's replacements for TFF's core modules, as text
finder          finds these modules, and the files of TFF's own libraries, which run unchanged
stand_in        modules without code, whose names are imported from their definitions
former          names that those libraries had in older releases
third_parties   dependencies of those libraries that today's TensorFlow breaks
absent          dependencies that few programs need and that may be missing
"""
