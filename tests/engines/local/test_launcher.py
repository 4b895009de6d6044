"""The launcher starts what it is asked to, once, and no death among the helpers costs a copy anything."""

import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from jobman.engines.local import records
from jobman.engines.local.records import path_of, read_copy, read_exit
from jobman.engines.local.trees import Process, facts, process_alive, send
from jobman.engines.local.wire import EARLIER, Request, address, line
from tests.engines.local.workshop import MODULE, Workshop, eventually, is_stopped, kill

pytestmark = pytest.mark.slow

UNTIL_GO = "echo run >> runs; touch ready; while [ ! -e go ]; do sleep 0.02; done"
BUSY = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"
DAEMON = "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)"


def ready(workshop: Workshop, script: str = f"{BUSY}; {UNTIL_GO}; exit 6", **given):
    """A copy whose command runs."""
    order = workshop.shell(script, **given)
    workshop.launch(order)
    workshop.file_exists("ready")
    return order


def go(workshop: Workshop) -> None:
    (workshop.folder / "go").touch()


def heard_end(workshop: Workshop, order):
    return workshop.hear(lambda answer: answer.ended and answer.ended.id == order.id).ended


class TestReports:
    def test_start_and_end_are_told(self, workshop):
        order = workshop.shell("exit 3")
        workshop.launch(order)
        started = workshop.hear(lambda answer: answer.started).started
        ended = workshop.hear(lambda answer: answer.ended).ended
        assert (started.id, ended.id, ended.exit_code) == (order.id, order.id, 3)
        assert ended == read_exit(order.folder, 0)

    def test_every_client_is_told(self, workshop):
        second = workshop.connect()
        order = workshop.order("/bin/true")
        workshop.run(order)
        assert heard_end(workshop, order).reason == "success"
        content = b""
        while b'"ended"' not in content:
            content += second.recv(1 << 16)

    def test_a_client_that_went_away_harms_nobody(self, workshop):
        order = ready(workshop)
        workshop.connection.close()
        workshop.connection = workshop.connect()
        go(workshop)
        assert workshop.end(order).exit_code == 6

    def test_nonsense_is_answered(self, workshop):
        workshop.connection.sendall(b"nonsense\n" + b'{"launch": 5}\n')
        assert "not understood" in workshop.hear(lambda answer: answer.error).error
        assert "launch" in workshop.hear(lambda answer: answer.error).error

    def test_a_folder_that_cannot_be_read_harms_no_other_copy(self, workshop):
        bad = workshop.order("/bin/true", folder=str(workshop.folder / ("x" * 300)))
        good = workshop.order("/bin/true")
        workshop.orders.remove(bad)
        workshop.launch(bad, good)
        end = heard_end(workshop, bad)
        assert (end.reason, end.message) == (
            "launch-failed",
            f"cannot read {bad.folder}: file name too long",
        )
        assert workshop.end(good).reason == "success"

    def test_asking_something_of_a_stranger_is_answered(self, workshop):
        workshop.say(Request(stop="nobody"))
        assert workshop.hear(lambda answer: answer.unknown).unknown.id == "nobody"

    def test_it_says_what_it_knows(self, workshop):
        order = ready(workshop)
        workshop.say(Request(known=(order.id, "nobody")))
        assert workshop.hear(lambda answer: answer.known is not None).known == {order.id: "running"}
        workshop.say(Request(status=True))
        status = workshop.hear(lambda answer: answer.status).status
        assert (status.pid, status.copies) == (workshop.process.pid, 1)

    def test_two_hundred_copies_at_once(self, workshop):
        orders = [workshop.order("/bin/true") for _ in range(200)]
        workshop.launch(*orders)
        ended = {workshop.hear(lambda answer: answer.ended).ended for _ in orders}
        assert {end.id for end in ended} == {order.id for order in orders}
        assert {end.reason for end in ended} == {"success"}

    def test_shims_are_used_again_but_never_with_other_rights(self, workshop):
        shims: dict[bool, set[Process]] = {True: set(), False: set()}
        for number in range(12):
            order = workshop.order("/bin/true", no_new_privileges=number % 2 == 0)
            workshop.launch(order)
            heard_end(workshop, order)
            shims[order.no_new_privileges].add(workshop.started(order).shim)
        assert len(shims[True] | shims[False]) < 12
        assert not shims[True] & shims[False]

    def test_copies_of_an_attempt_share_a_folder(self, workshop):
        folder = str(workshop.folder / "together")
        orders = [workshop.shell(f"echo {n}", folder=folder, copy=n) for n in range(4)]
        workshop.launch(*orders)
        assert [workshop.end(order).reason for order in orders] == ["success"] * 4
        assert [workshop.out(order) for order in orders] == ["0\n", "1\n", "2\n", "3\n"]


