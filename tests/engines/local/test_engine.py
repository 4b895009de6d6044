import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.api import loads
from jobman.engines import base
from jobman.engines.local.engine import LocalEngine
from jobman.engines.local.private import in_memory
from jobman.engines.local.records import path_of
from jobman.engines.local.trees import facts
from jobman.sched.allocation import Slot
from jobman.spec.access import EnvFrom, Secret, Security
from jobman.spec.checks import Check, Checks, TcpCheck
from jobman.spec.lifecycle import Hooks
from jobman.spec.networks import Port
from jobman.spec.steps import Write
from jobman.spec.volumes import Volume
from tests.engines.local.house import House
from tests.engines.local.workshop import eventually

SAY_ENVIRONMENT = (sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    try:
        yield made
    finally:
        made.close()


def wait_for_file(path: Path) -> None:
    eventually(path.exists, f"the file {path}")


# -- from order to end -------------------------------------------------------------------------------


def test_an_order_runs_and_is_over(house):
    order = house.shell("echo hello; echo oh >&2; exit 3")
    over = house.run(order)
    running = house.running(order)
    assert [type(report) for report in house.reports] == [base.Running, base.Over]
    assert (over.reason, over.exit_code, over.signal, over.message) == ("exit", 3, None, "")
    assert over.started_at is not None
    assert over.started_at <= over.at
    assert {output.stream: Path(output.path).read_text() for output in running.outputs} == {
        "stdout": "hello\n",
        "stderr": "oh\n",
    }
    assert [(output.path, output.size) for output in over.outputs] == [
        (output.path, Path(output.path).stat().st_size) for output in running.outputs
    ]


def test_an_order_without_a_place_cannot_be_launched(house):
    over = house.run(house.order("true", slots=()))
    assert (over.reason, over.message) == ("launch-failed", "no slot was given to it")


def test_a_fault_in_one_order_does_not_reach_the_others(house):
    bad, good = house.order("true", virtual="nonsense"), house.order("true")
    house.launch(bad, good)
    assert house.over(bad).reason == "launch-failed"
    assert house.over(good).reason == ""
    assert not (house.attempt_folder(bad) / "work").exists()


def test_success_has_no_reason(house):
    over = house.run(house.order("true"))
    assert (over.reason, over.exit_code) == ("", 0)


def test_a_signal_is_told_by_number(house):
    over = house.run(house.shell("kill -9 $$"))
    assert (over.reason, over.exit_code, over.signal) == ("signal", 137, 9)


def test_a_command_that_does_not_exist_could_not_be_launched(house):
    over = house.run(house.order("./no-such-program"))
    assert over.reason == "launch-failed"
    assert "./no-such-program" in over.message


def test_an_attempt_is_launched_once_however_often_it_is_asked_for(house):
    order = house.shell("echo once >> ran; read x < fifo")
    os.mkfifo(house.work / "fifo")
    house.launch(order, order)
    house.running(order)
    house.launch(order)
    (house.work / "fifo").write_text("go\n")
    house.over(order)
    house.launch(order)
    eventually(lambda: len(house.heard(order, base.Over)) == 2)
    assert (house.work / "ran").read_text() == "once\n"


def test_many_orders_at_once_all_come_to_their_end(house):
    orders = [house.shell(f"exit {number}") for number in range(20)]
    house.launch(*orders)
    assert [house.over(order).exit_code for order in orders] == list(range(20))


def test_the_environment_is_that_of_submission_and_that_of_the_document(house):
    digest = house.engine.keep_environment(
        {"PATH": os.environ["PATH"], "TITLE": 'a "b" $c\nd', "LEVEL": "1", "SHLVL": "3", "JOBMAN_X": "x"}
    )
    order = house.order(*SAY_ENVIRONMENT, environment={"LEVEL": "2"})
    order = base.Order(**{**{f: getattr(order, f) for f in order.__struct_fields__}, "environment": digest})
    house.run(order)
    found = json.loads(house.out(order))
    mine = {name: found[name] for name in found if not name.startswith("JOBMAN_")}
    mine.pop("LC_CTYPE", None)  # Python's own
    assert mine == {"PATH": os.environ["PATH"], "TITLE": 'a "b" $c\nd', "LEVEL": "2"}
    assert "JOBMAN_X" not in found
    assert found["JOBMAN_TASK"] == "task"


def test_an_environment_that_is_no_longer_kept_fails_the_launch(house):
    order = house.order("true")
    order = base.Order(**{**{f: getattr(order, f) for f in order.__struct_fields__}, "environment": "0" * 64})
    assert house.run(order).reason == "launch-failed"


def test_output_files_of_the_document_are_appended_to_and_the_part_of_the_attempt_is_known(house):
    (house.work / "log").write_text("before\n")
    order = house.shell("echo now", stdout="log")
    over = house.run(order)
    (output,) = [output for output in over.outputs if output.stream == "stdout"]
    assert (output.path, output.start) == (str(house.work / "log"), len("before\n"))
    assert (house.work / "log").read_text() == "before\nnow\n"


def test_steps_hooks_and_results_are_part_of_an_attempt(house):
    order = house.shell(
        "cat config; echo done > result.txt",
        steps=(Write(path="config", content="level = 3\n"),),
        hooks=Hooks(before=("touch", "before"), after=("touch", "after")),
        result_file="result.txt",
    )
    over = house.run(order)
    assert (house.out(order), over.result) == ("level = 3\n", "done\n")
    assert (house.work / "before").exists()
    assert (house.work / "after").exists()


def test_steps_alone_are_a_task(house):
    order = house.order(steps=(Write(path="a", content="x"),))
    assert house.run(order).reason == ""
    assert (house.work / "a").read_text() == "x"


def test_scratch_is_there_and_goes_with_the_attempt(house):
    order = house.shell('echo "$JOBMAN_SCRATCH"; mkdir "$JOBMAN_SCRATCH/a"; echo x > "$JOBMAN_SCRATCH/a/b"')
    assert house.run(order).reason == ""
    eventually(lambda: not Path(house.out(order).strip()).exists())


def test_a_time_limit_ends_it(house):
    over = house.run(house.shell("sleep 600", duration=0.3, grace=5.0))
    assert over.reason == "timeout"


# -- copies ------------------------------------------------------------------------------------------


def test_copies_know_their_ranks_and_share_the_scratch_of_their_node(house):
    slots = (Slot("node-0"), Slot("node-0"), Slot("node-1"))
    script = 'echo "$JOBMAN_RANK/$JOBMAN_SIZE $JOBMAN_NODE_RANK $JOBMAN_SCRATCH"'
    order = house.shell(script, slots=slots)
    over = house.run(order)
    words = [house.out(order, copy).split() for copy in range(3)]
    assert [each[0] for each in words] == ["0/3", "1/3", "2/3"]
    assert [each[1] for each in words] == ["0", "0", "1"]
    assert words[0][2] == words[1][2] != words[2][2]
    assert [(output.copy, output.node) for output in over.outputs][::2] == [
        (0, "node-0"),
        (1, "node-0"),
        (2, "node-1"),
    ]


def test_running_is_told_once_all_copies_run(house):
    order = house.shell("sleep 600", slots=3)
    house.launch(order)
    house.running(order)
    assert sorted(info.copy for info in house.engine.copies(order.job)) == [0, 1, 2]
    assert len(house.heard(order, base.Running)) == 1


def test_the_first_copy_that_fails_ends_the_others_and_tells_how_it_was(house):
    order = house.shell('[ "$JOBMAN_RANK" = 1 ] && exit 7; sleep 600', slots=3, grace=5.0)
    over = house.run(order)
    assert (over.reason, over.exit_code) == ("exit", 7)
    assert over.message == "copy 1 on node-0: ended with exit code 7"


def test_a_copy_that_succeeds_early_lets_the_others_go_on(house):
    os.mkfifo(house.work / "fifo")
    order = house.shell('[ "$JOBMAN_RANK" = 0 ] && exit 0; read x < fifo', slots=2)
    house.launch(order)
    eventually(lambda: [info.copy for info in house.engine.copies(order.job)] == [1] and house.running(order))
    (house.work / "fifo").write_text("go\n")
    assert house.over(order).reason == ""


def test_copies_can_be_looked_at_from_inside(house):
    order = house.shell("sleep 600", unit_cwd=".")
    house.launch(order)
    house.running(order)
    (info,) = house.engine.copies(order.job)
    assert facts(info.pid) is not None
    assert (info.replica, info.attempt, info.cwd, info.container) == (order.key, 1, str(house.work), None)


# -- ports and peers ---------------------------------------------------------------------------------


def test_ports_are_found_and_told(house):
    order = house.shell('echo "$PORT_WEB"', ports=(Port(name="web"), Port(port=8080)), slots=2)
    house.run(order)
    running = house.running(order)
    first, second = (int(house.out(order, copy)) for copy in (0, 1))
    assert running.ports == {"web": first, "8080": 8080}
    assert first != second


def test_ports_are_the_same_after_a_restart_of_the_service(house):
    order = house.shell("sleep 600", ports=(Port(name="web"),))
    house.launch(order)
    before = house.running(order).ports
    house.reopen()
    house.recover(order)
    assert house.running(order).ports == before


def test_peers_are_in_the_environment(house):
    peer = base.Peer("server", 0, "localhost", {"web": 5000})
    order = house.shell('echo "$JOBMAN_HOST_SERVER:$JOBMAN_PORT_SERVER_WEB"', peers=(peer,))
    house.run(order)
    assert house.out(order) == "localhost:5000\n"


# -- secrets and volumes -----------------------------------------------------------------------------


@pytest.fixture
def secret(house: House) -> str:
    file = house.home / "secrets/token/value"
    file.parent.mkdir(parents=True)
    file.write_text("s3cret-value\n")
    (house.home / "secrets").chmod(0o700)
    return "s3cret-value"


def test_secrets_reach_the_copy_and_stay_nowhere(house, secret, tmp_path):
    order = house.shell(
        f'echo "$TOKEN" | md5sum; cat "$JOBMAN_SECRET_TOKEN/value" | md5sum; md5sum < {tmp_path}/token',
        secrets=(
            Secret(name="token", variable="TOKEN"),
            Secret(name="token"),
            Secret(name="token", path=f"{tmp_path}/token"),
        ),
        env_from=(EnvFrom(secret="token", prefix="X_"),),
    )
    house.launch(order)
    over = house.over(order)
    assert over.reason == "", over.message + house.err(order)
    assert len(set(house.out(order).split())) == 2  # one digest, and the word for standard input
    assert not (tmp_path / "token").is_symlink()
    assert not in_memory(house.attempt_folder(order)).exists()
    left = [
        path for path in house.state.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert left == []


def test_a_missing_secret_fails_the_launch_and_is_named(house):
    over = house.run(house.order("true", secrets=(Secret(name="licence"),)))
    assert over.reason == "launch-failed"
    assert f"no secret `licence`: it would be the folder {house.home}/secrets/licence" in over.message


def test_a_volume_is_a_link_as_long_as_somebody_uses_it(house, tmp_path):
    (tmp_path / "data").mkdir()
    os.mkfifo(house.work / "fifo")
    volume = Volume(name="data", kind="host", path=f"{tmp_path}/data", to=f"{tmp_path}/mnt/data")
    first = house.shell(f"read x < fifo; echo 1 > {tmp_path}/mnt/data/first", volumes=(volume,))
    second = house.shell(f"echo 2 > {tmp_path}/mnt/data/second", volumes=(volume,))
    house.launch(first)
    house.running(first)
    assert house.run(second).reason == ""
    assert (tmp_path / "mnt/data").is_symlink()
    (house.work / "fifo").write_text("go\n")
    assert house.over(first).reason == ""
    assert not (tmp_path / "mnt").exists()
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["first", "second"]


@pytest.mark.parametrize("kind", ["scratch", "memory"])
def test_a_volume_of_the_copy_goes_with_it(house, tmp_path, kind):
    volume = Volume(name="tmp", kind=kind, to=f"{tmp_path}/tmp", size=1 << 20)
    order = house.shell(f"echo x > {tmp_path}/tmp/file; readlink {tmp_path}/tmp", volumes=(volume,))
    assert house.run(order).reason == ""
    eventually(lambda: not Path(house.out(order).strip()).exists())
    assert not (tmp_path / "tmp").is_symlink()


def test_an_attempt_whose_volume_outgrows_its_size_is_stopped(house, tmp_path):
    volume = Volume(name="tmp", kind="scratch", to=f"{tmp_path}/tmp", size=10_000)
    order = house.shell(
        f"head -c 1000000 /dev/zero > {tmp_path}/tmp/file; sleep 600", volumes=(volume,), grace=5.0
    )
    over = house.run(order)
    assert (over.reason, over.signal) == ("signal", 15)
    assert over.message.startswith("the volume `tmp` holds more than its ")


def test_a_volume_that_cannot_be_had_fails_the_launch_and_leaves_nothing(house, tmp_path):
    (tmp_path / "taken").mkdir()
    volumes = (
        Volume(name="a", kind="scratch", to=f"{tmp_path}/a"),
        Volume(name="b", kind="scratch", to=f"{tmp_path}/taken"),
    )
    order = house.order("true", volumes=volumes)
    over = house.run(order)
    assert over.reason == "launch-failed"
    assert "the volume `b` cannot be put at" in over.message
    assert not (tmp_path / "a").is_symlink()
    assert not (house.attempt_folder(order) / "work").exists()


# -- asking ------------------------------------------------------------------------------------------


def test_a_stop_ends_it_in_peace(house):
    order = house.shell("trap 'echo bye; exit 5' TERM; touch up; while :; do sleep 0.05; done")
    house.launch(order)
    wait_for_file(house.work / "up")
    house.stop(order, "enough")
    over = house.over(order)
    assert (over.reason, over.exit_code, house.out(order)) == ("exit", 5, "bye\n")


def test_a_stop_ends_it_by_force_when_its_grace_is_over(house):
    order = house.shell("trap '' TERM; touch up; while :; do sleep 0.05; done", grace=0.2)
    house.launch(order)
    wait_for_file(house.work / "up")
    house.stop(order)
    assert house.over(order).signal == signal.SIGKILL


def test_a_stop_before_the_image_is_there_is_the_end(house, tmp_path, monkeypatch):
    (tmp_path / "podman").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    order = house.order("true", image="img", ports=(Port(name="web"),))

    async def launch_and_stop() -> None:
        await house.engine.launch([order])
        await house.engine.stop(order.address, "enough")

    house.wait(launch_and_stop())
    assert house.over(order).reason == "signal"
    house.launch(order)
    house.stop(order)
    eventually(lambda: len(house.heard(order, base.Over)) == 2)


def test_a_stop_of_what_is_over_changes_nothing(house):
    order = house.order("true")
    house.run(order)
    house.stop(order)
    house.stop(house.order("true", key="never.0"))
    assert len(house.heard(order, base.Over)) == 1


def state_of(pid: int) -> str:
    known = facts(pid)
    return known.state if known is not None else ""


def test_what_is_frozen_stands_still_and_goes_on_when_thawed(house):
    order = house.shell("while :; do sleep 0.05; done")
    house.launch(order)
    house.running(order)
    (info,) = house.engine.copies(order.job)
    house.wait(house.engine.freeze(order.address))
    eventually(lambda: state_of(info.pid) in "TtD", "the copy to stand still")
    house.wait(house.engine.thaw(order.address))
    eventually(lambda: state_of(info.pid) in "SR", "the copy to go on")


def test_what_is_frozen_can_be_stopped(house):
    order = house.shell("sleep 600", grace=5.0)
    house.launch(order)
    house.running(order)
    house.wait(house.engine.freeze(order.address))
    house.stop(order)
    assert house.over(order).reason == "signal"


def test_a_time_limit_can_be_moved(house):
    os.mkfifo(house.work / "fifo")
    order = house.shell("read x < fifo", duration=2.0)
    house.launch(order)
    house.running(order)
    house.wait(house.engine.prolong(order.address, 300.0))
    house.wait(house.engine.prolong(order.address, 300.0))
    wanted = Path(path_of(str(house.attempt_folder(order)), 0, "wanted"))
    eventually(lambda: wanted.exists() and json.loads(wanted.read_text()).get("duration") == 302.0)
    (house.work / "fifo").write_text("go\n")
    assert house.over(order).reason == ""


# -- checks ------------------------------------------------------------------------------------------


def quick(**probe: object) -> Check:
    return Check(**{"every": 0.05, "timeout": 5.0, "failures": 2, **probe})  # type: ignore[arg-type]


def test_checks_are_told_in_their_order(house):
    checks = Checks(
        started=quick(exec=("test", "-e", "up"), failures=10_000),
        ready=quick(exec=("sh", "-c", '[ "$JOBMAN_TASK" = task ] && test -e ready'), failures=1),
    )
    order = house.shell("touch up; sleep 600", checks=checks)
    house.launch(order)
    eventually(lambda: house.heard(order, base.CheckPassed))
    (house.work / "ready").touch()
    eventually(lambda: len(house.heard(order, base.CheckPassed)) == 2)
    (house.work / "ready").unlink()
    eventually(lambda: len(house.heard(order, base.CheckPassed)) == 3)
    told = [(report.kind, report.passed) for report in house.heard(order, base.CheckPassed)]
    assert told == [("started", True), ("ready", True), ("ready", False)]


def test_a_copy_that_is_not_alive_makes_the_attempt_unhealthy(house):
    order = house.shell("sleep 600", checks=Checks(alive=quick(exec=("false",))), grace=5.0)
    house.launch(order)
    report = house.first(order, base.Unhealthy)
    assert report.message == "the check `alive` failed 2 times in a row: false ended with exit code 1"
    house.stop(order, "unhealthy")
    assert house.over(order).reason == "signal"


def test_a_port_by_name_is_checked(house):
    script = (
        "import os, socket, time; s = socket.socket(); s.bind(('127.0.0.1', int(os.environ['PORT_WEB'])));"
        "s.listen(); time.sleep(600)"
    )
    checks = Checks(ready=quick(tcp=TcpCheck(port="web"), failures=10_000))
    order = house.order(sys.executable, "-c", script, ports=(Port(name="web"),), checks=checks)
    house.launch(order)
    assert house.first(order, base.CheckPassed).kind == "ready"


# -- survival ----------------------------------------------------------------------------------------


def test_what_runs_goes_on_without_the_service_and_is_followed_again(house):
    os.mkfifo(house.work / "fifo")
    order = house.shell("echo once >> ran; read x < fifo; exit 4", checks=Checks(ready=quick(exec=("true",))))
    house.launch(order)
    house.running(order)
    house.reopen()
    house.recover(order)
    house.running(order)
    house.first(order, base.CheckPassed)
    (house.work / "fifo").write_text("go\n")
    assert house.over(order).exit_code == 4
    assert (house.work / "ran").read_text() == "once\n"


def test_what_ended_without_the_service_is_told_with_its_exit_code(house):
    order = house.shell("touch up; while ! test -e go; do sleep 0.01; done; exit 6")
    house.launch(order)
    wait_for_file(house.work / "up")
    house.wait(house.engine.close())
    (house.work / "go").touch()
    wait_for_file(house.attempt_folder(order) / "0.exit")
    house.open()
    house.recover(order)
    over = house.over(order)
    assert (over.reason, over.exit_code) == ("exit", 6)
    assert house.running(order).at <= over.at
    eventually(lambda: not (house.attempt_folder(order) / "work").exists())


def test_what_never_ran_is_launched(house):
    order = house.shell("echo ran")
    house.recover(order)
    assert house.over(order).exit_code == 0
    assert house.out(order) == "ran\n"


def forget_start(house: House, order: base.Order, copy: int, launcher: int) -> None:
    """As if the service had died before it launched this copy."""
    folder = house.attempt_folder(order)
    pid = json.loads((folder / f"{copy}.started").read_text().splitlines()[0])["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for_file(folder / f"{copy}.exit")
    # A launcher that has not noticed its end yet would wait for it for ever.
    os.kill(launcher, signal.SIGKILL)
    for name in ("started", "exit"):
        (folder / f"{copy}.{name}").unlink()


def test_of_a_task_that_was_half_launched_the_rest_is_launched(house):
    os.mkfifo(house.work / "fifo")
    order = house.shell('echo "$JOBMAN_RANK" >> ran; read x < fifo', slots=2)
    house.launch(order)
    ran = house.work / "ran"
    eventually(lambda: ran.exists() and sorted(ran.read_text().split()) == ["0", "1"])
    launcher = house.launcher_pid()
    house.wait(house.engine.close())
    forget_start(house, order, 1, launcher)
    house.open()
    house.recover(order)
    house.running(order)
    eventually(lambda: sorted(ran.read_text().split()) == ["0", "1", "1"])
    house.stop(order)
    house.over(order)


def test_what_was_half_launched_and_cannot_be_launched_as_a_whole_is_ended(house, secret):
    order = house.shell("exec sleep 600", slots=2, grace=5.0, secrets=(Secret(name="token"),))
    house.launch(order)
    house.running(order)
    launcher = house.launcher_pid()
    house.wait(house.engine.close())
    forget_start(house, order, 1, launcher)
    (house.home / "secrets/token/value").unlink()
    (house.home / "secrets/token").rmdir()
    house.open()
    house.recover(order)
    over = house.over(order)
    assert (over.reason, over.message) == (
        "launch-failed",
        "copy 1 on node-0: it was given up before it started",
    )


def test_a_state_that_cannot_be_written_to_is_named(house):
    (house.state / "jobs").write_text("in the way")
    over = house.run(house.order("true"))
    assert over.reason == "launch-failed"
    assert over.message.startswith(f"cannot write to {house.state}/jobs")


def test_the_launcher_may_die(house):
    os.mkfifo(house.work / "fifo")
    order = house.shell("echo once >> ran; read x < fifo; exit 9")
    house.launch(order)
    house.running(order)
    house.kill_launcher()
    after = house.shell("echo after")
    house.launch(after)
    assert house.over(after).exit_code == 0
    (house.work / "fifo").write_text("go\n")
    assert house.over(order).exit_code == 9
    assert (house.work / "ran").read_text() == "once\n"


def test_a_machine_that_was_restarted_lost_its_copies(house):
    order = house.shell("sleep 600")
    house.launch(order)
    house.running(order)
    house.wait(house.engine.close())
    folder = house.attempt_folder(order)
    lines = (folder / "0.started").read_text().splitlines()
    started = json.loads(lines[0])
    house.kill_everything(order)
    wait_for_file(folder / "0.exit")
    for kind in ("exit", "reaped", "keeper"):
        (folder / f"0.{kind}").unlink(missing_ok=True)
    (folder / "0.started").write_text(json.dumps({**started, "boot": "another"}) + "\n")
    house.open()
    house.recover(order)
    over = house.over(order)
    assert over.reason == "node-lost"
    assert "the machine was restarted" in over.message


def test_a_stop_is_not_forgotten_with_the_service(house):
    order = house.shell("trap 'touch asked' TERM; touch up; while ! test -e go; do sleep 0.02; done; exit 2")
    house.launch(order)
    wait_for_file(house.work / "up")
    house.stop(order)
    wait_for_file(house.work / "asked")
    house.reopen()
    house.recover(order)
    house.stop(order, "again")
    (house.work / "go").touch()
    assert house.over(order).exit_code == 2


def test_prolonging_says_all_that_is_given_also_after_a_restart(house):
    order = house.shell("sleep 600", duration=100.0)
    house.launch(order)
    house.running(order)
    wanted = Path(path_of(str(house.attempt_folder(order)), 0, "wanted"))
    house.wait(house.engine.prolong(order.address, 50.0))
    eventually(lambda: wanted.exists() and json.loads(wanted.read_text())["duration"] == 150.0)
    house.reopen()
    house.recover(order)
    house.running(order)
    house.wait(house.engine.prolong(order.address, 100.0))
    eventually(lambda: json.loads(wanted.read_text())["duration"] == 200.0)


# -- the rest of what an engine is -------------------------------------------------------------------


def test_what_a_job_left_behind_is_removed(house):
    order = house.shell("echo hello", key="group.0/task.1")
    house.run(order)
    assert house.attempt_folder(order).is_dir()
    house.wait(house.engine.forget(order.job))
    assert not (house.state / "jobs" / order.job).exists()
    house.wait(house.engine.forget("never-was"))


def test_nobody_else_can_look_into_the_state(house):
    order = house.order("true")
    house.run(order)
    assert stat.S_IMODE(house.state.stat().st_mode) == 0o700


def test_this_machine_is_a_node_and_virtual_ones_can_be_had(house):
    (here,) = house.engine.nodes()
    assert here.amounts["core"] >= 1
    assert [node.amounts["core"] for node in house.engine.nodes("3x4")] == [4, 4, 4]
    with pytest.raises(ValueError, match="NODESxCORES"):
        house.engine.nodes("many")


def test_a_copy_of_a_virtual_node_runs(house):
    nodes = house.engine.nodes("2x64")
    slots = tuple(Slot(node.name, (0, 63)) for node in nodes)
    order = house.shell("true", slots=slots, virtual="2x64")
    assert house.run(order).reason == ""


IMAGE = """
version: 1
tasks:
- {name: train, command: ./train, image: "example.org/train:1", resources: {type: node, count: 1}}
"""


def test_an_image_is_refused_where_nothing_can_run_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = LocalEngine(tmp_path / "state")
    plan = loads(IMAGE).plan()
    (refused,) = engine.refusals(plan)
    assert (refused.feature, refused.units) == ("image", ("train",))
    assert "--no-container" in refused.note
    assert not engine.refusals(plan, no_container=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_has_a_scratch_folder_and_secrets_of_its_own(house, secret):
    for folder in (house.folder, *list(house.folder.parents)[:2]):
        folder.chmod(0o755)
    order = house.shell(
        'id -u; touch "$JOBMAN_SCRATCH/x"; cat "$JOBMAN_SECRET_TOKEN/value" > /dev/null',
        cwd=Path("/"),
        security=Security(uid=12345, gid=12345),
        secrets=(Secret(name="token"),),
    )
    over = house.run(order)
    assert (over.reason, house.out(order)) == ("", "12345\n"), house.err(order)


def test_it_is_a_host(tmp_path):
    host: base.Host = LocalEngine(tmp_path)
    assert host.name == "local"
