"""The service of a user: started once, found again, taken over when it is dead or old, and gone when idle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Client, Unreachable
from jobman.control import embedded
from jobman.control.answers import Submission
from jobman.control.embedded import ensure_service, is_alive, read_running, wait_until_gone
from jobman.control.places import Places
from jobman.version import __version__
from tests.control.api.world import DOCUMENT, until

pytestmark = pytest.mark.slow

SCRIPTED = Path(__file__).parent / "api" / "scripted_service.py"
PROGRAM = (str(SCRIPTED),)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Places of a service that is ended with the test."""
    monkeypatch.delenv("SCRIPTED", raising=False)
    made = Places(tmp_path / "state")
    yield made
    running = read_running(made)
    if is_alive(made) and running is not None:
        os.kill(running.pid, signal.SIGKILL)
        wait_until_gone(made)


def start(places: Places) -> embedded.Running:
    ensure_service(places, PROGRAM)
    running = read_running(places)
    assert running is not None
    return running


def starts(places: Places) -> int:
    return len((places.state / "starts").read_text().splitlines())


def client(places: Places) -> Client:
    return Client.embedded(places, program=PROGRAM)


def test_the_first_command_starts_a_service_and_the_next_finds_it(places: Places) -> None:
    first, second = start(places), start(places)
    assert first.pid == second.pid
    assert starts(places) == 1
    assert client(places).status().pid == first.pid


def test_only_its_user_can_reach_it(places: Places) -> None:
    start(places)
    assert places.state.stat().st_mode & 0o777 == 0o700
    for file in (places.socket, places.log, places.pid, places.lock):
        assert file.stat().st_mode & 0o777 == 0o600, file


def test_the_service_outlives_the_command_and_leads_a_session_of_its_own(places: Places) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(SCRIPTED.parents[3])!r})
from pathlib import Path
from jobman.control.embedded import ensure_service
from jobman.control.places import Places
ensure_service(Places(Path({str(places.state)!r})), {PROGRAM!r})
"""
    # Reading to the end of the output also shows that the service holds no pipe of its caller.
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
    running = read_running(places)
    assert running is not None
    assert os.getsid(running.pid) == os.getpgid(running.pid) != os.getsid(0)
    assert Path(f"/proc/{running.pid}/cwd").readlink() == Path("/")


@pytest.mark.slow
def test_ten_commands_at_once_start_one_service(places: Places) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(SCRIPTED.parents[3])!r})
from pathlib import Path
from jobman.client import Client
from jobman.control.places import Places
print(Client.embedded(Places(Path({str(places.state)!r})), program={PROGRAM!r}).status().pid)
"""
    commands = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(10)
    ]
    pids = {command.communicate(timeout=120)[0] for command in commands}
    assert len(pids) == 1
    assert starts(places) == 1


def test_a_killed_service_is_started_again_and_has_lost_nothing(places: Places) -> None:
    ours = client(places)
    job = ours.submit(Submission(document=DOCUMENT, name="train")).jobs[0]
    first = read_running(places)
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    wait_until_gone(places)
    assert places.socket.exists(), "nobody was there to remove it"
    assert ours.details("train").id == job.id
    assert ours.status().pid != first.pid


def test_a_socket_that_was_left_behind_is_replaced(places: Places) -> None:
    places.make()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(places.socket))
    left.close()
    places.pid.write_text('{"pid": 1, "socket": "/nowhere"}')
    assert start(places).pid != 1


def test_a_service_with_another_socket_of_the_same_state_is_found(places: Places, tmp_path: Path) -> None:
    running = start(places)
    elsewhere = Places(places.state, tmp_path / "elsewhere" / "service.sock")
    assert ensure_service(elsewhere, PROGRAM) == running.socket
    assert starts(places) == 1


@pytest.mark.slow
def test_an_older_service_is_replaced_and_a_newer_one_from_elsewhere_is_not(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED", "0.0.1")
    old = start(places)
    job = client_of(old).submit(Submission(document=DOCUMENT)).jobs[0]
    monkeypatch.delenv("SCRIPTED")
    new = start(places)
    assert (old.version, new.version) == ("0.0.1", __version__)
    assert old.pid != new.pid
    assert client(places).details(job.id).id == job.id

    monkeypatch.setattr(embedded, "__version__", "0.0.1")
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    assert start(places).pid == new.pid


def client_of(running: embedded.Running) -> Client:
    from tests.control.api.world import LocalLink

    return Client(LocalLink(running.socket))


def test_a_service_that_dies_at_its_start_is_told_with_its_last_words(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED", "die")
    with pytest.raises(Unreachable, match="could not start") as raised:
        ensure_service(places, PROGRAM)
    assert "the disk is on fire" in raised.value.advice
    monkeypatch.delenv("SCRIPTED")
    assert start(places).pid


def test_a_program_that_is_not_there_is_told(places: Places) -> None:
    with pytest.raises(Unreachable, match="could not start") as raised:
        ensure_service(places, ("-m", "jobman.no_such_module"))
    assert "no_such_module" in raised.value.advice


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unreachable, match="cannot be started") as raised:
        ensure_service(Places(tmp_path / "file" / "state"), PROGRAM)
    assert "JOBMAN_STATE" in raised.value.advice


def test_a_service_on_another_machine_is_not_waited_for(places: Places) -> None:
    places.make()
    held = embedded.take_pid_file(places, 1)
    assert held is not None
    embedded.write_running(held, embedded.Running(pid=1, socket="/nowhere", host="elsewhere"))
    with pytest.raises(Unreachable, match="runs on elsewhere"):
        ensure_service(places, PROGRAM)
    embedded.write_running(held, embedded.Running(pid=1, listen="https://there:1"))
    with pytest.raises(Unreachable, match="shared service"):
        ensure_service(places, PROGRAM)
    os.close(held)


def test_without_starting_there_is_nobody_to_ask(places: Places) -> None:
    with pytest.raises(Unreachable, match="No service is running"):
        Client.embedded(places, start=False).status()
    assert not places.state.exists(), "looking leaves no trace"


def test_it_stops_when_asked_and_leaves_no_socket(places: Places) -> None:
    ours = client(places)
    ours.status()
    ours.stop()
    assert wait_until_gone(places)
    assert not places.socket.exists()
    assert read_running(places) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(places: Places, number: signal.Signals) -> None:
    running = start(places)
    os.kill(running.pid, number)
    assert wait_until_gone(places)
    assert not places.socket.exists()
    assert "stopped" in places.log.read_text()


@pytest.mark.slow
def test_an_idle_service_stops_by_itself_and_a_busy_one_does_not(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBMAN_IDLE", "0.3s")
    ours = client(places)
    job = ours.submit(Submission(document=DOCUMENT)).jobs[0]
    first = ours.status().pid
    ours.close()
    until(lambda: places.log.read_text().count("\n") >= 3)
    assert is_alive(places)
    assert ours.cancel(job.id).state == "cancelled"
    assert ours.status().pid == first
    ours.close()
    until(lambda: not is_alive(places))
    assert "idle" in places.log.read_text()
    assert ours.details(job.id).state == "cancelled", "the next command starts it again"


def test_its_log_has_request_lines_and_its_environment_no_token(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBMAN_TOKEN", "jobman_secret")
    ours = client(places)
    running = ours.status()
    until(lambda: "method=GET path=/v1/status status=200" in places.log.read_text())
    assert b"jobman_secret" not in Path(f"/proc/{running.pid}/environ").read_bytes()
