"""Running the command line, in this process or in one of its own, far from anybody's settings."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from jobman.cli.app import app
from jobman.control.places import find_places
from tests.cli import stub

GOOD = "version: 1\ntasks:\n- name: hello\n  command: [echo, hello]\n  resources: {type: node, count: 1}\n"
COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "COLUMNS", "PY_COLORS")


class Answer(NamedTuple):
    """What a user sees of one command."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)

    @property
    def codes(self):
        """The codes of the problems of the first file, or of the problems that ended the command."""
        answer = self.data[0] if isinstance(self.data, list) else self.data
        return [problem["code"] for problem in answer["problems"]]


@pytest.fixture(autouse=True)
def bare_home(tmp_path, monkeypatch):
    """An empty home and an empty folder to work in; returns the home."""
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("JOBMAN_STATE", str(tmp_path / "state"))
    for name in (*COLOURS, "JOBMAN_SERVER", "JOBMAN_BROKER", "JOBMAN_TOKEN", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def service(bare_home):
    """A service at the place where commands look for this user's own."""
    places = find_places()
    places.make()
    service = stub.Stub()
    server = stub.serve(service, places.socket)
    yield service
    server.shutdown()
    server.server_close()
    places.socket.unlink(missing_ok=True)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A broker with a worker that squares numbers, at the place that JOBMAN_BROKER says."""
    from tests.tasks.site import Site

    with Site(tmp_path) as found:
        monkeypatch.setenv("JOBMAN_BROKER", found.url)
        yield found


@pytest.fixture
def jobman():
    """Run a command in this process."""

    def run(*arguments, stdin=""):
        result = CliRunner().invoke(app, list(map(str, arguments)), input=stdin, prog_name="jobman")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def real_jobman():
    """Run a command in a process of its own."""

    def run(*arguments, stdin="", **environment):
        result = subprocess.run(
            [sys.executable, "-m", "jobman.cli.main", *map(str, arguments)],
            input=stdin.encode(),
            capture_output=True,
            env={**os.environ, **environment},
            timeout=60,
        )
        return Answer(result.returncode, result.stdout.decode(), result.stderr.decode())

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file into the folder of work; returns its name."""

    def make(text=GOOD, name="job.yaml"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "work" / name).write_bytes(data)
        return name

    return make


@pytest.fixture
def good(write):
    return write()
