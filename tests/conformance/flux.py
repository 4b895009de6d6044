"""Flux as scenarios speak to it: the lab's instance, with a registry of its own for each process."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from jobman.engines.flux.engine import Flux
from tests.conformance.scripted import Scripted, ScriptedSite

_QUEUES = {"1x1": "1x1", "1x4": "1x4", "1x4x4": "1x4", "2x2": "2x4", "2x4": "2x4", "3x4": "3x4"}
"""The queue of the nodes of each size."""
_SITE = (
    "flux: {{queue: {0}, queues: {{interactive: {0}, batch: {0}}}, memory_per_core: 8Gi,"
    " priorities: {{low: 8, normal: 16, high: 24}},"
    " facts: {{hardware.gpu.available: gpu}}}}\n"
)


@contextmanager
def open_flux(folder: Path) -> Iterator[FluxSite]:
    """The instance is there: jobs leave word in a folder of this process."""
    yield FluxSite(folder)


class FluxSite(ScriptedSite):
    """The lab's Flux, for one process of pytest."""

    def __init__(self, folder: Path) -> None:
        tools = f"{Path(sys.executable).parent}:{os.environ['JOBMAN_LAB_FLUX_BIN']}"
        own = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "FLUX_URI": os.environ["JOBMAN_LAB_FLUX_URI"],
            "FLUX_SHELL_RC_PATH": os.environ["JOBMAN_LAB_FLUX_SHELL_RC"],
            # Nodes of the lab have names that no network knows.
            "FLUX_URI_RESOLVE_LOCAL": "t",
        }
        super().__init__(folder, Flux({**os.environ, **own}), own)

    def bind(self, folder: Path) -> FluxEngine:
        return FluxEngine(self, folder)


class FluxEngine(Scripted):
    """Flux in the folder of one scenario."""

    name = "flux"
    beat = 2.5

    def __init__(self, site: FluxSite, folder: Path) -> None:
        super().__init__(site, folder, _SITE.format("main"))
        self._queue = "main"
        # Its scheduler is a queue: whoever waits there for nodes of some size keeps everybody else waiting.
        self._turn = self._nodes.enter_context((Path(gettempdir()) / "jobman-flux.lock").open("w"))
        fcntl.flock(self._turn, fcntl.LOCK_SH)

    def _take(self, size: str) -> None:
        if _QUEUES[size] != self._queue:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            self._queue = _QUEUES[size]

    def _settings_of_site(self) -> str:
        return _SITE.format(self._queue)
