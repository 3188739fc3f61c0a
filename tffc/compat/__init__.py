"""tffc under the name of TensorFlow Federated, for programs and libraries written for that.

install         `import tensorflow_federated` gives tffc
names           what tffc answers in place of each module of TFF's core, as text
finder          finds these modules, and the files of TFF's own libraries, which run as they are
stand_in        modules that hold no code: each name is taken from where it is defined
former          names that those libraries had in older releases
third_parties   what those libraries import and today's TensorFlow breaks
"""
