"""Keras 2, which programs for TensorFlow Federated 0.87 have as `tf.keras`."""

from __future__ import annotations

import importlib.util
import os

LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
"""The environment variable that makes `tf.keras` Keras 2, as it was for TFF 0.87."""


def legacy_keras() -> None:
    """Let `tf.keras` be Keras 2 where it is installed, unless the environment says which it is.

    It has an effect only before TensorFlow loads its Keras; `import keras` is Keras 3 as ever.
    """
    if LEGACY_KERAS not in os.environ and importlib.util.find_spec("tf_keras") is not None:
        os.environ[LEGACY_KERAS] = "1"
