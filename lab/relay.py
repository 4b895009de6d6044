"""Passes connections on, each from one address to another: `relay.py ADDRESS:PORT=ADDRESS:PORT…`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def relay(ways: list[str]) -> None:
    """Until it is killed."""
    await asyncio.gather(*(_listen(*way.split("=")) for way in ways))


async def _listen(here: str, there: str) -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*_place(there))
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        for each in (writer, far_writer):
            each.close()

    server = await asyncio.start_server(meet, *_place(here))
    await server.serve_forever()


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All of one direction, whose end is passed on, too. What breaks one direction breaks the other."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()
    except OSError:
        writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1:]))
