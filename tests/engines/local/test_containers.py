import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.engines import base
from jobman.engines.local.containers import (
    Container,
    client_environment,
    container_name,
    exec_argv,
    launch_failure,
    presence_argv,
    remove_argv,
    run_argv,
    variables_file,
)
from jobman.engines.local.runtimes import Runtime, find_runtime
from jobman.engines.local.volumes import Mount
from jobman.sched.allocation import Slot
from jobman.spec.access import Capabilities, Secret, Security
from jobman.spec.checks import Check, Checks
from jobman.spec.lifecycle import Hooks
from jobman.spec.shapes import Part
from jobman.spec.steps import Write
from jobman.spec.volumes import Volume
from tests.engines.local.house import House
from tests.engines.local.workshop import eventually

PODMAN = Runtime("podman", "/usr/bin/podman", limits=frozenset(("cpuset", "memory")))
DOCKER = Runtime("docker", "/usr/bin/docker", has_init=True, limits=frozenset(("cpuset", "memory")))
APPTAINER = Runtime("apptainer", "/usr/bin/apptainer")


def words(runtime: Runtime, *argv: str, **given: Any) -> str:
    container = Container(**{"name": "jobman-1", "image": "img:1", "argv": argv or ("prog",), **given})
    return " ".join(run_argv(runtime, container))


# -- what a runtime is told --------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", [PODMAN, DOCKER])
def test_a_container_is_removed_shares_the_network_and_runs_the_command_alone(runtime):
    said = words(runtime, "prog", "-x", "a b")
    assert f"{runtime.program} run --rm --name jobman-1 --network host" in said
    assert said.endswith("--entrypoint= img:1 prog -x a b")


def test_values_of_variables_are_in_no_argument():
    variables = {"TOKEN": "s3cret", "PATH": "/opt/s3cret"}
    for runtime in (PODMAN, DOCKER, APPTAINER):
        assert "s3cret" not in words(runtime, variables=variables, file="/private/0.env")


def test_a_variable_is_inherited_from_the_client_and_what_would_break_it_goes_by_a_file():
    variables = {"TOKEN": "a\nb", "PATH": "/opt/bin", "HOME": "/two\nlines"}
    said = words(PODMAN, variables=variables, file="/private/0.env")
    assert "--env TOKEN --env HOME --env-file /private/0.env" in said
    assert variables_file(PODMAN, variables) == "PATH=/opt/bin\n"
    client = client_environment(PODMAN, variables, {"PATH": "/bin", "EDITOR": "vi"}, {"DOCKER_HOST": "x"})
    assert client == {"PATH": "/bin", "DOCKER_HOST": "x", "TOKEN": "a\nb", "HOME": "/two\nlines"}


def test_apptainer_has_names_of_its_own_for_variables():
    client = client_environment(APPTAINER, {"PATH": "/opt"}, {"PATH": "/bin"}, {})
    assert client == {"PATH": "/bin", "APPTAINERENV_PATH": "/opt"}
    assert variables_file(APPTAINER, {"PATH": "/opt"}) is None


def test_folders_files_and_memory_are_mounted():
    mounts = (
        Mount("a", "/src", "/dst", read_only=True),
        Mount("b", "/x:y", "/dst2"),
        Mount("c", "/m", "/mem", size=1024, in_memory=True),
        Mount("d", "/m", "/dev/shm", size=2048, in_memory=True),
    )
    said = words(PODMAN, mounts=mounts)
    assert "--volume /src:/dst:ro --mount type=bind,source=/x:y,target=/dst2" in said
    assert "--tmpfs /mem:rw,size=1024,mode=1777 --shm-size 2048" in said
    assert "--bind /src:/dst:ro" in words(APPTAINER, mounts=mounts[:1])


def test_limits_are_set_where_the_runtime_can():
    given = {"cores": (1, 3), "memory": 4096}
    assert "--cpuset-cpus 1,3 --memory 4096" in words(PODMAN, **given)
    assert "--memory" not in words(Runtime("podman", "podman"), **given)