class TestOnce:
    def test_a_copy_that_runs_is_not_started_again(self, workshop):
        order = ready(workshop)
        workshop.launch(order, order)
        workshop.launch(order)
        workshop.hear(lambda answer: answer.started)
        go(workshop)
        assert workshop.end(order).exit_code == 6
        assert workshop.file("runs") == "run\n"

    def test_a_copy_that_ended_is_not_started_again(self, workshop):
        order = workshop.shell("echo run >> runs; exit 3")
        workshop.run(order)
        heard_end(workshop, order)
        workshop.launch(order)
        assert heard_end(workshop, order).exit_code == 3
        assert workshop.file("runs") == "run\n"

    def test_many_who_launch_the_same_start_it_once(self, workshop):
        order = workshop.shell("echo run >> runs; sleep 0.2")

        def launch(_):
            with workshop.connect() as connection:
                connection.sendall(line(Request(launch=(order,) * 3)))
                connection.recv(1)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(launch, range(8)))
        workshop.end(order)
        assert workshop.file("runs") == "run\n"

    def test_two_launchers_start_it_once(self, workshop, tmp_path):
        (tmp_path / "second").mkdir()
        other = Workshop(tmp_path / "second")
        other.start()
        try:
            orders = [workshop.shell(f"echo run >> runs{n}") for n in range(20)]
            workshop.launch(*orders)
            other.launch(*orders)
            for one in (workshop, other):
                ends = [one.hear(lambda answer: answer.ended).ended for _ in orders]
                assert {end.id for end in ends} == {order.id for order in orders}
                assert {end.reason for end in ends} == {"success"}
        finally:
            other.close()
        assert [workshop.file(f"runs{n}") for n in range(20)] == ["run\n"] * 20

    def test_a_copy_that_was_given_up_never_starts(self, workshop):
        order = workshop.shell("echo run >> runs")
        Path(order.folder).mkdir()
        assert records.void(order.folder, order.copy)
        workshop.launch(order)
        assert workshop.hear(lambda answer: answer.void).void.id == order.id
        assert not (workshop.folder / "runs").exists()

    def test_a_copy_that_started_cannot_be_given_up(self, workshop):
        order = ready(workshop)
        assert not records.void(order.folder, order.copy)

    def test_adopting_starts_nothing(self, workshop):
        order = workshop.shell("echo run >> runs")
        workshop.say(Request(adopt=(order,)))
        assert workshop.hear(lambda answer: answer.unknown).unknown.id == order.id
        assert read_copy(order.folder, 0).state == "unknown"

    def test_a_stop_before_the_start_keeps_it_from_starting(self, workshop):
        order = workshop.shell("echo run >> runs")
        os.kill(workshop.process.pid, signal.SIGSTOP)
        workshop.say(Request(launch=(order,)))
        workshop.say(Request(stop=order.id, why="cancelled"))
        os.kill(workshop.process.pid, signal.SIGCONT)
        end = workshop.end(order)
        assert (end.reason, end.signal, end.stopped, end.why) == ("signal", "TERM", True, "cancelled")


