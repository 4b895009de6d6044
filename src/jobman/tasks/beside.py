"""Work that goes on beside other work, and ends with it."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel it, and wait until it has ended; how is nobody's business any more."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
