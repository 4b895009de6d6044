"""Requests that fail: which are repeated, and what is said when they are not."""

import asyncio
import ssl

import httpx
import pytest

from jobman.engines.kubernetes.access import Access, Login, Plugin
from jobman.engines.kubernetes.errors import (
    Conflict,
    LoginError,
    ServerFault,
    TooMany,
    Unauthorized,
    Unreachable,
)
from jobman.engines.kubernetes.link import AT_ONCE, Link
from tests.engines.kubernetes.pretender import Pretender, refused, said
from tests.engines.kubernetes.test_exec_plugin import plugin, printing, runs

FINE = said({})
BROKEN = httpx.RemoteProtocolError("peer closed connection")
NOBODY = httpx.ConnectError("refused")


def ask(server: Pretender, method: str = "GET", **given) -> bytes:
    async def scenario() -> bytes:
        try:
            return await server.link.ask(
                method, "/x", body=None if method == "GET" else b"{}", **{"safe": method == "GET", **given}
            )
        finally:
            await server.link.close()

    return asyncio.run(scenario())


# -- a busy server -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_asks_for_a_pause_is_asked_again(method):
    server = Pretender(refused(429, "TooManyRequests", Retry_After="0"), FINE)
    assert ask(server, method) == b"{}"
    assert len(server.asked) == 2


def test_a_server_that_names_a_pause_has_done_nothing_so_even_a_change_is_repeated():
    server = Pretender(refused(503, Retry_After="0"), FINE)
    assert ask(server, "POST") == b"{}"