class TestDeathOfTheLauncher:
    def test_copies_go_on_and_their_end_is_recorded(self, workshop):
        order = ready(workshop, after=("/bin/sh", "-c", "echo after"))
        workshop.kill_launcher()
        assert read_copy(order.folder, 0).state == "running"
        go(workshop)
        end = workshop.end(order)
        assert (end.reason, end.exit_code, end.usage_lost) == ("exit", 6, False)
        assert end.user_seconds > 0
        assert workshop.out(order) == "after\n"

    def test_the_next_one_tells_the_end(self, workshop):
        order = ready(workshop)
        workshop.kill_launcher()
        workshop.start()
        workshop.launch(order)
        assert workshop.hear(lambda answer: answer.started).started.id == order.id
        go(workshop)
        assert heard_end(workshop, order).exit_code == 6
        assert workshop.file("runs") == "run\n"

    def test_the_next_one_tells_an_end_that_it_missed(self, workshop):
        order = ready(workshop)
        workshop.kill_launcher()
        go(workshop)
        workshop.end(order)
        workshop.start()
        workshop.launch(order)
        assert heard_end(workshop, order).exit_code == 6

    def test_the_next_one_can_stop_a_copy(self, workshop):
        order = ready(workshop, f"{DAEMON}; {UNTIL_GO}")
        daemon = workshop.file("daemon").strip()
        workshop.kill_launcher()
        workshop.start()
        workshop.say(Request(adopt=(order,)))
        workshop.stop(order)
        end = workshop.end(order)
        assert (end.signal, end.stopped) == ("TERM", True)
        assert not Path(f"/proc/{daemon}").exists()

    def test_the_next_one_can_freeze_and_thaw_a_copy(self, workshop):
        order = ready(workshop)
        process = workshop.running(order)
        workshop.say(Request(freeze=order.id))
        eventually(lambda: is_stopped(process), "standing still")
        workshop.kill_launcher()
        workshop.start()
        go(workshop)
        workshop.say(Request(adopt=(order,)))
        workshop.say(Request(thaw=order.id))
        assert workshop.end(order).exit_code == 6


class TestDeathOfAShim:
    def test_the_copy_goes_on_and_its_end_is_recorded(self, workshop):
        order = ready(workshop, after=("/bin/sh", "-c", "echo after"), result_file="runs")
        kill(workshop.shim(order))
        assert read_copy(order.folder, 0).state == "running"
        go(workshop)
        end = heard_end(workshop, order)
        assert (end.reason, end.exit_code, end.usage_lost) == ("exit", 6, False)
        assert end.user_seconds > 0
        assert end.max_rss > 0
        assert end.result == "run\n"
        assert workshop.out(order) == "after\n"

    def test_a_signal_is_recorded(self, workshop):
        order = ready(workshop, f"{UNTIL_GO}; kill -9 $$")
        kill(workshop.shim(order))
        go(workshop)
        assert workshop.end(order).signal == "KILL"

    def test_again_and_again(self, workshop):
        order = ready(workshop)
        for _ in range(3):
            kill(workshop.shim(order))
        go(workshop)
        assert workshop.end(order).exit_code == 6
        assert workshop.file("runs") == "run\n"

    def test_the_limit_still_holds(self, workshop):
        order = ready(workshop)
        kill(workshop.shim(order))
        workshop.say(Request(prolong=order.id, duration=0.01))
        assert workshop.end(order).reason == "timeout"

    def test_a_limit_of_the_order_still_holds(self, workshop):
        order = workshop.shell("sleep 1000", duration=1.0)
        workshop.launch(order)
        kill(workshop.shim(order))
        assert workshop.end(order).reason == "timeout"

    def test_a_stop_still_ends_the_whole_tree(self, workshop):
        order = ready(workshop, f"{DAEMON}; sleep 1000 & {UNTIL_GO}")
        daemon = workshop.file("daemon").strip()
        kill(workshop.shim(order))
        workshop.stop(order)
        end = workshop.end(order)
        assert (end.signal, end.stopped) == ("TERM", True)
        assert workshop.processes(order) == []
        assert not Path(f"/proc/{daemon}").exists()

    def test_a_thaw_that_comes_meanwhile_is_not_missed(self, workshop):
        order = ready(workshop)
        process, shim = workshop.running(order), workshop.shim(order)
        workshop.say(Request(freeze=order.id))
        eventually(lambda: is_stopped(process), "standing still")
        os.kill(workshop.process.pid, signal.SIGSTOP)
        kill(shim)
        workshop.say(Request(thaw=order.id))
        go(workshop)
        os.kill(workshop.process.pid, signal.SIGCONT)
        assert workshop.end(order).exit_code == 6

    def test_force_still_follows_the_grace(self, workshop):
        order = ready(workshop, f"trap '' TERM; {UNTIL_GO}")
        kill(workshop.shim(order))
        workshop.stop(order, grace=0.1)
        end = workshop.end(order)
        assert (end.signal, end.killed) == ("KILL", True)

    def test_what_daemonised_itself_dies_with_the_command(self, workshop):
        order = ready(workshop, f"{DAEMON}; {UNTIL_GO}")
        daemon = workshop.file("daemon").strip()
        kill(workshop.shim(order))
        go(workshop)
        assert workshop.end(order).reason == "success"
        assert not Path(f"/proc/{daemon}").exists()

    def test_a_stop_under_way_is_carried_on(self, workshop):
        order = ready(workshop, f"trap 'touch told' TERM; {UNTIL_GO}", grace=60.0)
        workshop.stop(order)
        workshop.file_exists("told")
        kill(workshop.shim(order))
        workshop.stop(order, grace=0.0)
        end = workshop.end(order)
        assert (end.stopped, end.killed) == (True, True)

    def test_a_last_hook_is_not_run_twice(self, workshop):
        order = workshop.shell("exit 4", after=("/bin/sh", "-c", "echo x >> hooks; touch at; sleep 1000"))
        workshop.launch(order)
        workshop.file_exists("at")
        kill(workshop.shim(order))
        end = workshop.end(order)
        assert (end.exit_code, end.after_lost, end.usage_lost) == (4, True, False)
        assert workshop.file("hooks") == "x\n"

    def test_while_steps_are_taken(self, workshop):
        order = workshop.shell(
            "exit 6", before=("/bin/sh", "-c", "touch ready; while [ ! -e go ]; do sleep 0.02; done")
        )
        workshop.launch(order)
        workshop.file_exists("ready")
        kill(workshop.shim(order))
        go(workshop)
        assert workshop.end(order).exit_code == 6

    def test_a_refusal_is_still_known(self, workshop):
        hook = "touch ready; while [ ! -e go ]; do sleep 0.02; done; exit 9"
        order = workshop.shell("exit 6", before=("/bin/sh", "-c", hook))
        workshop.launch(order)
        workshop.file_exists("ready")
        kill(workshop.shim(order))
        go(workshop)
        end = workshop.end(order)
        assert (end.reason, end.exit_code) == ("launch-failed", 9)

    @pytest.mark.slow
    def test_at_any_moment(self, workshop):
        """Shims are killed as fast as they are found; every copy runs once and ends as it should."""
        orders = [workshop.shell(f"echo run >> runs{n}; exit {n}") for n in range(40)]
        workshop.launch(*orders)
        killed: set[int] = set()
        while len(killed) < 40 and sum(read_exit(order.folder, 0) is None for order in orders) > 5:
            for pid in children_of(workshop.process.pid):
                kill_shim(pid, orders)
                killed.add(pid)
        ends = [workshop.end(order) for order in orders]
        assert [end.exit_code for end in ends] == [n % 256 for n in range(40)]
        assert [workshop.file(f"runs{n}") for n in range(40)] == ["run\n"] * 40


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_shim(pid: int, orders) -> None:
    """Kill a child of the launcher, unless it is a copy that lost its shim."""
    found = facts(pid)
    if found is None or found.is_dead:
        return
    shim = Process(pid, found.ticks)
    send(shim, signal.SIGSTOP)  # so that it does not become a copy meanwhile
    eventually(lambda: is_stopped(shim) or not process_alive(*shim), "standing still")
    starts = [records.read_start(order.folder, order.copy) for order in orders]
    is_copy = shim.pid in [start.started.pid for start in starts if start]
    send(shim, signal.SIGCONT if is_copy else signal.SIGKILL)


