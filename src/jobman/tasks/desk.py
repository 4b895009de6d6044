"""How a worker made of a function is asked: HTTP without a loop, by two threads.

The main thread reads what is to be executed, executes it and answers, with nobody in between. The other one
takes calls, answers everything else, also while the function computes, and hears of those who hang up. A
connection is the other thread's until the first work comes over it, and the main thread's from then on.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import httptools

from jobman.tasks.wire import MOST_BYTES, TEXT, Answer, Reading, Request, answer_bytes

_BACKLOG = 128
_CHUNK = 256 * 2**10
Place = Path | tuple[str, int]
Caller = object
"""Somebody at the other end of a connection."""


class _Line(Reading):
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(MOST_BYTES)
        self._socket = connection
        self._parser = httptools.HttpRequestParser(self)
        self.fd = connection.fileno()
        self.is_handed = False
        """Whether it is the main thread's."""
        self.asked: deque[tuple[Request | None, bool]] = deque()
        """Requests, None for one that is too large, and whether the connection is kept after it."""

    def on_message_complete(self) -> None:
        keep = self._parser.should_keep_alive()
        if self.is_too_large:
            self.asked.append((None, keep))
            return
        path, _, query = self.url.decode("latin-1").partition("?")
        request = Request(self._parser.get_method().decode(), path, query, self.headers, self.body)
        self.asked.append((request, keep))

    def read(self) -> bool:
        """Take what has come; false where nobody is there any more."""
        try:
            data = self._socket.recv(_CHUNK)
            self._parser.feed_data(data)
        except OSError:
            return False
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, ValueError) as error:
            self.tell(Answer(400, f"{error}\n".encode(), TEXT), keep=False)
            return False
        return bool(data)

    def tell(self, answer: Answer, *, keep: bool) -> None:
        """Answer; one that is gone by now hears nothing."""
        with suppress(OSError):
            self._socket.sendall(answer_bytes(answer, keep=keep))
            if not keep:
                self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()


class Clerk(Protocol):
    """Who knows the answers."""

    def is_work(self, request: Request) -> bool:
        """Whether it is for the main thread."""

    def work(self, request: Request, caller: Caller) -> Answer:
        """Do it; called in the main thread."""

    def beside(self, request: Request, waiting: Iterable[Request]) -> Answer:
        """Anything else, while `waiting` is work that the main thread has not begun."""

    def gone(self, caller: Caller) -> None:
        """Somebody has hung up; called in the other thread."""


class Desk:
    """A place where a worker is asked."""

    def __init__(self, clerk: Clerk) -> None:
        self._clerk = clerk
        self._handed: deque[_Line] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC)

    def run(self, place: Place) -> None:
        """Listen at a place and work, for as long as this process lives; called in the main thread."""
        listener = _listening(place)
        threading.Thread(target=self._answer, args=(listener,), name="jobman-desk", daemon=True).start()
        lines: dict[int, _Line] = {}
        polling = select.epoll()
        polling.register(self._bell, select.EPOLLIN)
        while True:
            for fd, _ in polling.poll():
                if fd == self._bell:
                    for line in self._taken_over():
                        lines[line.fd] = line
                        polling.register(line.fd, select.EPOLLIN)
                    continue
                line = lines[fd]
                if not line.read() or not self._serve(line):
                    polling.unregister(fd)
                    del lines[fd]
                    line.close()

    def _taken_over(self) -> Iterator[_Line]:
        """Connections over which the first work has come, when that is done."""
        os.eventfd_read(self._bell)
        while self._handed:
            line = self._handed.popleft()
            if self._serve(line):
                yield line
            else:
                line.close()

    def _serve(self, line: _Line) -> bool:
        """Do what was asked, in its order; false where it was the last of this connection."""
        while self._take(line):
            if not line.asked:
                return True
            request, keep = line.asked.popleft()
            assert request is not None  # work is never too large
            line.tell(self._clerk.work(request, line), keep=keep)
            if not keep:
                return False
        return False

    def _plain(self, request: Request | None) -> Answer:
        if request is None:
            return Answer(413, f"a body has at most {MOST_BYTES:,} bytes\n".encode(), TEXT)
        waiting = (asked for line in list(self._handed) for asked, _ in list(line.asked) if asked is not None)
        return self._clerk.beside(request, waiting)

    # -- the other thread --------------------------------------------------------------------------

    def _answer(self, listener: socket.socket) -> None:
        lines: dict[int, _Line] = {}
        polling = select.epoll()
        polling.register(listener, select.EPOLLIN)
        while True:
            # Who calls comes last: it may get the number of one that has just been closed.
            for fd, _ in sorted(polling.poll(), key=lambda event: event[0] == listener.fileno()):
                if fd == listener.fileno():
                    with suppress(OSError):  # it has hung up, or there are too many: the next may be luckier
                        line = _Line(listener.accept()[0])
                        lines[line.fd] = line
                        polling.register(line.fd, select.EPOLLIN)
                    continue
                line = lines[fd]
                if line.is_handed:
                    with suppress(OSError):  # the main thread has closed it by now
                        polling.unregister(fd)
                    self._clerk.gone(line)
                elif not line.read() or not self._take(line):
                    polling.unregister(fd)
                    line.close()
                elif line.asked:
                    polling.modify(fd, select.EPOLLRDHUP)
                    line.is_handed = True
                    self._handed.append(line)
                    os.eventfd_write(self._bell, 1)

    def _take(self, line: _Line) -> bool:
        """Answer all up to the first work; false where it was the last of this connection."""
        while line.asked:
            request, keep = line.asked[0]
            if request is not None and self._clerk.is_work(request):
                return True
            line.asked.popleft()
            line.tell(self._plain(request), keep=keep)
            if not keep:
                return False
        return True


def _listening(place: Place) -> socket.socket:
    if not isinstance(place, Path):
        return socket.create_server(place, backlog=_BACKLOG)
    if place.is_socket():
        place.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(_BACKLOG)
    return listener
