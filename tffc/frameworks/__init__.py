"""What runs compiled sections: TensorFlow and JAX.

Modules here are imported one by one, so that nothing loads TensorFlow before a section runs.
"""