class TestDeathOfBoth:
    def test_a_copy_that_still_runs_is_taken_over(self, workshop):
        order = ready(workshop)
        shim = workshop.shim(order)
        workshop.kill_launcher()
        kill(shim)
        assert read_copy(order.folder, 0).state == "running"
        workshop.start()
        workshop.launch(order)
        eventually(lambda: read_copy(order.folder, 0).keeper, "a new shim")
        go(workshop)
        end = workshop.end(order)
        # Newer kernels tell how a stranger ended; nobody tells what it used.
        assert (end.reason, end.exit_code) in (("exit", 6), ("lost", None))
        assert end.usage_lost
        assert workshop.file("runs") == "run\n"

    def test_a_copy_that_is_gone_is_lost(self, workshop):
        order = ready(workshop)
        shim, process = workshop.shim(order), workshop.running(order)
        workshop.kill_launcher()
        kill(shim)
        kill(process)
        eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "the funeral")
        assert read_copy(order.folder, 0).state == "gone"
        workshop.start()
        workshop.launch(order)
        end = heard_end(workshop, order)
        assert (end.reason, end.exit_code, end.usage_lost) == ("lost", None, True)
        assert "nobody saw its end" in end.message

    def test_it_can_still_be_stopped(self, workshop):
        order = ready(workshop, f"{DAEMON}; {UNTIL_GO}")
        daemon = workshop.file("daemon").strip()
        shim = workshop.shim(order)
        workshop.kill_launcher()
        kill(shim)
        workshop.start()
        workshop.launch(order)
        workshop.stop(order)
        assert workshop.end(order).stopped
        assert not Path(f"/proc/{daemon}").exists()

    def test_after_a_restart_of_the_machine_it_is_lost(self, workshop):
        order = workshop.shell("exit 0")
        Path(order.folder).mkdir()
        started = records.Started(id=order.id, pid=os.getpid(), ticks=1, boot="another", at=1.0)
        assert records.start(order.folder, started) is not None
        workshop.launch(order)
        end = heard_end(workshop, order)
        assert (end.reason, end.message) == ("lost", "the machine was restarted while it ran")


