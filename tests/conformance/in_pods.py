"""What engines have in common whose copies are pods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from jobman.settings import Settings
from tests.conformance import sizes
from tests.conformance.bound import Bound
from tests.engines.kubernetes.cluster import need_shared_files


class InPods(Bound):
    """A cluster, in the folder of one scenario, which may have nodes to itself."""

    gpu_variable = "NVIDIA_VISIBLE_DEVICES"
    os_label = "kubernetes.io/os"
    beat = sizes.BEAT

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder, settings)
        self._size = ""
        self._nodes = ExitStack()

    @property
    def folder(self) -> Path:
        need_shared_files()
        return self._folder

    def alone(self) -> None:
        self._take(sizes.ONE_NODE)

    def _take(self, size: str) -> None:
        """Have the nodes of this size to oneself."""
        if size != self._size:
            self._nodes.enter_context(sizes.taken(size))
            self._size = size

    def secret(self, name: str, **entries: str) -> None:
        self._keep("Secret", name, entries)

    def config(self, name: str, **entries: str) -> None:
        self._keep("ConfigMap", name, entries)

    @abstractmethod
    def _keep(self, kind: str, name: str, entries: Mapping[str, str]) -> None:
        """Make an object with these entries."""

    def leave(self) -> list[str]:
        with self._nodes:
            return self._leave()

    @abstractmethod
    def _leave(self) -> list[str]:
        """What a scenario has left behind."""
