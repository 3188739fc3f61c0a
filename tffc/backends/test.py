"""The names of TFF's module of this name, for contexts that may run secure sums in the open.

Every context of tffc may, so these are the ones of `tffc.backends.native`.
"""

from tffc.backends.native import (
    create_async_local_cpp_execution_context as create_async_test_cpp_execution_context,
)
from tffc.backends.native import (
    create_sync_local_cpp_execution_context as create_sync_test_cpp_execution_context,
)
from tffc.backends.native import (
    set_async_local_cpp_execution_context as set_async_test_cpp_execution_context,
)
from tffc.backends.native import (
    set_sync_local_cpp_execution_context as set_sync_test_cpp_execution_context,
)

__all__ = [
    "create_async_test_cpp_execution_context",
    "create_sync_test_cpp_execution_context",
    "set_async_test_cpp_execution_context",
    "set_sync_test_cpp_execution_context",
]
