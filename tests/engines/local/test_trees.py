"""Processes are found in their trees, by their markers and sessions, and ended to the last."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from jobman.engines.local import trees
from jobman.engines.local.trees import (
    MARKER,
    Process,
    descendants,
    facts,
    in_session,
    kill_all,
    marked,
    open_process,
    own_process,
    process_alive,
    proportional_memory,
    resident_memory,
    send,
    signal_all,
)
from tests.engines.local.workshop import eventually, is_stopped

FAMILY = "sleep 1000 & (sleep 1000 & sleep 1000 & wait) & wait"


@pytest.fixture
def name() -> str:
    return f"family-{uuid4()}"


@pytest.fixture
def family(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with four descendants, in a session of its own."""
    process = subprocess.Popen(["/bin/sh", "-c", FAMILY], env={MARKER: name}, start_new_session=True)
    eventually(lambda: len(descendants(process.pid)) == 4, "the family")
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def of(pid: int) -> Process:
    known = facts(pid)
    assert known is not None
    return Process(pid, known.ticks)


def test_this_process_is_alive_and_another_with_its_pid_is_not():
    own = own_process()
    assert process_alive(*own)
    assert not process_alive(own.pid, own.ticks + 1)
    assert not process_alive(0, 0)


def test_a_zombie_is_not_alive(family):
    process = of(family.pid)
    os.kill(family.pid, signal.SIGKILL)
    eventually(lambda: not process_alive(*process), "the death")
    assert facts(family.pid) is not None


def test_a_program_may_have_any_name(tmp_path):
    odd = tmp_path / "a) b (c"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "1000"]) as process:
        known = facts(process.pid)
        assert known is not None
        assert known.parent == os.getpid()
        process.kill()


@pytest.mark.parametrize("lists_children", [True, False])
def test_descendants_are_found_at_any_depth(family, monkeypatch, lists_children):
    monkeypatch.setattr(trees, "_LISTS_CHILDREN", lists_children and trees._LISTS_CHILDREN)
    assert len(descendants(family.pid)) == 4
    assert of(family.pid) in descendants(os.getpid())


def test_the_marked_and_the_session_are_found(family, name):
    everyone = {of(family.pid), *descendants(family.pid)}
    assert set(marked(name)) == everyone
    assert set(in_session(family.pid)) == everyone
    assert marked(f"{name}0") == []


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_signal_reaches_only_the_process_that_is_meant(family, monkeypatch, has_pidfd):
    monkeypatch.setattr(trees, "_HAS_PIDFD", has_pidfd and trees._HAS_PIDFD)
    process = of(family.pid)
    assert not send(Process(process.pid, process.ticks + 1), signal.SIGKILL)
    assert open_process(Process(process.pid, process.ticks + 1)) is None
    assert process_alive(*process)
    assert send(process, signal.SIGCONT)


def test_a_signal_reaches_all(family):
    everyone = [of(family.pid), *descendants(family.pid)]
    signal_all(lambda: in_session(family.pid), signal.SIGSTOP)
    eventually(lambda: all(map(is_stopped, everyone)), "standing still")


def test_all_are_killed(family):
    assert kill_all(lambda: in_session(family.pid)) == []
    assert in_session(family.pid) == []


def test_what_cannot_be_killed_is_given_back():
    own = own_process()
    beyond_reach = Process(own.pid, own.ticks + 1)
    assert kill_all(lambda: [beyond_reach], patience=0.05) == [beyond_reach]


def test_memory_is_counted(family):
    own = [own_process()]
    assert resident_memory(own) > 1 << 20
    assert 0 < proportional_memory(own) <= resident_memory(own) * 1.1
    assert resident_memory([Process(2**22 + 1, 0)]) == 0
