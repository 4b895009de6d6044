"""What a client does when connections break: repeat what is safe, resume what was followed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobman.client import Client, Unreachable
from jobman.client.sse import Sent, read_events
from jobman.control.answers import Submission
from tests.control.api.world import DOCUMENT, LocalLink, World, until

Serve = Callable[[socket.socket], None]


@pytest.fixture
def broken(world: World, tmp_path: Path) -> Iterator[Breaker]:
    """A way to the service on which things go wrong."""
    made = Breaker(tmp_path / "broken.sock", world.socket)
    yield made
    made.close()


class Breaker:
    """Passes bytes between a client and a service, and hangs up as often as it is told to."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self._target = path, target
        self.breaks_after: list[int] = []
        """For each connection, how many bytes of answers it lets through; the others let all through."""
        self.requests: list[bytes] = []
        self._near: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def client(self) -> Client:
        return Client(LocalLink(str(self.path)))

    def close(self) -> None:
        self._listener.close()

    def hang_up(self) -> None:
        """Close all connections that there are."""
        for near in self._near:
            near.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._near.append(near)
            left = self.breaks_after.pop(0) if self.breaks_after else None
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self._target))
            threading.Thread(target=self._up, args=(near, far), daemon=True).start()
            threading.Thread(target=self._down, args=(near, far, left), daemon=True).start()

    def _up(self, near: socket.socket, far: socket.socket) -> None:
        try:
            while data := near.recv(65536):
                self.requests.append(data)
                far.sendall(data)
            far.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _down(self, near: socket.socket, far: socket.socket, left: int | None) -> None:
        try:
            while data := far.recv(65536):
                near.sendall(data if left is None else data[:left])
                if left is not None and (left := left - len(data)) <= 0:
                    break
        except OSError:
            pass
        for end in (near, far):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def test_a_submission_whose_answer_was_lost_is_repeated_and_happens_once(
    broken: Breaker, world: World
) -> None:
    broken.breaks_after = [0, 40]
    submitted = broken.client().submit(Submission(document=DOCUMENT, name="once"))
    assert submitted.replayed
    assert len(broken.requests) == 3
    assert [job.name for job in world.client().jobs()] == ["once"]


def test_what_is_not_safe_is_not_repeated(broken: Breaker, world: World) -> None:
    job = world.submit()
    broken.breaks_after = [0]
    with pytest.raises(Unreachable, match="broke before the answer") as raised:
        broken.client().extend(job, 60)
    assert "may have been done" in raised.value.advice
    assert len(broken.requests) == 1


def test_a_connection_that_was_closed_while_idle_is_replaced(broken: Breaker, world: World) -> None:
    client = broken.client()
    client.health()
    broken.hang_up()
    extended = world.submit()
    assert client.extend(extended, 60).id == extended, "what is not safe goes over a fresh connection"


def test_followed_logs_lose_and_repeat_nothing(broken: Breaker, world: World) -> None:
    job = world.submit()
    world.let(world.director.begin, job)
    lines = [f"line {number}" for number in range(300)]
    world.director.write(job, *lines[:150])
    broken.breaks_after = [1_000, 9_000, 200, 17_003]
    source = broken.client().logs(job, follow=True)
    seen = [next(source).text for _ in range(10)]
    world.director.write(job, *lines[150:])
    world.let(world.director.finish, job)
    assert seen + [line.text for line in source] == lines
    assert broken.breaks_after == []


def test_followed_events_lose_and_repeat_nothing(broken: Breaker, world: World) -> None:
    job = world.submit()
    world.let(world.director.happen, job, "noise", 200)
    world.let(world.director.finish, job)
    broken.breaks_after = [500, 0, 7_001, 3_000]
    numbers = [event.number for event in broken.client().events(job, follow=True)]
    assert numbers == list(range(1, 203))


def test_a_stopped_service_ends_what_is_followed(world: World) -> None:
    def stop_when_followed() -> None:
        until(lambda: len(world.director.broadcast))
        world.client().stop(force=True)

    threading.Thread(target=stop_when_followed, daemon=True).start()
    with pytest.raises(Unreachable, match="was stopped"):
        list(world.client().events(follow=True))


def test_something_else_than_a_service_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            peer, _ = listener.accept()
            peer.recv(65536)
            peer.sendall(b"220 mail ready\r\n")
            peer.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(Unreachable):
            Client(LocalLink(str(path))).extend("x", 1)


def test_server_sent_events_are_read_whatever_the_parts() -> None:
    text = b':hi\n\nid: 4\n\nevent: line\nid: 5\ndata: {"a":\ndata: 1}\n\ndata: x\n\nevent: lost\n'
    expected = [Sent("message", b"", "4"), Sent("line", b'{"a":\n1}', "5"), Sent("message", b"x", None)]
    for size in (1, 2, 7, 1000):
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(read_events(parts)) == expected
