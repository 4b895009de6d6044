"""The shell around a command: as little as needed, and the command ends as it would without."""

import os
import re
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes.failures import Forgiven
from jobman.engines.kubernetes.shell import Around, command, verbatim


def expanded(text):
    """What a cluster makes of a text: `$(NAME)` is put in, `$$` is a dollar sign."""
    found, position = "", 0
    while position < len(text):
        rest = text[position:]
        if rest.startswith("$$"):
            found, position = found + "$", position + 2
        elif match := re.match(r"\$\(([^)]*)\)", rest):
            found, position = found + f"<{match[1]}>", position + len(match[0])
        else:
            found, position = found + rest[0], position + 1
    return found


def run(argv, **wanted):
    words = [expanded(word) for word in command(argv, Around(**wanted))]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "N": "4"})


@given(st.text(alphabet="$()ab {}", max_size=20))
def test_a_cluster_hands_on_what_was_written(text):
    assert expanded(verbatim(text)) == text


def test_a_command_that_needs_nothing_is_left_alone():
    assert command(["echo", "$HOME"], Around()) == ["echo", "$HOME"]


def test_sums_and_the_mask_are_set_before_the_command():
    done = run(["sh", "-c", "echo $RANK; umask"], calculated={"RANK": "3 + N"}, umask="0o027")
    assert done.stdout.split() == ["7", "0027"]


@pytest.mark.parametrize("after", [(), ("true",)])
@pytest.mark.parametrize("script", ["exit 0", "exit 7", "kill -9 $$", "kill -TERM $$"])
def test_a_command_ends_as_it_would_without(script, after):
    # A shell that has given way is killed like the command itself, which a cluster sees as 128 and more.
    code = run(["sh", "-c", script], umask="022", after=after).returncode
    alone = subprocess.run(["sh", "-c", script], check=False).returncode
    assert (code if code >= 0 else 128 - code) == (alone if alone >= 0 else 128 - alone)


def test_hooks_run_before_and_after_whatever_the_outcome():
    done = run(
        ["sh", "-c", "echo on; exit 3"], before=("echo", "a  b"), after=("sh", "-c", "echo off; exit 9")
    )
    assert (done.stdout.splitlines(), done.returncode) == (["a  b", "on", "off"], 3)


def test_a_hook_that_fails_before_the_command_fails_the_copy():
    done = run(["echo", "never"], before=("sh", "-c", "exit 5"))
    assert (done.stdout, done.returncode) == ("", 5)


def test_output_is_added_to_files(tmp_path):
    out = tmp_path / "it's out"
    out.write_text("before\n")
    run(["sh", "-c", "echo said; echo wrong >&2"], stdout=str(out), stderr=str(tmp_path / "err"))
    assert out.read_text() == "before\nsaid\n"
    assert (tmp_path / "err").read_text() == "wrong\n"


def test_what_goes_to_files_is_seen_too_and_the_command_ends_as_it_would(tmp_path):
    script = ["sh", "-c", "echo said; echo wrong >&2; exit 7"]
    done = run(script, stdout=str(tmp_path / "out"), stderr=str(tmp_path / "err"))
    assert (done.stdout, done.stderr, done.returncode) == ("said\n", "wrong\n", 7)


def test_both_streams_in_one_file_stay_in_order(tmp_path):
    both = tmp_path / "both"
    run(["sh", "-c", "echo one; echo two >&2; echo three"], stdout=str(both), stderr=str(both))
    assert both.read_text().split() == ["one", "two", "three"]


def test_who_is_left_behind_with_the_output_open_is_not_waited_for(tmp_path):
    done = run(["sh", "-c", "sleep 600 2>/dev/null & echo gone"], stdout=str(tmp_path / "out"))
    assert (done.stdout, done.returncode) == ("gone\n", 0)


def test_all_output_of_a_copy_can_be_kept_in_a_file_of_its_own(tmp_path):
    words = command(
        ["sh", "-c", "echo said; echo wrong >&2; exit 3"], Around(kept=str(tmp_path / "id" / "a"))
    )
    place = {"JOBMAN_REPLICA": "4", "JOBMAN_RANK": "1", "JOBMAN_ATTEMPT": "2"}
    given_to = {**os.environ, **place}
    done = subprocess.run([expanded(word) for word in words], env=given_to, check=False, capture_output=True)
    assert done.returncode == 3
    assert (tmp_path / "id" / "a.4-1-2.log").read_text() == "said\nwrong\n"


@pytest.mark.parametrize(("code", "ends"), [(2, 2), (3, 0), (5, 0), (6, 6), (9, 0), (0, 0)])
def test_codes_that_are_forgiven_become_success(code, ends):
    forgiven = (Forgiven(((3, 5), (9, 9))),)
    assert run(["sh", "-c", f"exit {code}"], forgiven=forgiven).returncode == ends


@pytest.mark.parametrize(("replica", "ends"), [(0, 4), (1, 0), (2, 4)])
def test_codes_may_be_forgiven_for_some_replicas(replica, ends):
    words = command(["sh", "-c", "exit 4"], Around(forgiven=(Forgiven(((4, 4),), ((1, 1),)),)))
    given_to = {**os.environ, "JOBMAN_REPLICA": str(replica)}
    assert subprocess.run([expanded(word) for word in words], env=given_to, check=False).returncode == ends


def test_the_request_to_stop_is_passed_on_and_waited_for():
    words = command(
        ["sh", "-c", 'trap "sleep 0.2; echo saved; exit 6" TERM; echo up; while :; do sleep 0.05; done'],
        Around(after=("echo", "after")),
    )
    with subprocess.Popen([expanded(word) for word in words], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "up\n"
        started.send_signal(signal.SIGTERM)
        assert started.stdout.read().split() == ["saved", "after"]
    assert started.returncode == 6


def test_a_warning_comes_before_the_limit():
    script = 'trap "exit 8" USR1; while :; do sleep 0.05; done'
    assert run(["sh", "-c", script], signal="USR1", signal_after=0.5).returncode == 8


@pytest.mark.parametrize("after", [(), ("echo", "after")])
def test_who_is_asked_to_stop_before_the_command_never_starts_it(after):
    hook = ("sh", "-c", "echo first; kill -TERM $PPID")
    done = run(["echo", "never"], before=hook, after=after)
    assert (done.stdout, done.returncode) == ("first\n", 143)


def test_a_request_that_comes_before_the_command_has_a_number_is_not_lost():
    words = [expanded(word) for word in command(["sleep", "600"], Around(after=("echo", "after")))]
    words[2] = words[2].replace("child=$!", "kill -TERM $$\nchild=$!")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
    assert (done.stdout, done.returncode) == ("after\n", 143)


@pytest.mark.parametrize("after", [(), ("true",)])
def test_a_command_that_is_not_there_could_not_be_started(after):
    assert run(["./not-there"], umask="022", after=after).returncode == 128
