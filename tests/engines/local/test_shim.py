"""A copy finds what its order says, and its end is recorded as it was."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.engines.local.orders import Write
from jobman.engines.local.records import path_of
from jobman.engines.local.trees import MARKER, process_alive
from jobman.engines.local.wire import Request
from tests.engines.local.workshop import PATH, Workshop, eventually, is_stopped

pytestmark = pytest.mark.slow

SEEN = (sys.executable, "-S", "-E", "-c", "import sys, json; print(json.dumps(sys.argv[1:]))")
DAEMON = "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)"


@pytest.mark.parametrize(
    "argument",
    ["two words", 'it\'s "quoted"', "line\nbreak", "", "häß–✓", "$HOME `id` *", "-n", "\t", "\\", "a=b"],
)
def test_arguments_arrive_as_they_were_written(workshop, argument):
    order = workshop.order(*SEEN, argument, "last")
    assert workshop.run(order).reason == "success"
    assert json.loads(workshop.out(order)) == [argument, "last"]


def test_the_environment_is_that_of_the_order_and_the_marker(workshop):
    order = workshop.order("/usr/bin/env", "-0", environment={"A": "two words", "B": "", "Ü": "line\nbreak"})
    workshop.run(order)
    assert sorted(filter(None, workshop.out(order).split("\0"))) == sorted(
        ["A=two words", "B=", "Ü=line\nbreak", f"{MARKER}={order.id}"]
    )


def test_a_copy_runs_in_its_folder_with_nothing_to_read(workshop):
    (workshop.folder / "here").mkdir()
    order = workshop.shell("pwd; wc -c; echo trouble >&2", cwd=str(workshop.folder / "here"))
    workshop.run(order)
    assert workshop.out(order).split() == [str(workshop.folder / "here"), "0"]
    assert workshop.err(order) == "trouble\n"


def test_a_copy_holds_no_file_but_its_streams(workshop):
    order = workshop.order("/bin/ls", "/proc/self/fd")
    workshop.run(order)
    assert workshop.out(order).split() == ["0", "1", "2", "3"]  # the last is the folder that is listed


def test_a_copy_ignores_and_blocks_no_signal(workshop):
    order = workshop.shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")
    workshop.run(order)
    # What the C library keeps for itself (32 and 33) is inherited: no program can set it.
    settable = sum(1 << number - 1 for number in signal.valid_signals())
    masks = [int(line.split()[1], 16) & settable for line in workshop.out(order).splitlines()]
    assert masks == [0, 0]


def test_output_goes_to_the_files_the_order_names(workshop):
    order = workshop.shell("echo one; echo two >&2", stdout="logs/both.txt", stderr="logs/both.txt")
    assert workshop.run(order).reason == "success"
    assert workshop.file("logs/both.txt") == "one\ntwo\n"


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_exit_codes_are_recorded(workshop, code):
    end = workshop.run(workshop.shell(f"exit {code}"))
    assert (end.reason, end.exit_code) == ("exit" if code else "success", code)
    assert end.signal is None


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "USR1", "PIPE"])
def test_signals_are_recorded(workshop, name):
    end = workshop.run(workshop.shell(f"ulimit -c 0; kill -{name} $$"))
    assert (end.reason, end.signal, end.exit_code) == ("signal", name, None)


def test_what_a_copy_used_is_recorded(workshop):
    eat = "x = bytearray(80 << 20)\nfor _ in range(2000000): pass"
    end = workshop.run(workshop.order(sys.executable, "-S", "-E", "-c", eat))
    assert end.user_seconds > 0.01
    assert 80 << 20 < end.max_rss < 200 << 20
    assert end.started_at is not None
    assert end.started_at <= end.ended_at


def test_what_its_orphans_used_counts_too(workshop):
    busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; touch done"
    end = workshop.run(workshop.shell(f"(({busy}) &) ; while [ ! -e done ]; do sleep 0.01; done"))
    assert end.user_seconds > 0.01


class TestWhatCannotBeRun:
    def test_a_command_that_is_not_in_path(self, workshop):
        end = workshop.run(workshop.order("no-such-command"))
        assert (end.reason, end.exit_code) == ("launch-failed", 127)
        assert end.message == f"the command `no-such-command` was not found in PATH ({PATH})"

    def test_a_command_that_does_not_exist(self, workshop):
        end = workshop.run(workshop.order("./missing"))
        assert (end.reason, end.exit_code) == ("launch-failed", 127)
        assert end.message == f"the command `./missing` does not exist in {workshop.folder}"

    @pytest.mark.parametrize(
        ("content", "mode", "words"),
        [
            ("#!/bin/sh\n", 0o644, "chmod +x"),
            ("echo hello\n", 0o755, "#!/bin/sh"),
            ("#!/no/such/shell\n", 0o755, "interpreter"),
        ],
    )
    def test_a_file_that_is_no_program(self, workshop, content, mode, words):
        path = workshop.folder / "program"
        path.write_text(content)
        path.chmod(mode)
        end = workshop.run(workshop.order(str(path)))
        assert (end.reason, end.exit_code) == ("launch-failed", 126)
        assert words in end.message

    def test_a_folder(self, workshop):
        end = workshop.run(workshop.order("/usr"))
        assert (end.reason, end.message) == ("launch-failed", "the command `/usr` is a folder")

    def test_an_empty_command(self, workshop):
        end = workshop.run(workshop.order(""))
        assert (end.reason, end.message) == ("launch-failed", "the command is an empty text")

    def test_too_many_arguments(self, workshop):
        end = workshop.run(workshop.order("/bin/true", "x" * 3_000_000))
        assert (end.reason, end.exit_code) == ("launch-failed", 126)
        assert "more arguments" in end.message

    def test_a_folder_to_run_in_that_is_missing(self, workshop):
        end = workshop.run(workshop.order("/bin/true", cwd="/no/such/folder"))
        assert end.reason == "launch-failed"
        assert end.message == (
            "the folder to run in, /no/such/folder, cannot be entered: no such file or directory"
        )

    def test_output_to_a_place_where_nothing_can_be_written(self, workshop):
        end = workshop.run(workshop.order("/bin/true", stdout="/proc/nowhere/out"))
        assert end.reason == "launch-failed"
        assert "/proc/nowhere/out" in end.message

    def test_a_folder_of_records_where_nothing_can_be_written(self, workshop):
        workshop.launch(workshop.order("/bin/true", folder="/proc/nowhere"))
        end = workshop.hear(lambda answer: answer.ended).ended
        assert end.reason == "launch-failed"
        assert end.message.startswith("cannot write to /proc/nowhere: ")


class TestHooks:
    def test_before_comes_before_and_after_comes_after(self, workshop):
        order = workshop.shell(
            "echo command", before=("/bin/echo", "before"), after=("/bin/sh", "-c", "echo after; pwd")
        )
        assert workshop.run(order).reason == "success"
        assert workshop.out(order).split() == ["before", "command", "after", str(workshop.folder)]

    def test_a_before_that_fails_keeps_the_command_from_running(self, workshop):
        order = workshop.shell("echo command", before=("/bin/sh", "-c", "exit 9"))
        end = workshop.run(order)
        assert (end.reason, end.exit_code) == ("launch-failed", 9)
        assert end.message == "the `before` hook (/bin/sh) ended with exit code 9"
        assert workshop.out(order) == ""

    def test_a_before_that_does_not_exist(self, workshop):
        order = workshop.shell("echo command", before=("./nowhere",))
        end = workshop.run(order)
        assert (end.reason, end.exit_code) == ("launch-failed", 127)
        assert "does not exist" in workshop.err(order)

    def test_after_runs_whatever_the_outcome(self, workshop):
        order = workshop.shell("exit 4", after=("/bin/sh", "-c", "echo after; exit 5"))
        end = workshop.run(order)
        assert (end.reason, end.exit_code) == ("exit", 4)
        assert workshop.out(order) == "after\n"

    def test_an_after_that_fails_fails_a_copy_that_succeeded(self, workshop):
        end = workshop.run(workshop.shell("true", after=("/bin/sh", "-c", "exit 5")))
        assert (end.reason, end.exit_code) == ("exit", 5)
        assert end.message == "the command succeeded, the `after` hook ended with exit code 5"

    def test_after_runs_also_when_the_command_was_not_found(self, workshop):
        order = workshop.order("nowhere", after=("/bin/echo", "after"))
        assert workshop.run(order).reason == "launch-failed"
        assert workshop.out(order) == "after\n"

    def test_on_stop_runs_before_the_copy_is_told(self, workshop):
        order = workshop.shell(
            "trap 'echo told; exit 0' TERM; touch ready; while :; do sleep 0.02; done",
            on_stop=("/bin/sh", "-c", "echo hook"),
        )
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order)
        end = workshop.end(order)
        assert (end.reason, end.stopped, end.killed) == ("success", True, False)
        assert workshop.out(order) == "hook\ntold\n"

    def test_an_on_stop_that_hangs_is_ended_with_the_grace(self, workshop):
        order = workshop.shell("sleep 1000", on_stop=("/bin/sleep", "1000"))
        workshop.launch(order)
        workshop.running(order)
        workshop.stop(order, grace=0.3)
        end = workshop.end(order)
        assert end.stopped
        assert workshop.processes(order) == []

    def test_without_a_command_the_hooks_are_all(self, workshop):
        order = workshop.order(before=("/bin/echo", "before"), after=("/bin/echo", "after"))
        assert workshop.run(order).reason == "success"
        assert workshop.out(order) == "before\nafter\n"

    def test_an_after_is_ended_when_the_copy_is_stopped(self, workshop):
        order = workshop.shell("true", after=("/bin/sh", "-c", "touch waiting; sleep 1000"), grace=0.2)
        workshop.launch(order)
        workshop.file_exists("waiting")
        workshop.stop(order)
        assert workshop.end(order).stopped
        assert workshop.processes(order) == []


class TestStop:
    def test_a_copy_that_listens_ends_in_peace(self, workshop):
        order = workshop.shell("trap 'exit 7' TERM; touch ready; while :; do sleep 0.02; done")
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order, why="cancelled")
        end = workshop.end(order)
        assert (end.reason, end.exit_code, end.stopped) == ("exit", 7, True)
        assert (end.why, end.killed) == ("cancelled", False)

    def test_a_copy_that_does_not_listen_is_killed_after_the_grace(self, workshop):
        order = workshop.shell("trap '' TERM; touch ready; while :; do sleep 0.02; done")
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order, grace=0.2)
        end = workshop.end(order)
        assert (end.reason, end.signal, end.stopped, end.killed) == ("signal", "KILL", True, True)

    def test_a_second_request_may_shorten_the_grace(self, workshop):
        order = workshop.shell("trap '' TERM; touch ready; while :; do sleep 0.02; done", grace=1000.0)
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order)
        workshop.stop(order, grace=0.1)
        assert workshop.end(order).killed

    def test_what_daemonised_itself_dies_with_a_stop(self, workshop):
        order = workshop.shell(f"{DAEMON}; sleep 1000")
        workshop.launch(order)
        daemon = int(workshop.file("daemon"))
        workshop.stop(order)
        assert workshop.end(order).stopped
        assert not Path(f"/proc/{daemon}").exists()

    def test_what_daemonised_itself_dies_with_the_command(self, workshop):
        order = workshop.shell(f"{DAEMON}; while [ ! -s daemon ]; do sleep 0.01; done; exit 5")
        end = workshop.run(order)
        assert (end.reason, end.exit_code) == ("exit", 5)
        assert not Path(f"/proc/{workshop.file('daemon').strip()}").exists()

    def test_what_runs_in_the_background_dies_with_the_command(self, workshop):
        order = workshop.shell("sleep 1000 & sleep 1000 & exit 0")
        assert workshop.run(order).reason == "success"
        assert workshop.processes(order) == []

    def test_a_child_may_save_its_work_though_its_shell_is_gone(self, workshop):
        save = "trap 'sleep 0.2; echo saved; exit 0' TERM; touch ready; while :; do sleep 0.02; done"
        order = workshop.order("/bin/sh", "-c", 'sh -c "$0" & wait', save)
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order)
        assert workshop.end(order).signal == "TERM"
        assert workshop.out(order) == "saved\n"

    def test_processes_that_multiply_are_all_killed(self, workshop):
        multiply = "trap '' TERM; touch ready; while :; do (trap '' TERM; sleep 1000) & sleep 0.01; done"
        order = workshop.shell(multiply)
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order, grace=0.3)
        assert workshop.end(order).killed
        assert workshop.processes(order) == []

    def test_a_copy_can_be_stopped_while_its_steps_are_taken(self, workshop):
        order = workshop.shell("echo command", before=("/bin/sh", "-c", "touch ready; sleep 1000"))
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.stop(order)
        end = workshop.end(order)
        assert (end.signal, end.stopped) == ("TERM", True)
        assert workshop.out(order) == ""


def past_its_limit(workshop, order):
    """How a copy ends that is ready when its limit comes."""
    workshop.launch(order)
    workshop.file_exists("ready")
    workshop.say(Request(prolong=order.id, duration=0.01))
    return workshop.end(order)


class TestTime:
    def test_a_copy_past_its_limit_is_stopped(self, workshop):
        end = workshop.run(workshop.shell("sleep 1000", duration=0.2))
        assert (end.reason, end.signal, end.stopped) == ("timeout", "TERM", False)
        assert end.message == "ran past its limit of 0.2 s"

    def test_a_copy_that_ends_well_after_its_limit_has_still_timed_out(self, workshop):
        order = workshop.shell("trap 'exit 0' TERM; touch ready; while :; do sleep 0.02; done")
        end = past_its_limit(workshop, order)
        assert (end.reason, end.exit_code) == ("timeout", 0)

    def test_a_copy_that_ignores_the_limit_is_killed_after_the_grace(self, workshop):
        order = workshop.shell("trap '' TERM; touch ready; while :; do sleep 0.02; done", grace=0.1)
        end = past_its_limit(workshop, order)
        assert (end.reason, end.signal, end.killed) == ("timeout", "KILL", True)

    @pytest.mark.parametrize("name", ["USR2", "SIGUSR2"])
    def test_a_warning_comes_before_the_limit(self, workshop, name):
        order = workshop.shell(
            "trap 'echo warned; exit 3' USR2; touch ready; while :; do sleep 0.02; done",
            duration=10_000.0,
            signal=name,
            signal_before=1000.0,
        )
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.say(Request(prolong=order.id, duration=999.0))
        end = workshop.end(order)
        assert (end.reason, end.exit_code) == ("exit", 3)
        assert workshop.out(order) == "warned\n"

    def test_a_limit_can_be_moved_out(self, workshop):
        order = workshop.shell("sleep 1; exit 4", duration=0.8)
        workshop.launch(order)
        workshop.say(Request(prolong=order.id, duration=1000.0))
        assert workshop.end(order).exit_code == 4

    def test_the_limit_holds_without_the_launcher(self, workshop):
        order = workshop.shell("sleep 1000", duration=1.0)
        workshop.launch(order)
        workshop.running(order)
        workshop.kill_launcher()
        assert workshop.end(order).reason == "timeout"


class TestFreezing:
    def test_a_frozen_copy_stands_still_and_goes_on(self, workshop):
        order = workshop.shell("sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'; exit 6")
        workshop.launch(order)
        workshop.file_exists("ready")
        everyone = workshop.processes(order)
        workshop.say(Request(freeze=order.id))
        eventually(lambda: all(is_stopped(each) for each in workshop.processes(order)), "standing still")
        assert len(everyone) >= 2
        (workshop.folder / "go").touch()
        workshop.say(Request(thaw=order.id))
        assert workshop.end(order).exit_code == 6

    @pytest.mark.slow
    def test_the_limit_stands_still_with_the_copy(self, workshop):
        order = workshop.shell("touch ready; while [ ! -e go ]; do sleep 0.02; done")
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.say(Request(freeze=order.id))
        process = workshop.running(order)
        eventually(lambda: is_stopped(process), "standing still")
        so_far = time.monotonic() - workshop.started(order).clock
        workshop.say(Request(prolong=order.id, duration=so_far + 2.0))
        assert workshop.run(workshop.shell("sleep 2.2")).reason == "success"
        assert process_alive(*process)
        (workshop.folder / "go").touch()
        workshop.say(Request(thaw=order.id))
        assert workshop.end(order).reason == "success"

    def test_a_frozen_copy_can_be_stopped(self, workshop):
        order = workshop.shell("trap 'exit 7' TERM; touch ready; while :; do sleep 0.02; done")
        workshop.launch(order)
        workshop.file_exists("ready")
        workshop.say(Request(freeze=order.id))
        process = workshop.running(order)
        eventually(lambda: is_stopped(process), "standing still")
        workshop.stop(order)
        assert workshop.end(order).exit_code == 7


class TestResultFile:
    def test_its_end_is_kept(self, workshop):
        order = workshop.shell("echo 'loss 0.1 ✓' > result.txt", result_file="result.txt")
        assert workshop.run(order).result == "loss 0.1 ✓\n"

    def test_only_four_kibibytes_of_it(self, workshop):
        order = workshop.shell("head -c 5000 /dev/zero | tr '\\0' x > r; printf END >> r", result_file="r")
        assert workshop.run(order).result == "x" * 4093 + "END"

    def test_what_is_no_text_is_replaced(self, workshop):
        order = workshop.shell("printf 'a\\377b' > result", result_file="result")
        assert workshop.run(order).result == "a�b"

    def test_a_copy_without_one_has_none(self, workshop):
        assert workshop.run(workshop.shell("true", result_file="missing")).result is None

    def test_a_pipe_is_no_result(self, workshop):
        assert workshop.run(workshop.shell("mkfifo result", result_file="result")).result is None


class TestScratch:
    def test_it_is_private_and_gone_in_the_end(self, workshop):
        scratch = workshop.folder / "deep" / "scratch"
        order = workshop.shell(
            f"stat -c %a {scratch}; mkdir {scratch}/x; touch {scratch}/x/y", scratch=str(scratch)
        )
        assert workshop.run(order).reason == "success"
        assert workshop.out(order) == "700\n"
        assert not scratch.exists()

    def test_it_is_gone_after_a_kill(self, workshop):
        scratch = workshop.folder / "scratch"
        order = workshop.shell("sleep 1000", scratch=str(scratch), steps=(Write("scratch/file", "x"),))
        workshop.launch(order)
        workshop.running(order)
        assert (scratch / "file").exists()
        os.kill(workshop.started(order).pid, signal.SIGKILL)
        assert workshop.end(order).signal == "KILL"
        assert not scratch.exists()

    def test_a_link_to_elsewhere_is_not_followed(self, workshop):
        elsewhere = workshop.folder / "elsewhere"
        elsewhere.mkdir(mode=0o755)
        (workshop.folder / "scratch").symlink_to(elsewhere)
        end = workshop.run(workshop.shell("true", scratch=str(workshop.folder / "scratch")))
        assert end.reason == "launch-failed"
        assert elsewhere.exists()


@pytest.fixture
def disk(workshop: Workshop) -> Iterator[Path]:
    """A small disk, and with `fill` a full one."""
    folder = workshop.folder / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k none {folder}") != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    os.system(f"umount -l {folder}")


def fill(disk: Path) -> None:
    os.system(f"dd if=/dev/zero of={disk}/filler bs=4k status=none 2>/dev/null")


class TestFullDisk:
    def test_it_is_named_where_output_should_go(self, workshop, disk):
        fill(disk)
        end = workshop.run(workshop.order("/bin/true", stdout=str(disk / "out")))
        assert end.reason == "launch-failed"
        assert end.message == f"cannot write output to {disk}/out: no space left on device"

    def test_it_is_told_where_the_records_should_go(self, workshop, disk):
        fill(disk)
        workshop.launch(workshop.order("/bin/true", folder=str(disk)))
        end = workshop.hear(lambda answer: answer.ended).ended
        assert (end.reason, end.message) == (
            "launch-failed",
            f"cannot write to {disk}: no space left on device",
        )

    def test_an_end_is_told_and_recorded_as_soon_as_there_is_room_for_it(self, workshop, disk):
        order = workshop.shell("while [ ! -e go ]; do sleep 0.02; done; exit 5", folder=str(disk))
        workshop.launch(order)
        workshop.running(order)
        fill(disk)
        (workshop.folder / "go").touch()
        assert workshop.hear(lambda answer: answer.ended).ended.exit_code == 5
        assert not Path(path_of(order.folder, 0, "exit")).exists()
        (disk / "filler").unlink()
        assert workshop.end(order).exit_code == 5

    def test_a_copy_can_be_stopped(self, workshop, disk):
        order = workshop.shell("sleep 1000", folder=str(disk))
        workshop.launch(order)
        workshop.running(order)
        fill(disk)
        workshop.stop(order)
        end = workshop.hear(lambda answer: answer.ended).ended
        assert (end.signal, end.stopped) == ("TERM", True)
