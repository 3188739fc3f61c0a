"""What users write as `tff.tensorflow`."""

from tffc.frontend.computation import tf_computation as computation
from tffc.frontend.tensorflow_trace import get_session_token

__all__ = ["computation", "get_session_token"]
