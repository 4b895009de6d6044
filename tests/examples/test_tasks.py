"""The examples of short tasks: a program, and workers in Python, C and shell, each as its file says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from jobman.control.embedded import read_running, wait_until_gone
from jobman.tasks.embedded import places_of_tasks
from tests.docs.pages import ROOT, fences
from tests.examples.laptop import Answer
from tests.examples.test_examples import EXAMPLES

pytestmark = pytest.mark.slow
_PATIENCE = 300


class Desk:
    """A folder with the examples, and a broker of its own that the first command starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self._state = folder / "state"
        shutil.copytree(EXAMPLES / "tasks", self.folder)

    def run(self, *words: str) -> Answer:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JOBMAN_")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**kept, "PATH": path, "HOME": str(self.folder), "JOBMAN_STATE": str(self._state)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def jobman(self, *words: str) -> Answer:
        return self.run("jobman", *words)

    def results(self, *words: str) -> list[str]:
        """What tasks gave, in their order."""
        answer = self.jobman("task", "submit", *words, "--results")
        assert answer.code == 0, answer.err
        found = sorted(map(json.loads, answer.out.splitlines()), key=lambda each: int(each["index"]))
        return [each["result"] for each in found]

    def close(self) -> None:
        places = places_of_tasks(self._state)
        if (running := read_running(places)) is not None:
            os.kill(running.pid, signal.SIGTERM)
            assert wait_until_gone(places, _PATIENCE)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    found.close()


def test_a_program_has_its_function_done(desk: Desk) -> None:
    assert desk.run(sys.executable, "price_option.py") == (0, "8.05 from 200,000 paths\n", "")


def test_a_function_is_a_worker_in_two_lines(desk: Desk) -> None:
    desk.jobman("task", "types", "add", "price-option", "--", "jobman", "task", "serve", "worker:price")
    prices = desk.results("--type", "price-option", "--payload-file", "tasks.jsonl")
    lines = (desk.folder / "tasks.jsonl").read_text().splitlines()
    assert prices == [str(_price(json.loads(line))) for line in lines]


def _price(option: dict[str, float]) -> float:
    """As the worker has it."""
    space: dict[str, object] = {}
    exec((EXAMPLES / "tasks" / "worker.py").read_text(), space)
    price = space["price"]
    assert callable(price)
    found: float = price(option)
    return found


@pytest.mark.parametrize(
    ("page", "said"),
    [(ROOT / "README.md", "333283335000\n"), ("tasks.md", "333283335000\n144\n[8, 9]\n")],
    ids=["readme", "page"],
)
def test_what_the_pages_show_of_python_runs(desk: Desk, page: Path | str, said: str) -> None:
    program = fences(page, "python")[0].text
    assert desk.run(sys.executable, "-c", program) == (0, said, "")


@pytest.mark.component("cc")
def test_a_worker_is_written_in_c(desk: Desk) -> None:
    made = desk.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "count-primes", "worker.c")
    assert made == (0, "", "")
    desk.jobman("task", "types", "add", "count-primes", "--", "./count-primes")
    (desk.folder / "limits").write_text("10\n100\n1000\n1000000\n")
    assert desk.results("--type", "count-primes", "-f", "limits") == ["4", "25", "168", "78498"]
    failed = desk.jobman("task", "submit", "-t", "count-primes", "--payload", "many", "--results")
    assert (failed.code, "400: the payload is a number" in failed.out) == (1, True)


@pytest.mark.component("bash")
def test_a_worker_is_written_in_shell(desk: Desk) -> None:
    desk.jobman("task", "types", "add", "checksum", "--on-port", "--", "bash", "worker.sh")
    (desk.folder / "words").write_text("hello\nwide world\nGrüße\n")
    wanted = [sha256(word.encode()).hexdigest() for word in ("hello", "wide world", "Grüße")]
    assert desk.results("--type", "checksum", "-f", "words") == wanted