class TestService:
    def test_the_socket_is_private(self, workshop):
        assert workshop.socket.stat().st_mode & 0o777 == 0o600

    def test_a_second_launcher_gives_way(self, workshop):
        command = f"{sys.executable} -m {MODULE} --socket {workshop.socket}"
        assert os.waitstatus_to_exitcode(os.system(command)) == EARLIER
        assert workshop.run(workshop.order("/bin/true")).reason == "success"

    def test_it_ends_when_nobody_needs_it(self, tmp_path):
        lonely = Workshop(tmp_path)
        lonely.start("--linger", "0.1")
        order = ready(lonely)
        lonely.connection.close()
        lonely.connection = None
        assert lonely.process.poll() is None
        go(lonely)
        assert lonely.process.wait() == 0
        assert lonely.end(order).exit_code == 6
        assert not lonely.socket.exists()

    def test_it_can_be_shut_when_it_has_no_copies(self, workshop):
        order = ready(workshop)
        workshop.say(Request(shut=True))
        assert workshop.hear(lambda answer: answer.shut is not None).shut is False
        go(workshop)
        heard_end(workshop, order)
        workshop.say(Request(shut=True))
        assert workshop.hear(lambda answer: answer.shut is not None).shut is True
        assert workshop.process.wait() == 0

    def test_a_socket_may_have_a_long_path(self, tmp_path):
        folder = tmp_path / ("long" * 20) / ("longer" * 20)
        folder.mkdir(parents=True)
        far = Workshop(folder)
        try:
            far.start()
            assert far.run(far.order("/bin/true")).reason == "success"
        finally:
            far.close()

    def test_copies_do_not_hold_the_socket(self, workshop):
        ready(workshop)
        workshop.kill_launcher()
        late = socket.socket(socket.AF_UNIX)
        with address(workshop.socket) as place, pytest.raises(ConnectionRefusedError):
            late.connect(place)


class TestStates:
    def test_before_during_and_after(self, workshop):
        order = workshop.shell(UNTIL_GO)
        assert read_copy(order.folder, 0).state == "unknown"
        workshop.launch(order)
        workshop.file_exists("ready")
        assert read_copy(order.folder, 0).state == "running"
        assert process_alive(*workshop.started(order).process)
        go(workshop)
        workshop.end(order)
        assert read_copy(order.folder, 0).state == "ended"

    def test_a_damaged_start_is_a_start(self, tmp_path):
        Path(path_of(str(tmp_path), 0, "started")).touch()
        assert read_copy(str(tmp_path), 0).state == "gone"
        assert not records.void(str(tmp_path), 0)

    def test_a_damaged_end_is_lost(self, tmp_path):
        Path(path_of(str(tmp_path), 0, "exit")).write_text('{"id": ')
        assert read_copy(str(tmp_path), 0).state == "ended"
        end = read_exit(str(tmp_path), 0)
        assert end is not None
        assert (end.reason, end.message) == ("lost", "the record of its end is damaged")

    def test_the_first_end_stands(self, tmp_path):
        first = records.Exit(id="x", copy=0, reason="success", exit_code=0, ended_at=1.0)
        assert records.write_exit(str(tmp_path), first)
        assert not records.write_exit(str(tmp_path), msgspec.structs.replace(first, exit_code=1))
        assert read_exit(str(tmp_path), 0) == first

    def test_a_turn_is_taken_once(self, tmp_path):
        assert records.claim(str(tmp_path), 0, "after")
        assert not records.claim(str(tmp_path), 0, "after")
