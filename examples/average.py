"""A script written for TensorFlow Federated, which averages the numbers that it is given.

tffc python examples/average.py 1.5 2.5
"""

import sys

import numpy as np
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # tffc under its name


@tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
def average(values):
    return tff.federated_mean(values)


if __name__ == "__main__":
    print(average([float(word) for word in sys.argv[1:]] or [1.0, 2.0]))
