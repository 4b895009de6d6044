"""Who is to be told of the growth of which files."""

from __future__ import annotations

import asyncio
from pathlib import Path


class Growth:
    """The files among those asked for that have grown since it was last taken."""

    def __init__(self, followers: Followers, event: asyncio.Event | None = None) -> None:
        self.event = event or asyncio.Event()
        self._followers = followers
        self._paths: set[Path] = set()
        self._grown: set[Path] = set()

    def add(self, path: Path) -> None:
        """Be told of this file too."""
        self._paths.add(path)
        self._followers.setdefault(path, set()).add(self)

    def discard(self, path: Path) -> None:
        """Be told of this file no more."""
        self._paths.discard(path)
        others = self._followers.get(path, set())
        others.discard(self)
        if not others:
            self._followers.pop(path, None)

    def notice(self, path: Path) -> None:
        """A file has grown."""
        self._grown.add(path)
        self.event.set()

    def take(self) -> set[Path]:
        """What has grown; from now on only what grows later counts."""
        grown, self._grown = self._grown, set()
        self.event.clear()
        return grown

    def close(self) -> None:
        for path in tuple(self._paths):
            self.discard(path)


Followers = dict[Path, set[Growth]]
