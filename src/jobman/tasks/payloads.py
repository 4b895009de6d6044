"""The payloads of batches: in memory as far as there is room, else read again when their turn has come."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import msgspec

_MOST_BYTES = 256 * 2**20
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class Payloads:
    """By batch; those that were used last stay."""

    def __init__(self, read: Callable[[int], bytes], *, most: int = _MOST_BYTES) -> None:
        self._read = read
        self._most = most
        self._held: OrderedDict[int, list[bytes]] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._unwritten: dict[int, list[bytes]] = {}
        """Those that can be read nowhere else yet."""
        self.bytes = 0

    def put(self, batch: int, payloads: list[bytes], size: int) -> None:
        """Those of a batch that is being written; they stay, unless others are needed earlier."""
        if self.bytes + size <= self._most:
            self._keep(batch, payloads, size)
        self._unwritten[batch] = payloads

    def written(self, batch: int) -> None:
        """They can be read again now."""
        self._unwritten.pop(batch, None)

    def get(self, batch: int) -> list[bytes] | None:
        """Those of a batch, where they are in memory."""
        found = self._held.get(batch)
        if found is None:
            return self._unwritten.get(batch)
        self._held.move_to_end(batch)
        return found

    async def of(self, batch: int) -> list[bytes]:
        """Those of a batch, wherever they are."""
        held = self.get(batch)
        if held is not None:
            return held
        found, size = await asyncio.to_thread(self.load, batch)
        self.loaded(batch, found, size)
        return found

    def load(self, batch: int) -> tuple[list[bytes], int]:
        """Read those of a batch, and how many bytes they are. May be called from any thread."""
        blob = self._read(batch)
        return _decode(blob), len(blob)

    def loaded(self, batch: int, payloads: list[bytes], size: int) -> None:
        """These are needed now: those that were not used for longest go."""
        while self._held and self.bytes + size > self._most:
            self.drop(next(iter(self._held)))
        self._keep(batch, payloads, size)

    def _keep(self, batch: int, payloads: list[bytes], size: int) -> None:
        self.drop(batch)
        self._held[batch] = payloads
        self._sizes[batch] = size
        self.bytes += size

    def drop(self, batch: int) -> None:
        self._unwritten.pop(batch, None)
        if self._held.pop(batch, None) is not None:
            self.bytes -= self._sizes.pop(batch)
