"""The name of TFF before 0.2 for the function that sets the default context."""

from tffc.tff.backends.native import set_sync_local_cpp_execution_context as set_reference_context

__all__ = ["set_reference_context"]
