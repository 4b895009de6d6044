"""Images on a real Slurm: what a command finds inside, and that nothing is left of its container."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.handle import JobHandle
from tests.conformance.site import TEXT
from tests.engines.slurm.ground import Ground, eventually, on_a_real_slurm

pytestmark = [*on_a_real_slurm, pytest.mark.component("podman")]
WORDS = '[podman, run, --rm, --name, "{name}", "{environment}", -v, "{cwd}:/here", -w, /here, "{image}"]'


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground("", Path(os.environ["JOBMAN_LAB_SLURM_CONF"]), tmp_path)
    yield made
    made.end()
    left = [name for job in made.jobs for name in containers_of(job)]
    assert left == []


def containers_of(job: JobHandle) -> list[str]:
    words = ["podman", "ps", "--all", f"--filter=name=jobman-{job.id}", "--format={{.Names}}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def states_of(job: JobHandle) -> list[str]:
    words = ["podman", "inspect", "--format={{.State.Status}}", *containers_of(job)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def submit(ground: Ground, task: str, container: str = "podman", **options: str) -> JobHandle:
    """One task in the lab's image."""
    document = f'- {{name: work, image: "{os.environ["JOBMAN_LAB_IMAGE"]}", {task}}}'
    return ground.submit(document, settings=f"{TEXT}slurm: {{container: {container}}}\n", **options)


def test_what_the_document_says_of_the_environment_holds_inside_and_not_for_the_program(
    ground: Ground,
) -> None:
    ground.environment["OF_THE_MACHINE"] = "yes"
    job = submit(
        ground,
        'attributes: {environment: {PATH: "/bin:/own", HOME: /own, TEXT: "a\\n$b \'c\' \\"d\\" ä"}}, '
        'command: [sh, -c, \'echo "$PATH $HOME"; echo "$TEXT"; echo "$OF_THE_MACHINE$JOBMAN_TASK"\']',
    )
    outcome = job.wait()
    assert outcome.lines() == ["/bin:/own /own", "a", "$b 'c' \"d\" ä", "work"]


def test_secrets_are_found_inside_as_variables_and_as_files(ground: Ground) -> None:
    for name in ("door", "gate"):
        kept = ground.folder / ".jobman" / "secrets" / name
        kept.mkdir(mode=0o700, parents=True)
        (kept / "key").write_text(f"{name}-key\n")
    ground.environment["HOME"] = str(ground.folder)
    job = submit(
        ground,
        "secrets: [{name: door, key: key, variable: KEY}, {name: gate}], "
        'command: [sh, -c, "echo $KEY; cat $JOBMAN_SECRET_GATE/key"]',
    )
    assert job.wait().lines() == ["door-key", "gate-key"]


def test_a_relative_cwd_is_mounted_and_keeps_what_is_written(ground: Ground) -> None:
    (ground.folder / "with blanks").mkdir()
    job = submit(ground, 'attributes: {cwd: with blanks}, command: [sh, -c, "pwd; echo kept >file"]')
    outcome = job.wait()
    assert outcome.lines() == [str(ground.folder / "with blanks")]
    assert (ground.folder / "with blanks" / "file").read_text() == "kept\n"


def test_hooks_run_in_containers_of_the_same_image_and_share_the_scratch_space(ground: Ground) -> None:
    is_inside = "readlink /proc/self/exe | grep -o busybox"
    job = submit(
        ground,
        f'hooks: {{before: [sh, -c, "{is_inside} >$JOBMAN_SCRATCH/word"], after: [sh, -c, "{is_inside}"]}}, '
        'command: [sh, -c, "cat $JOBMAN_SCRATCH/word"]',
    )
    outcome = job.wait()
    assert (outcome.state, outcome.lines()) == ("succeeded", ["busybox", "busybox"])


