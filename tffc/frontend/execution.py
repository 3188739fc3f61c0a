"""What runs computations for programs that wait for several results at a time."""

from __future__ import annotations

import asyncio
from typing import Any

from tffc.frontend.computation import Computation


class AsyncExecutionContext:
    """Runs computations beside what else its event loop does, each in a thread of its own."""

    async def invoke(self, comp: Computation, arg: Any) -> Any:
        """Return what a computation gives for its one argument, None where it takes none."""
        return await asyncio.to_thread(comp.invoke, arg)
