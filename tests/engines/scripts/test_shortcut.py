"""The first attempt of a plain command is done in short; whatever else happens goes on in the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from jobman.engines.slurm.compile import Script
from tests.engines.scripts.running import (
    NODE,
    ONE,
    lay_out,
    plan_of,
    run_script,
    scripts_of,
    words_of,
    written,
)

TASK = f"- {{name: t, command: [x], {ONE}}}"
LISTENS = "trap 'echo asked; exit 7' TERM; echo up; while :; do sleep 0.02; done"


def script_of(folder: Path, *command: str) -> Script:
    (script,) = scripts_of(plan_of(TASK, command=command), folder)
    return script


def kinds(folder: Path) -> list[str]:
    return [line.kind for line in words_of(folder) if line.kind != "task"]


def said_last(folder: Path, kind: str) -> bool:
    return kinds(folder)[-1] == kind


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def begun(folder: Path, script: Script) -> subprocess.Popen[bytes]:
    """Its command has said so."""
    place = lay_out(script, folder)
    surroundings = {"PATH": os.environ["PATH"], "TMPDIR": str(folder / "tmp"), **NODE}
    (folder / "tmp").mkdir()
    process = subprocess.Popen(["bash", str(place)], env=surroundings, cwd=folder)
    until(lambda: (folder / "out" / "t.0.out").exists() and written(folder, "t.0"))
    return process


def test_nothing_else_is_read_where_all_goes_well(tmp_path: Path) -> None:
    script = script_of(tmp_path, "true")
    place = lay_out(script, tmp_path)
    (tmp_path / "scripts" / "_plain.sh").write_text("exit 3\n")
    done = subprocess.run(["bash", str(place)], env={**os.environ, **NODE}, cwd=tmp_path, check=False)
    assert (done.returncode, kinds(tmp_path)) == (0, ["started", "succeeded"])
    assert (tmp_path / "outcome" / "t").read_text() == "succeeded 0 t.0\n"


@pytest.mark.parametrize("sent", [signal.SIGURG, signal.SIGTERM])
def test_it_is_stopped_in_peace(tmp_path: Path, sent: signal.Signals) -> None:
    process = begun(tmp_path, script_of(tmp_path, "bash", "-c", LISTENS))
    (tmp_path / "cancelled").touch()
    process.send_signal(sent)
    assert process.wait(60) != 0
    assert kinds(tmp_path) == ["started", "stopping", "cancelled"]
    assert written(tmp_path, "t.0") == b"up\nasked\n"
    assert not list((tmp_path / "tmp").iterdir())


def test_it_stands_still_and_goes_on(tmp_path: Path) -> None:
    go = tmp_path / "go"
    process = begun(tmp_path, script_of(tmp_path, "bash", "-c", f"echo up; until [[ -e {go} ]]; do :; done"))
    (tmp_path / "frozen").mkdir()
    for word, there in (("frozen", True), ("thawed", False)):
        place = tmp_path / "frozen" / "t"
        place.touch() if there else place.unlink()
        process.send_signal(signal.SIGWINCH)
        until(partial(said_last, tmp_path, word))
    go.touch()
    assert process.wait(60) == 0
    assert kinds(tmp_path) == ["started", "frozen", "thawed", "succeeded"]


def test_a_signal_that_ends_the_command_is_told(tmp_path: Path) -> None:
    assert run_script(script_of(tmp_path, "sh", "-c", "kill -KILL $$"), tmp_path).returncode == 137
    last = words_of(tmp_path)[-2]
    assert (last.kind, last.exit_code, last.reason, last.signal) == ("failed", 137, "signal", 9)


def test_what_it_leaves_behind_is_ended(tmp_path: Path) -> None:
    script = script_of(tmp_path, "sh", "-c", "sleep 600 & echo $!")
    assert run_script(script, tmp_path).returncode == 0
    left = Path("/proc", written(tmp_path, "t.0").decode().strip(), "stat")
    until(lambda: not left.exists() or left.read_text().rpartition(")")[2].split()[0] == "Z")


def test_one_that_comes_back_has_a_second_attempt(tmp_path: Path) -> None:
    script = script_of(
        tmp_path, "sh", "-c", 'echo "$JOBMAN_ATTEMPT"; test "$JOBMAN_ATTEMPT" = 2 || kill -KILL "$PPID"'
    )
    run_script(script, tmp_path)
    assert run_script(script, tmp_path, SLURM_RESTART_COUNT="1").returncode == 0
    assert kinds(tmp_path) == ["started", "retrying", "started", "succeeded"]
    assert [written(tmp_path, "t.0", attempt) for attempt in (1, 2)] == [b"1\n", b"2\n"]


def test_one_that_is_cancelled_before_it_begins_does_not(tmp_path: Path) -> None:
    script = script_of(tmp_path, "true")
    lay_out(script, tmp_path)
    (tmp_path / "cancelled").touch()
    assert run_script(script, tmp_path).returncode == 1
    assert kinds(tmp_path) == ["cancelled"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (script,) = scripts_of(plan_of(TASK, command=("true",), cwd="/no/where"), tmp_path)
    assert run_script(script, tmp_path).returncode == 1
    last = words_of(tmp_path)[-2]
    assert (last.reason, last.message) == (
        "launch-failed",
        "the working directory /no/where is not there on here",
    )