def test_gpus_are_given_in_the_words_of_each_runtime():
    assert "--device nvidia.com/gpu=GPU-a --device nvidia.com/gpu=GPU-b" in words(
        PODMAN, gpus=("GPU-a", "GPU-b")
    )
    assert '--gpus "device=GPU-a,GPU-b"' in words(DOCKER, gpus=("GPU-a", "GPU-b"))
    assert " --nv " in words(APPTAINER, gpus=("GPU-a",))


def test_rights_are_set():
    security = Security(
        uid=1000,
        gid=2000,
        groups=(3000,),
        capabilities=Capabilities(add=("KILL",), drop=("ALL",)),
        read_only_root=True,
        umask="027",
        seccomp="unconfined",
    )
    said = words(PODMAN, security=security)
    for each in (
        "--user 1000:2000",
        "--group-add 3000",
        "--cap-drop ALL --cap-add KILL",
        "--read-only",
        "--umask 0027",
        "--security-opt seccomp=unconfined",
        "--security-opt no-new-privileges",
    ):
        assert each in said


def test_rights_can_be_gained_only_where_that_is_asked_for():
    assert "no-new-privileges" in words(PODMAN)
    assert "no-new-privileges" not in words(PODMAN, security=Security(no_new_privileges=False))
    privileged = words(PODMAN, security=Security(privileged=True))
    assert "--privileged" in privileged
    assert "no-new-privileges" not in privileged


def test_beside_a_container_and_after_it():
    container = Container(name="n", image="img", argv=("prog",))
    assert exec_argv(PODMAN, container, ("check", "a b")) == ("/usr/bin/podman", "exec", "n", "check", "a b")
    assert exec_argv(APPTAINER, container, ("check",))[-2:] == ("docker://img", "check")
    assert "n" in (remove_argv(PODMAN, "n") or ())
    assert remove_argv(APPTAINER, "n") is None
    assert presence_argv(PODMAN, "img") == ("/usr/bin/podman", "image", "exists", "img")


@pytest.mark.parametrize(
    ("runtime", "code", "line", "reason"),
    [
        (PODMAN, 125, "Error: img: image not known", "img: image not known"),
        (
            PODMAN,
            127,
            'Error: runc: exec: "x": OCI runtime attempted x',
            'runc: exec: "x": OCI runtime attempted x',
        ),
        (PODMAN, 126, 'Error: workdir "/x" does not exist', 'workdir "/x" does not exist'),
        (PODMAN, 127, "sh: x: not found", ""),
        (PODMAN, 127, "Error: my own", ""),
        (PODMAN, 1, "Error: img: image not known", ""),
        (DOCKER, 125, "docker: Error response from daemon: no", "Error response from daemon: no"),
        (APPTAINER, 255, "FATAL:   no image", "no image"),
    ],
)
def test_a_container_that_never_started_is_told_from_a_command_that_failed(runtime, code, line, reason):
    assert launch_failure(runtime, code, line) == reason


def test_names_have_only_good_characters_and_are_different_for_different_copies():
    assert container_name("jobman", "1", "task.0", 1, 0) == "jobman-1-task.0-1-0"
    nested, flat = container_name("j", "a/b.0"), container_name("j", "a_b.0")
    assert "/" not in nested
    assert nested != flat
    assert len(container_name("j", "x" * 500)) < 140


