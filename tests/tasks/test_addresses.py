"""Where a broker is, in all the ways to write it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobman.tasks.addresses import Address, WrongAddress, parse
from jobman.tasks.wire import Answer, Broken, Request, Server


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://broker.site:7080", Address(("broker.site", 7080), True)),
        ("https://broker.site", Address(("broker.site", 443), True)),
        ("broker:7080", Address(("broker", 7080))),
        ("/run/broker", Address(Path("/run/broker"))),
        ("https://a:1, https://b:2", Address(("a", 1), True, (("b", 2),))),
    ],
)
def test_addresses_are_understood(text: str, found: Address) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    "text", ["broker", "ftp://broker", "http://", "http://a:x", "https://a:1,http://b:2", ""]
)
def test_what_is_no_address_is_told_with_how_one_looks(text: str) -> None:
    with pytest.raises(WrongAddress) as caught:
        parse(text)
    assert "HOST:PORT" in caught.value.advice


def test_where_nobody_is_the_next_is_asked(tmp_path: Path) -> None:
    async def handle(request: Request) -> Answer:
        return Answer(200, request.path.encode())

    async def scenario() -> None:
        server = Server(handle)
        await server.listen(tmp_path / "second")
        connection = parse(f"{tmp_path}/first,{tmp_path}/second").connection()
        with pytest.raises(Broken):
            await connection.ask("GET", "/")
        assert (await connection.ask("GET", "/there")).body == b"/there"
        connection.close()
        await server.close()

    asyncio.run(scenario())
