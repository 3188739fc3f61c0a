"""Running programs: values, compiled sections, and the reference interpreter.

Modules here are imported one by one, so that nothing loads NumPy or TensorFlow before a program
is run.
"""
