"""What users write as `tff.tensorflow`."""

from tffc.frontend.computation import tf_computation as computation

__all__ = ["computation"]
