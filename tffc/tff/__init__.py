"""tffc under the name of TensorFlow Federated, for programs and libraries written for that.

install         makes `import tensorflow_federated` and `import federated_language` give tffc
package         what a table of replacements for a package's modules holds
names           the table of tffc's replacements for TFF's core modules, as text
language_names  the same for federated_language, the language of today's TFF
finder          finds these modules, and the files of TFF's own libraries, which run unchanged
releases        the releases of TFF, and where their files are
stand_in        modules without code, whose names are imported from their definitions
former          names that those libraries had in older releases
third_parties   dependencies of those libraries that today's TensorFlow breaks
absent          dependencies that few programs need and that may be missing
"""