def test_a_pause_that_is_longer_than_our_patience_is_not_waited_for():
    server = Pretender(refused(429, "TooManyRequests", "busy", Retry_After="3600"), FINE)
    with pytest.raises(TooMany, match="busy"):
        ask(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize("code", [502, 503, 504])
def test_what_can_be_repeated_is_when_the_server_is_not_there_for_a_moment(code):
    server = Pretender(refused(code), refused(code), FINE)
    assert ask(server) == b"{}"
    assert len(server.asked) == 3


@pytest.mark.parametrize("code", [500, 502, 504])
def test_a_change_that_may_have_been_made_is_not_repeated(code):
    server = Pretender(refused(code, message="oh"), FINE)
    with pytest.raises(ServerFault, match="oh"):
        ask(server, "POST")
    assert len(server.asked) == 1


def test_patience_ends():
    server = Pretender(refused(503, message="not today"), patience=0.2)
    with pytest.raises(ServerFault, match="not today"):
        ask(server)
    assert len(server.asked) > 1


def test_a_race_for_a_quota_is_run_again():
    race = {
        "kind": "Status",
        "code": 409,
        "reason": "Conflict",
        "details": {"kind": "resourcequotas", "name": "q"},
    }
    server = Pretender(said(race, 409), FINE)
    assert ask(server, "POST") == b"{}"


def test_a_conflict_about_an_object_is_not_repeated():
    conflict = {"kind": "Status", "code": 409, "reason": "Conflict", "details": {"kind": "jobs", "name": "j"}}
    server = Pretender(said(conflict, 409), FINE)
    with pytest.raises(Conflict):
        ask(server, "POST")


# -- connections ---------------------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_unpacked_is_asked_for_again():
    server = Pretender(httpx.DecodingError("not gzip"), FINE)
    assert ask(server) == b"{}"


def test_a_connection_that_breaks_is_made_again_where_that_is_safe():
    server = Pretender(BROKEN, FINE)
    assert ask(server) == b"{}"


def test_after_a_break_nobody_knows_whether_a_change_was_made():
    server = Pretender(BROKEN, FINE)
    with pytest.raises(Unreachable) as raised:
        ask(server, "POST")
    assert raised.value.maybe_done
    assert raised.value.advice.startswith("It may have been done: look before you repeat it.")
    assert len(server.asked) == 1


def test_an_address_that_never_answered_is_not_tried_again():
    server = Pretender(NOBODY, FINE)
    with pytest.raises(Unreachable) as raised:
        ask(server)
    assert not raised.value.maybe_done
    assert len(server.asked) == 1


def test_a_server_that_restarts_is_waited_for_even_with_a_change():
    server = Pretender(FINE, NOBODY, NOBODY, FINE)

    async def twice() -> bytes:
        await server.link.ask("GET", "/x", safe=True)
        return await server.link.ask("POST", "/x", body=b"{}", safe=False)

    assert asyncio.run(twice()) == b"{}"


def test_a_certificate_that_cannot_be_trusted_is_not_tried_again():
    distrust = httpx.ConnectError("tls")
    distrust.__cause__ = ssl.SSLCertVerificationError("no")
    server = Pretender(FINE, distrust, FINE)

    async def twice() -> None:
        await server.link.ask("GET", "/x", safe=True)
        await server.link.ask("GET", "/x", safe=True)

    with pytest.raises(Unreachable, match="its certificate is refused"):
        asyncio.run(twice())


def test_many_requests_take_turns():
    under_way: list[int] = []
    most: list[int] = []

    async def slow(request: httpx.Request) -> httpx.Response:
        under_way.append(1)
        most.append(len(under_way))
        await asyncio.sleep(0)
        under_way.pop()
        return said({})

    async def scenario() -> None:
        link = Link(Access(server="https://one.example"), environment={}, transport=httpx.MockTransport(slow))
        await asyncio.gather(*(link.ask("GET", "/x", safe=True) for _ in range(5 * AT_ONCE)))

    asyncio.run(scenario())
    assert len(most) == 5 * AT_ONCE
    assert max(most) == AT_ONCE


# -- who we are ----------------------------------------------------------------------------------------------


def test_a_token_file_that_changed_is_shown_at_the_second_trial(tmp_path):
    file = tmp_path / "token"
    file.write_text("old")

    def first(request: httpx.Request) -> httpx.Response:
        file.write_text("new")
        return refused(401, "Unauthorized")

    server = Pretender(first, FINE, login=Login(token_file=str(file)))
    ask(server)
    assert [request.headers["Authorization"] for request in server.asked] == ["Bearer old", "Bearer new"]


def test_a_plugin_is_asked_again_when_the_server_does_not_know_us(tmp_path):
    login = Login(plugin=plugin(tmp_path, printing({"token": "abc"})))
    server = Pretender(refused(401, "Unauthorized"), FINE, login=login)
    ask(server)
    assert runs(tmp_path) == 2


def test_a_second_refusal_is_final(tmp_path):
    login = Login(plugin=plugin(tmp_path, printing({"token": "abc"})))
    server = Pretender(refused(401, "Unauthorized", "who are you"), login=login)
    with pytest.raises(Unauthorized, match="who are you"):
        ask(server)
    assert (runs(tmp_path), len(server.asked)) == (2, 2)


def test_a_token_that_cannot_change_is_not_shown_twice():
    server = Pretender(refused(401, "Unauthorized"), login=Login(token="wrong"))
    with pytest.raises(Unauthorized):
        ask(server)
    assert len(server.asked) == 1


def test_acting_as_somebody_else_is_said_with_every_request():
    headers = (("Impersonate-User", "eve"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    server = Pretender(FINE, login=Login(headers=headers))
    ask(server)
    assert server.asked[0].headers.get_list("Impersonate-Group") == ["a", "b"]
    assert server.asked[0].headers["Impersonate-User"] == "eve"


def test_a_token_that_ends_with_a_line_is_shown_without():
    server = Pretender(FINE, login=Login(token="abc\n"))
    ask(server)
    assert server.asked[0].headers["Authorization"] == "Bearer abc"


def test_a_token_that_cannot_be_shown_is_refused_without_being_repeated():
    with pytest.raises(LoginError, match="Authorization has line breaks") as raised:
        ask(Pretender(FINE, login=Login(token="hid\nden")))
    assert "hid" not in raised.value.message


def test_a_name_of_any_letters_can_be_acted_as():
    server = Pretender(FINE, login=Login(headers=(("Impersonate-User", "Zoë"),)))
    ask(server)
    assert (b"Impersonate-User", "Zoë".encode()) in server.asked[0].headers.raw


def test_a_plugin_that_fails_is_not_taken_for_a_broken_connection():
    login = Login(
        plugin=Plugin(
            command="/no/login", api_version="client.authentication.k8s.io/v1", interactive_mode="Never"
        )
    )
    with pytest.raises(Exception, match="cannot be run"):
        ask(Pretender(FINE, login=login))


# -- streams -------------------------------------------------------------------------------------------------


def lines(server: Pretender) -> list[bytes]:
    async def scenario() -> list[bytes]:
        return [line async for line in server.link.lines("/x")]

    return asyncio.run(scenario())


class Pieces(httpx.AsyncByteStream):
    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts

    async def __aiter__(self):
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


def test_lines_come_whole_however_the_network_cuts_them():
    pieces = Pieces(b"on", b"e\ntwo\nth", b"ree", b"\n\nfi", b"ve\n")
    server = Pretender(httpx.Response(200, stream=pieces))
    assert lines(server) == [b"one", b"two", b"three", b"", b"five"]


def test_a_line_may_have_any_letters_but_its_end():
    text = "a\u2028b\x85c\rd".encode()
    server = Pretender(httpx.Response(200, stream=Pieces(text + b"\n")))
    assert lines(server) == [text]


def test_a_stream_that_breaks_says_so():
    server = Pretender(httpx.Response(200, stream=Pieces(b"one\ntw", BROKEN)))
    with pytest.raises(Unreachable, match="peer closed connection"):
        lines(server)


def test_a_stream_that_is_refused_says_why():
    with pytest.raises(ServerFault, match="later"):
        lines(Pretender(refused(500, message="later")))
