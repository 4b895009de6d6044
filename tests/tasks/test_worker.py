"""A worker made of a function: what goes in and out, and that it answers while it computes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.tasks.wire import Answer, Broken, Connection
from jobman.tasks.worker import WrongFunction, find, place_here, raw

FUNCTIONS = """
import time
from pathlib import Path
from jobman.tasks.worker import this_task

steps = []

def double(value):
    return value * 2

def backwards(payload: bytes) -> bytes:
    return payload[::-1]

def wrong(value):
    return 1 // value

def about(value):
    task = this_task()
    return [task.id, task.attempt, task.seconds]

def started(path):
    Path(path).write_text("started")
    while True:
        time.sleep(0.01)

def steps_so_far(value):
    return steps

def begin():
    steps.append("initialize")

def leave():
    raise RuntimeError("not today")
"""


def squared(number: int) -> int:
    return number**2


def reversed_(payload: bytes) -> bytes:
    return payload[::-1]


class Point(msgspec.Struct):
    x: float
    y: float


def area(point: Point) -> float:
    return point.x * point.y


def silent_bytes(_: object) -> Any:
    return b"x"


@pytest.mark.parametrize(
    ("function", "payload", "result"),
    [
        (squared, b"7", b"49"),
        (reversed_, b"abc", b"cba"),
        (area, b'{"x": 2, "y": 3.5}', b"7.0"),
        (lambda value: value, b'{"a": [1, null]}', b'{"a":[1,null]}'),
        (lambda value: value, b"", b"null"),
        (len, b"[1, 2, 3]", b"3"),
    ],
)
def test_bytes_are_bytes_where_the_function_says_so_and_all_else_is_json(
    function: Any, payload: bytes, result: bytes
) -> None:
    assert raw(function)(payload) == result


def test_a_value_that_is_not_what_the_annotation_says_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        raw(squared)(b'"seven"')


def test_bytes_that_come_unannounced_are_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="-> bytes"):
        raw(silent_bytes)(b"1")


@pytest.mark.parametrize("function", [lambda: 1, lambda one, two: 1])
def test_a_function_takes_one_argument(function: Any) -> None:
    with pytest.raises(WrongFunction, match="one argument"):
        raw(function)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "module:function"),
        ("no_such_module_at_all:f", "no module"),
        ("json:no_such", "has no"),
        ("json:__name__", "cannot be called"),
    ],
)
def test_a_function_that_is_not_there_is_told(name: str, words: str) -> None:
    with pytest.raises(WrongFunction, match=words):
        find(name)


def test_where_to_listen_is_in_the_environment() -> None:
    assert place_here({"JOBMAN_WORKER_SOCKET": "/run/w"}) == Path("/run/w")
    assert place_here({"JOBMAN_WORKER_PORT": "81"}) == ("127.0.0.1", 81)
    with pytest.raises(WrongFunction, match="JOBMAN_WORKER_SOCKET"):
        place_here({})


# -- as a process --------------------------------------------------------------------------------------------


class Asking:
    """Somebody who asks a worker, from a thread without a loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def start(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """A future of the answer."""
        named = {f"x-jobman-{name}": value for name, value in headers.items()}
        return asyncio.run_coroutine_threadsafe(self._ask(method, path, body, named), self._loop)

    async def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        async with asyncio.timeout(60):
            while True:
                try:
                    return await Connection(self._path).ask(method, path, body, headers)
                except Broken:
                    await asyncio.sleep(0.01)  # it is just starting

    def __call__(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        answer: Answer = self.start(method, path, body, **headers).result(60)
        return answer


@contextmanager
def worker(folder: Path, function: str, *options: str) -> Iterator[Asking]:
    (folder / "functions.py").write_text(FUNCTIONS)
    code = "import sys; from jobman.tasks.worker import serve_named; serve_named(*sys.argv[1:2], "
    code += "**dict(zip(sys.argv[2::2], sys.argv[3::2])))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, f"functions:{function}", *options],
        cwd=folder,
        env={"JOBMAN_WORKER_SOCKET": str(folder / "w")},
    )
    try:
        yield Asking(folder / "w")
    finally:
        process.kill()
        process.wait()


def test_it_executes_one_task_and_many(tmp_path: Path) -> None:
    with worker(tmp_path, "double") as ask:
        assert ask("GET", "/ping").headers["x-jobman-batches"] == "1"
        assert ask("POST", "/execute", b"21").body == b"42"
        rows = [["a", 1, None, b"1"], ["b", 2, 5.0, b'"ha"'], ["c", 1, None, b"{"]]
        answer = ask("POST", "/execute_batch", msgspec.msgpack.encode(rows))
        done = msgspec.msgpack.decode(answer.body, type=list[tuple[str, bytes]])
        assert done[:2] == [("completed", b"2"), ("completed", b'"haha"')]
        assert done[2][0] == "failed"
        assert ask("POST", "/execute_batch", b"\x01").status == 400
        assert ask("POST", "/initialize").status == 404


def test_an_exception_is_told_with_its_place(tmp_path: Path) -> None:
    with worker(tmp_path, "wrong") as ask:
        answer = ask("POST", "/execute", b"0")
        assert answer.status == 500
        assert answer.body.startswith(b"ZeroDivisionError: ")
        assert b"functions.py:15, in wrong: return 1 // value" in answer.body


def test_a_function_may_know_its_task(tmp_path: Path) -> None:
    with worker(tmp_path, "about") as ask:
        answer = ask("POST", "/execute", b"0", task="t-1", attempt="3", deadline="2.5")
        assert msgspec.json.decode(answer.body) == ["t-1", 3, 2.5]


def test_it_is_prepared_and_taken_down(tmp_path: Path) -> None:
    steps = ("initialize", "functions:begin", "finalize", "functions:leave")
    with worker(tmp_path, "steps_so_far", *steps) as ask:
        assert ask("POST", "/initialize").status == 200
        assert ask("POST", "/execute", b"0").body == b'["initialize"]'
        assert (ask("POST", "/finalize").status, b"not today" in ask("POST", "/finalize").body) == (500, True)


def test_it_answers_while_it_computes_and_lets_go_of_what_is_cancelled(tmp_path: Path) -> None:
    with worker(tmp_path, "started") as ask:
        at = tmp_path / "at"
        running = ask.start("POST", "/execute", f'"{at}"'.encode(), task="long")
        waiting = ask.start("POST", "/execute", f'"{at}"'.encode(), task="behind")
        wait_for_file(at)
        assert ask("GET", "/ping").status == 200
        assert ask("POST", "/cancel", task="nobody").status == 404
        assert ask("POST", "/cancel", task="behind").status == 200
        assert ask("POST", "/cancel", task="long").status == 200
        assert running.result(60).status == 410
        assert waiting.result(60).body == b"cancelled"


def test_who_hangs_up_has_cancelled(tmp_path: Path) -> None:
    with worker(tmp_path, "started") as ask:
        first, second = tmp_path / "first", tmp_path / "second"
        running = ask.start("POST", "/execute", f'"{first}"'.encode(), task="one")
        wait_for_file(first)
        running.cancel()
        ask.start("POST", "/execute", f'"{second}"'.encode(), task="two")
        wait_for_file(second)


def wait_for_file(path: Path) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if path.exists():
            return
        waiting.wait(0.01)
    raise AssertionError(f"{path} did not appear")
