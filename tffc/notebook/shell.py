"""What is used of IPython, which tffc does not import."""

from __future__ import annotations

from typing import Any, Protocol


class Shell(Protocol):
    """IPython's `InteractiveShell`."""

    user_ns: dict[str, Any]
    compile: Any

    def register_magic_function(
        self, func: object, magic_kind: str = ..., magic_name: str | None = ...
    ) -> None: ...

    def set_custom_exc(self, exc_tuple: tuple[type[BaseException], ...], handler: Any) -> None: ...

    def run_cell(self, raw_cell: str, store_history: bool = ...) -> Any: ...
