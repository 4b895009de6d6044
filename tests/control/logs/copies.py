"""Real processes that write as copies do, and a way to wait for what they cause."""

import asyncio
import subprocess
import time
from pathlib import Path

DEADLINE = 20.0


def copy(script: str, path: Path) -> subprocess.Popen[bytes]:
    """A shell that appends its output to a file."""
    with path.open("ab") as file:
        return subprocess.Popen(["sh", "-c", script], stdout=file, stdin=subprocess.PIPE)


async def until(condition, what: str = "it"):
    """Wait for a condition of the world outside."""
    late = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < late, f"{what} never happened"
        await asyncio.sleep(0.005)


async def ended(process: subprocess.Popen[bytes]) -> None:
    await until(lambda: process.poll() is not None, "the end of the process")


def tell(process: subprocess.Popen[bytes], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n".encode())
    process.stdin.flush()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
