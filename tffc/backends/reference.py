"""The name that TFF had, before 0.2, for setting a context of its interpreter."""

from tffc.backends.native import set_sync_local_cpp_execution_context as set_reference_context

__all__ = ["set_reference_context"]
