"""TensorFlow's operations written in JAX: `table` has them by name, and importing it loads JAX.

definition   what an operation is here, NumPy or JAX for it, and what cannot be lowered
elementwise  arithmetic, comparisons, logic and casts
activations  activations of networks, and gradients of elementwise operations
reductions   sums, extremes and running sums over axes
arrays       constants, shapes, joining and splitting, padding
indexing     slices, gathering and scattering
linear       products of matrices
neural       normalization, softmax and losses
windows      convolutions and pools
draws        random numbers, those that TensorFlow draws on a CPU
table        all of these by the name of the operation
"""