def executable(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_runtime_that_is_there_is_taken(tmp_path):
    assert find_runtime({"PATH": str(tmp_path)}) is None
    executable(tmp_path / "apptainer")
    executable(tmp_path / "docker")
    found = find_runtime({"PATH": str(tmp_path)})
    assert found is not None
    assert (found.dialect, found.program) == ("docker", str(tmp_path / "docker"))


def test_a_variable_chooses_the_runtime(tmp_path):
    for name in ("podman", "apptainer"):
        executable(tmp_path / name)
    found = find_runtime({"PATH": str(tmp_path), "JOBMAN_CONTAINER_RUNTIME": "apptainer"})
    assert found is not None
    assert found.dialect == "apptainer"
    assert find_runtime({"PATH": str(tmp_path), "JOBMAN_CONTAINER_RUNTIME": "other"}) is None


# -- a real one --------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    try:
        yield made
    finally:
        made.close()
        if left := [name for order in made.orders for name in containers(order)]:
            subprocess.run([*PS[:1], "rm", "--force", "--time", "0", *left], check=True, capture_output=True)


def in_image(house: House, script: str, **given: Any) -> base.Order:
    settings: dict[str, Any] = {
        "image": os.environ["JOBMAN_LAB_IMAGE"],
        "job": f"test-{os.getpid()}-{house.folder.name[-24:]}",
        "grace": 10.0,
    }
    return house.order("sh", "-c", script, **{**settings, **given})


PS = ("podman", "ps", "--all", "--format", "{{.Names}}")


def containers(order: base.Order) -> list[str]:
    """The containers there are of an order."""
    if order.unit.image is None or "JOBMAN_LAB_PODMAN" not in os.environ:
        return []
    names = subprocess.run(PS, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.startswith(f"jobman-{order.job}-{order.key}-")]


real = pytest.mark.component("podman")


@real
def test_output_and_exit_code_come_out_of_a_container(house):
    order = in_image(house, "echo hello; echo oh >&2; exit 3")
    over = house.run(order)
    assert (over.reason, over.exit_code) == ("exit", 3)
    assert (house.out(order), house.err(order)) == ("hello\n", "oh\n")
    assert containers(order) == []


@real
def test_variables_arrive_as_they_are_and_those_of_submission_do_not(house):
    odd = 'a "b" $c `d` \\e\n\tü=* '
    given = {"ODD": odd, "PATH": "/bin:/odd", "EMPTY": "", "HOME": "/tmp"}
    order = in_image(house, "env -0", environment=given)
    house.run(order)
    found = dict(pair.split("=", 1) for pair in house.out(order).split("\0") if pair)
    assert {name: found.get(name) for name in given} == given
    assert found["JOBMAN_TASK"] == "task"
    assert "USER" not in found


@real
def test_volumes_scratch_steps_and_secrets_are_seen_in_a_container(house, tmp_path):
    (house.home / "secrets/token").mkdir(parents=True)
    (house.home / "secrets/token/value").write_text("s3cret")
    (house.home / "secrets").chmod(0o700)
    (tmp_path / "data").mkdir()
    volumes = (
        Volume(name="data", kind="host", path=str(tmp_path / "data"), to="/data"),
        Volume(name="closed", kind="host", path=str(tmp_path / "data"), to="/closed", read_only=True),
        Volume(name="own", kind="scratch", to="/own"),
        Volume(name="mem", kind="memory", size=1 << 20, to="/mem"),
    )
    order = in_image(
        house,
        "set -e; cat config; echo x > /data/x; echo x > $JOBMAN_SCRATCH/x; echo x > /own/x; cat /run/token;"
        "df -P /mem | tail -n 1 | cut -c -5; echo done > result; if touch /closed/y; then exit 9; fi",
        volumes=volumes,
        steps=(Write(path="config", content="level\n"),),
        secrets=(Secret(name="token", path="/run/token"),),
        result_file="result",
    )
    over = house.run(order)
    assert (over.reason, over.result) == ("", "done\n"), house.err(order)
    assert house.out(order) == "level\ns3crettmpfs\n"
    assert (tmp_path / "data/x").exists()


@real
def test_the_client_shows_no_secret_in_the_process_list(house):
    (house.home / "secrets/token").mkdir(parents=True)
    (house.home / "secrets/token/value").write_text("s3cret-in-ps")
    (house.home / "secrets").chmod(0o700)
    order = in_image(house, "sleep 600", secrets=(Secret(name="token", variable="TOKEN"),), grace=0.0)
    house.launch(order)
    house.running(order)
    eventually(lambda: containers(order))
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "s3cret-in-ps" not in listing


@real
def test_a_killed_container_leaves_nothing_behind(house):
    order = in_image(house, "trap '' TERM; echo up; while :; do sleep 1; done", grace=0.3)
    house.launch(order)
    eventually(lambda: house.running(order) and house.out(order) == "up\n")
    (name,) = containers(order)
    assert [info.container for info in house.engine.copies(order.job)] == [f"podman:{name}"]
    house.stop(order)
    assert house.over(order).reason == "signal"
    assert containers(order) == []


@real
def test_a_container_is_asked_to_stop_in_peace(house):
    order = in_image(house, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done")
    house.launch(order)
    eventually(lambda: house.running(order) and house.out(order) == "up\n")
    house.stop(order)
    over = house.over(order)
    assert (over.exit_code, house.out(order)) == (5, "up\nbye\n")
    assert containers(order) == []


@real
@pytest.mark.slow
def test_an_image_that_cannot_be_had_fails_the_launch_with_the_reason(house):
    over = house.run(in_image(house, "true", image="localhost:1/no-such-image:1"))
    assert over.reason == "launch-failed"
    assert over.message.startswith("the image localhost:1/no-such-image:1 cannot be had: podman: ")


@real
def test_a_command_that_the_image_does_not_have_could_not_be_launched(house):
    order = house.order("no-such-program", image=os.environ["JOBMAN_LAB_IMAGE"])
    over = house.run(order)
    assert over.reason == "launch-failed"
    assert "no-such-program" in over.message


@real
def test_a_container_outlives_the_service_and_is_followed_again(house):
    order = in_image(house, "echo up; while ! test -e $JOBMAN_SCRATCH/go; do sleep 0.1; done; exit 6")
    house.launch(order)
    eventually(lambda: house.running(order) and house.out(order) == "up\n")
    house.reopen()
    house.recover(order)
    house.running(order)
    (house.attempt_folder(order) / "work/scratch-0/go").touch()
    assert house.over(order).exit_code == 6
    assert containers(order) == []


@real
@pytest.mark.slow
def test_checks_and_hooks_run_in_the_container(house):
    order = in_image(
        house,
        "trap 'exit 0' TERM; touch /tmp/up; while :; do sleep 0.1; done",
        checks=Checks(ready=Check(exec=("test", "-e", "/tmp/up"), every=0.1, timeout=10.0, failures=1000)),
        hooks=Hooks(
            before=("sh", "-c", "echo before"),
            after=("sh", "-c", "echo after"),
            on_stop=("sh", "-c", "ls /tmp/up"),
        ),
        grace=5.0,
    )
    house.launch(order)
    assert house.first(order, base.CheckPassed).kind == "ready"
    house.stop(order)
    house.over(order)
    assert house.out(order) == "before\n/tmp/up\nafter\n"
    assert containers(order) == []


@real
@pytest.mark.slow
def test_a_container_keeps_to_its_cores_and_its_memory(house):
    amounts: dict[str, int | float] = {"core": 1, "memory": 64 << 20}
    core = min(os.sched_getaffinity(0))
    node = house.engine.nodes()[0].name
    order = in_image(
        house,
        "grep Cpus_allowed_list /proc/self/status; head -c 200000000 /dev/zero | tail",
        slots=(Slot(node, (0,), amounts=amounts),),
        alternatives=((Part(slots=1, each=amounts),),),
    )
    over = house.run(order)
    assert house.out(order).split()[1] == str(core)
    assert (over.reason, over.message) == (
        "out-of-memory",
        "used more than the 64 MiB of memory it was given",
    )


def test_a_podman_that_is_not_there_leaves_the_copy_unlaunched(house, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    over = house.run(house.order("true", image="img"))
    assert over.reason == "launch-failed"
    assert "--no-container" in over.message


def test_without_its_container_the_command_runs_here(house):
    order = house.order("echo", "here", image="img", no_container=True)
    assert house.run(order).reason == ""
    assert house.out(order) == "here\n"
