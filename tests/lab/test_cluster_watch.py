"""A watch loses nothing: not when it ends, not when the server dies, not when its memory is too short."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lab.cluster_watch import Server, Unavailable, Watch


def thing(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def listing(*things: dict[str, Any], version: int, following: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": following}, "items": list(things)}


def event(kind: str, written: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": written}).encode() + b"\n"


class Pretender(ThreadingHTTPServer):
    """Answers as told, one answer after the other, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[dict[str, str]] = []

    def will_say(self, *answers: dict[str, Any] | bytes | int) -> None:
        for each in answers:
            status = each if isinstance(each, int) else 200
            body = (
                b""
                if isinstance(each, int)
                else each
                if isinstance(each, bytes)
                else json.dumps(each).encode()
            )
            self.answers.append((status, body))


class Answer(BaseHTTPRequestHandler):
    server: Pretender

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.server.asked.append({key: value[0] for key, value in query.items()})
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def pretender() -> Iterator[Pretender]:
    with Pretender() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


class Follower:
    """Keeps what a watch tells."""

    def __init__(self, pretender: Pretender) -> None:
        self.names: set[str] = set()
        self.lists = 0
        self._watch = Watch(
            Server(f"http://127.0.0.1:{pretender.server_port}"), "/things", self._everything, self._one
        )

    def turn(self) -> set[str]:
        self._watch.turn()
        return self.names

    def _everything(self, things: list[dict[str, Any]]) -> None:
        self.names = {each["metadata"]["name"] for each in things}
        self.lists += 1

    def _one(self, written: dict[str, Any], gone: bool) -> None:
        (self.names.discard if gone else self.names.add)(written["metadata"]["name"])


def test_a_list_of_several_pages_is_followed_by_what_happens_after_it(pretender: Pretender):
    pretender.will_say(listing(thing("a", 1), version=5, following="more"), listing(thing("b", 2), version=5))
    pretender.will_say(event("ADDED", thing("c", 6)) + event("DELETED", thing("a", 7)))
    assert Follower(pretender).turn() == {"b", "c"}
    assert [each.get("continue") for each in pretender.asked] == [None, "more", None]
    assert pretender.asked[2]["resourceVersion"] == "5"


def test_a_watch_that_ended_goes_on_where_it_was(pretender: Pretender):
    follower = Follower(pretender)
    pretender.will_say(listing(version=5), event("ADDED", thing("a", 6)) + event("BOOKMARK", thing("", 9)))
    pretender.will_say(event("ADDED", thing("b", 10)))
    follower.turn()
    assert follower.turn() == {"a", "b"}
    assert pretender.asked[-1]["resourceVersion"] == "9"
    assert follower.lists == 1


def test_a_server_that_died_in_the_middle_of_a_word_is_asked_again_from_the_last_whole_one(
    pretender: Pretender,
):
    follower = Follower(pretender)
    pretender.will_say(listing(version=5), event("ADDED", thing("a", 6)) + event("ADDED", thing("b", 7))[:20])
    with pytest.raises(Unavailable, match="half an answer"):
        follower.turn()
    pretender.will_say(503, event("ADDED", thing("b", 7)))
    with pytest.raises(Unavailable, match="503"):
        follower.turn()
    assert follower.turn() == {"a", "b"}
    assert pretender.asked[-1]["resourceVersion"] == "6"


@pytest.mark.parametrize("expired", [410, event("ERROR", {"kind": "Status", "code": 410})])
def test_what_the_server_has_forgotten_is_listed_again(pretender: Pretender, expired: int | bytes):
    follower = Follower(pretender)
    pretender.will_say(listing(thing("a", 1), version=5), expired)
    assert follower.turn() == {"a"}
    pretender.will_say(listing(thing("b", 8), version=9), b"")
    assert follower.turn() == {"b"}
    assert follower.lists == 2


def test_nobody_at_the_address_is_said_with_the_path():
    with pytest.raises(Unavailable, match="/things"):
        list(Server("http://127.0.0.1:1").lines("/things"))
