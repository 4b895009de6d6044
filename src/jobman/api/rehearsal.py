"""Rehearsal: a whole service in this process that runs nothing, for tests of things built on jobman."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jobman.api.jobs import Document, Job, submit
from jobman.client import Client
from jobman.control.inside import serve_inside
from jobman.control.places import Places
from jobman.engines.base import Order
from jobman.engines.memory import MemoryEngine, Play


class Rehearsal:
    """A service whose attempts are played, not run; everything else is the real thing.

    ```python
    def script(order):
        return Play(exit_code=1) if order.attempt == 1 else Play(output="done\\n")

    with Rehearsal(script) as rehearsal:
        assert rehearsal.submit("job.yaml").wait().state == "succeeded"
    ```
    """

    def __init__(
        self, script: Callable[[Order], Play] | None = None, *, nodes: int = 1, cores: int = 64
    ) -> None:
        self._engine = MemoryEngine(script, nodes=nodes, cores=cores)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="rehearsal", daemon=True)

    @property
    def launched(self) -> list[tuple[str, str, int]]:
        """Every attempt that was begun, in order: the job, the replica, the attempt."""
        return list(self._engine.launched)

    def submit(self, document: Document, **options: Any) -> Job:
        """As `jobman.submit`, to this service."""
        return submit(document, client=self.client, **options)

    def __enter__(self) -> Rehearsal:
        self._folder = TemporaryDirectory(prefix="jobman-rehearsal-")
        self._socket = Path(self._folder.name) / "s"
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        self.client = Client.embedded(Places(Path(self._folder.name), self._socket), start=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._stop()
        self._thread.join()
        self._folder.cleanup()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        await serve_inside(Path(self._folder.name), self._engine, self._socket, self._ready.set, stop)
