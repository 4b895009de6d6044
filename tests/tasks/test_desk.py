"""A desk: who comes with garbage, in pieces, with several questions at once, or goes in the middle."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from jobman.tasks.desk import Caller, Desk
from jobman.tasks.wire import TEXT, Answer, Request


class Echo:
    """Work is what is posted; it waits for the gate where that is what it says."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.left = threading.Event()

    def is_work(self, request: Request) -> bool:
        return request.method == "POST"

    def work(self, request: Request, caller: Caller) -> Answer:
        if request.body == b"wait":
            self.begun.set()
            self.gate.wait(60)
        return Answer(200, b"did " + request.body, TEXT)

    def beside(self, request: Request, waiting: Iterable[Request]) -> Answer:
        return Answer(200, f"{request.path} beside {len(list(waiting))}".encode(), TEXT)

    def gone(self, caller: Caller) -> None:
        self.left.set()


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def place(tmp_path: Path, echo: Echo) -> Iterator[Path]:
    place = tmp_path / "desk"
    threading.Thread(target=Desk(echo).run, args=(place,), daemon=True).start()
    patience = threading.Event()
    while not place.is_socket():
        patience.wait(0.01)
    yield place
    echo.gate.set()


def call(place: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(60)
    for _ in range(1000):
        try:
            line.connect(str(place))
            return line
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("nobody listens")


def post(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def hears(line: socket.socket, wanted: bytes) -> bytes:
    """All that is said up to something."""
    heard = b""
    while wanted not in heard:
        some = line.recv(4096)
        assert some, heard
        heard += some
    return heard


def test_questions_may_come_in_pieces_and_several_at_once(place: Path) -> None:
    line = call(place)
    for byte in post(b"one"):
        line.sendall(bytes([byte]))
    hears(line, b"did one")
    line.sendall(post(b"two") + b"GET /x HTTP/1.1\r\n\r\n" + post(b"three"))
    heard = hears(line, b"did three")
    assert heard.index(b"did two") < heard.index(b"/x beside") < heard.index(b"did three")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x00\x01",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000 + b"\r\n\r\n",
    ],
)
def test_garbage_is_refused_and_others_are_answered(place: Path, garbage: bytes) -> None:
    worker = call(place)
    worker.sendall(post(b"before"))
    hears(worker, b"did before")
    for line in (call(place), worker):
        line.sendall(garbage)
        hears(line, b"HTTP/1.1 ")
        while line.recv(4096):
            pass
    other = call(place)
    other.sendall(post(b"after"))
    hears(other, b"did after")


def test_while_it_works_others_are_answered_and_told_what_waits(place: Path, echo: Echo) -> None:
    first, second, third = call(place), call(place), call(place)
    first.sendall(post(b"wait"))
    assert echo.begun.wait(60)
    third.sendall(b"GET /early HTTP/1.1\r\n\r\n")
    hears(third, b"/early beside 0")
    second.sendall(post(b"behind"))
    heard = b""
    while b"beside 1" not in heard:
        third.sendall(b"GET /late HTTP/1.1\r\n\r\n")
        heard = hears(third, b"/late beside ")
    echo.gate.set()
    hears(first, b"did wait")
    hears(second, b"did behind")


def test_who_hangs_up_in_the_middle_is_missed_at_once(place: Path, echo: Echo) -> None:
    line = call(place)
    line.sendall(post(b"wait"))
    assert echo.begun.wait(60)
    line.close()
    assert echo.left.wait(60)
    echo.gate.set()
    other = call(place)
    other.sendall(post(b"next"))
    hears(other, b"did next")
