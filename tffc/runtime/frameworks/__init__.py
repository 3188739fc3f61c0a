"""TensorFlow and JAX, which run compiled sections.

Import these modules one by one, so that nothing loads TensorFlow before a section runs.
"""