def test_checks_and_the_hook_at_the_stop_run_inside_the_container(ground: Ground) -> None:
    job = submit(
        ground,
        "checks: {ready: {exec: [test, -e, /only-here], every: 1s}}, hooks: {on_stop: [touch, /stop]}, "
        'command: [sh, -c, "touch /only-here; until test -e /stop; do sleep 0.1; done; echo saved; exit 0"]',
    )
    job.until("work.0 ready")
    job.cancel()
    assert "saved" in job.wait().lines()
    assert not Path("/only-here").exists()


def test_a_container_that_does_not_listen_is_killed_after_its_grace(ground: Ground) -> None:
    job = submit(ground, "grace: 1s, command: [sh, -c, \"trap '' TERM; echo up; while :; do sleep 1; done\"]")
    job.until_line("up")
    assert containers_of(job)
    job.cancel()
    assert job.wait().state == "cancelled"
    assert containers_of(job) == []


def test_a_container_that_runs_too_long_is_stopped_for_that(ground: Ground) -> None:
    job = submit(ground, 'attributes: {duration: 2s}, grace: 1s, command: [sh, -c, "echo up; sleep 1000"]')
    outcome = job.wait()
    assert (outcome.state, outcome.reasons("work.0")) == ("failed", ["timeout"])
    assert containers_of(job) == []


def test_a_frozen_container_stands_still_and_hears_of_its_end(ground: Ground) -> None:
    job = submit(
        ground,
        "suspend: freeze, command: [sh, -c, "
        "\"trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done\"]",
    )
    job.until_line("up")
    job.hold()
    eventually(lambda: states_of(job) == ["paused"], "that it stands still")
    job.release()
    eventually(lambda: states_of(job) == ["running"], "that it goes on")
    job.hold()
    eventually(lambda: states_of(job) == ["paused"], "that it stands still again")
    job.cancel()
    outcome = job.wait()
    assert (outcome.state, outcome.lines()) == ("cancelled", ["up", "saved"])


def test_the_signal_before_the_end_reaches_the_command(ground: Ground) -> None:
    # Not before there is a command: a container takes its time to start.
    job = submit(
        ground,
        "attributes: {duration: 60s}, signal: {name: USR2, before: 48s}, "
        "command: [sh, -c, \"trap 'echo warned; exit 0' USR2; while :; do sleep 0.1; done\"]",
    )
    outcome = job.wait()
    assert (outcome.state, outcome.lines()) == ("succeeded", ["warned"])


def test_copies_on_several_nodes_have_a_container_each(ground: Ground) -> None:
    job = submit(
        ground,
        "resources: {type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 1}]}]}, "
        'command: [sh, -c, "echo $JOBMAN_RANK of $JOBMAN_SIZE on $SLURMD_NODENAME$SLURM_NODEID"]',
    )
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert len(outcome.lines()) == 4


def test_the_words_of_the_settings_may_be_anything_that_runs_a_command(ground: Ground) -> None:
    job = submit(
        ground,
        'attributes: {environment: {WORD: hello}}, command: [sh, -c, "pwd; echo $WORD; exit 3"]',
        WORDS,
    )
    outcome = job.wait()
    assert (outcome.exit_code, outcome.lines()) == (3, ["/here", "hello"])


def test_a_step_of_slurm_may_be_what_runs_it(ground: Ground) -> None:
    words = '[srun, --overlap, --ntasks=1, env, "IMAGE={image}"]'
    job = submit(ground, 'command: [sh, -c, "echo ${IMAGE##*/} $JOBMAN_TASK; exit 3"]', words)
    outcome = job.wait()
    assert (outcome.exit_code, outcome.lines(stream="stdout")) == (
        3,
        [f"{os.environ['JOBMAN_LAB_IMAGE'].rpartition('/')[2]} work"],
    )


def test_a_container_is_gone_also_when_slurm_kills_all_that_there_is(ground: Ground) -> None:
    job = submit(ground, "command: [sh, -c, \"trap '' TERM; echo up; while :; do sleep 1; done\"]")
    job.until_line("up")
    ground.slurm("scancel", "--full", "--signal=KILL", ground.id_of(job, "work"))
    job.wait()
    eventually(lambda: not containers_of(job), "the end of its container")
