"""A copy gets the cores, the memory and the rights of its order, and no more."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jobman.engines.local.cgroups import Cage, find
from jobman.engines.local.limits import CAPABILITIES
from jobman.engines.local.wire import Request
from tests.engines.local.workshop import Workshop, eventually, kill, opened

pytestmark = pytest.mark.slow

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
NOBODY = 65534
MI = 1 << 20
EAT = "import time\nkept = []\nfor _ in range(400):\n    kept.append(b'x' * (1 << 20))\n    time.sleep(0.005)"


def eat(workshop: Workshop, **given):
    """A copy that would use 400 MiB."""
    return workshop.order(sys.executable, "-S", "-E", "-c", EAT, **given)


def field(workshop: Workshop, order, name: str) -> int:
    """A mask or number of /proc/self/status, as the copy printed it."""
    lines = dict(line.split(":", 1) for line in workshop.out(order).splitlines())
    return int(lines[name], 16)


class TestCores:
    def test_a_copy_stays_on_its_cores(self, workshop):
        first = min(os.sched_getaffinity(0))
        order = workshop.shell("grep Cpus_allowed_list /proc/self/status", cores=(first,))
        assert workshop.run(order).notes == ()
        assert workshop.out(order).split() == ["Cpus_allowed_list:", str(first)]

    def test_cores_that_are_not_there_are_noted(self, workshop):
        first = min(os.sched_getaffinity(0))
        order = workshop.shell("grep Cpus_allowed_list /proc/self/status", cores=(first, 4000))
        assert workshop.run(order).notes == ("not pinned to cores that are not available here: 4000",)
        assert workshop.out(order).split()[1] == str(first)

    def test_without_cores_it_may_use_all(self, workshop):
        order = workshop.order(sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
        workshop.run(order)
        assert workshop.out(order).strip() == str(sorted(os.sched_getaffinity(0)))


class TestRights:
    @pytest.mark.parametrize(("umask", "expected"), [(None, "644"), (0o077, "600"), (0, "666")])
    def test_the_mask_of_new_files(self, workshop, umask, expected):
        order = workshop.shell("touch new; stat -c %a new", umask=umask)
        workshop.run(order)
        assert workshop.out(order) == f"{expected}\n"

    @pytest.mark.parametrize("wanted", [True, False])
    def test_programs_gain_no_rights_unless_the_order_says_so(self, workshop, wanted):
        order = workshop.shell("grep -E '^NoNewPrivs' /proc/self/status", no_new_privileges=wanted)
        workshop.run(order)
        assert field(workshop, order, "NoNewPrivs") == wanted

    def test_only_those_who_may_can_give_rights(self, workshop):
        missing = [
            name
            for number, name in enumerate(CAPABILITIES)
            if not int(Path("/proc/self/status").read_text().split("CapPrm:")[1].split()[0], 16) >> number & 1
        ]
        if not missing:
            pytest.skip("whoever runs this has every right")
        end = workshop.run(workshop.order("/bin/true", add_capabilities=(missing[0],)))
        assert end.reason == "launch-failed"
        assert end.message == (
            f"the copy asks for rights that jobman itself does not have here: {missing[0]}"
        )

    def test_a_right_that_does_not_exist_is_named(self, workshop):
        end = workshop.run(workshop.order("/bin/true", add_capabilities=("FLY",)))
        assert end.message == "there is no capability FLY; one is NET_BIND_SERVICE"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root can")
    def test_only_root_can_become_somebody_else(self, workshop):
        end = workshop.run(workshop.order("/bin/true", uid=os.getuid() + 1))
        assert end.reason == "launch-failed"
        assert end.message.startswith(f"only root can run a copy as user {os.getuid() + 1}")


@root
class TestAsRoot:
    @pytest.fixture
    def workshop(self) -> Iterator[Workshop]:
        """In a folder that others can pass through, which those of the tests are not."""
        with TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            with opened(Path(name)) as made:
                yield made

    def test_a_copy_becomes_its_user(self, workshop):
        order = workshop.shell("id -u; id -g; id -G", uid=NOBODY, gid=12345, groups=(12345, 12346))
        workshop.run(order)
        assert workshop.out(order).split("\n")[:3] == [str(NOBODY), "12345", "12345 12346"]

    def test_without_a_group_it_has_that_of_its_user(self, workshop):
        known, stranger = (
            workshop.shell("id -g; id -G", uid=NOBODY),
            workshop.shell("id -g; id -G", uid=54321),
        )
        workshop.run(known)
        workshop.run(stranger)
        assert workshop.out(known).split() == [str(NOBODY)] * 2
        assert workshop.out(stranger).split() == ["54321"] * 2

    def test_it_keeps_no_right_of_root(self, workshop):
        order = workshop.shell("grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status", uid=NOBODY)
        workshop.run(order)
        assert [field(workshop, order, name) for name in ("CapPrm", "CapEff", "CapAmb")] == [0, 0, 0]

    def test_it_may_keep_one(self, workshop):
        number = CAPABILITIES.index("NET_BIND_SERVICE")
        order = workshop.shell(
            "grep -E '^Cap(Prm|Eff)' /proc/self/status",
            uid=NOBODY,
            add_capabilities=("CAP_NET_BIND_SERVICE",),
        )
        assert workshop.run(order).message == ""
        assert [field(workshop, order, name) for name in ("CapPrm", "CapEff")] == [1 << number] * 2

    def test_root_may_lose_one(self, workshop):
        number = CAPABILITIES.index("NET_RAW")
        order = workshop.shell("grep -E '^CapEff' /proc/self/status", drop_capabilities=("NET_RAW",))
        workshop.run(order)
        assert not field(workshop, order, "CapEff") >> number & 1
        assert field(workshop, order, "CapEff")

    def test_root_may_lose_all(self, workshop):
        order = workshop.shell("grep -E '^CapEff' /proc/self/status", drop_capabilities=("ALL",))
        workshop.run(order)
        assert field(workshop, order, "CapEff") == 0

    def test_its_streams_are_its_own(self, workshop):
        order = workshop.shell("echo one > /dev/stdout; echo two > /dev/stderr", uid=NOBODY)
        assert workshop.run(order).reason == "success"
        assert (workshop.out(order), workshop.err(order)) == ("one\n", "two\n")

    def test_it_writes_where_its_user_may(self, workshop):
        end = workshop.run(workshop.shell("true", uid=NOBODY, stdout="/root/mine"))
        assert end.reason == "launch-failed"
        assert end.message == "cannot write output to /root/mine: permission denied"

    def test_its_scratch_is_its_own(self, workshop):
        scratch = workshop.folder / "scratch"
        order = workshop.shell(
            f"touch {scratch}/x; stat -c %u:%a {scratch}", uid=NOBODY, scratch=str(scratch)
        )
        assert workshop.run(order).reason == "success"
        assert workshop.out(order) == f"{NOBODY}:700\n"
        assert not scratch.exists()

    def test_its_hooks_run_as_its_user(self, workshop):
        order = workshop.shell("id -u", uid=NOBODY, before=("id", "-u"), after=("id", "-u"))
        workshop.run(order)
        assert workshop.out(order).split() == [str(NOBODY)] * 3

    def test_its_result_is_read_with_its_rights(self, workshop):
        secret = workshop.folder / "secret"
        secret.write_text("secret")
        secret.chmod(0o600)
        place = workshop.folder / "open"
        place.mkdir()
        place.chmod(0o777)
        order = workshop.shell("ln -s ../secret result", uid=NOBODY, cwd=str(place), result_file="result")
        end = workshop.run(order)
        assert (end.reason, end.result) == ("success", None)

    def test_it_can_be_stopped(self, workshop):
        order = workshop.shell("sleep 1000", uid=NOBODY)
        workshop.launch(order)
        workshop.running(order)
        workshop.stop(order)
        assert workshop.end(order).stopped


class TestMemoryBySampling:
    def test_a_copy_that_takes_too_much_is_killed(self, workshop):
        end = workshop.run(eat(workshop, memory=64 * MI))
        assert (end.reason, end.signal) == ("out-of-memory", "KILL")
        assert end.message.endswith("of memory, more than the 64 MiB it was given")
        assert end.max_rss > 64 * MI

    def test_all_its_processes_count(self, workshop):
        parts = f"{sys.executable} -S -E -c 'import time; x = bytearray(60 << 20); time.sleep(1000)'"
        order = workshop.shell(f"{parts} & {parts} & wait", memory=100 * MI)
        assert workshop.run(order).reason == "out-of-memory"
        assert workshop.processes(order) == []

    def test_what_processes_share_counts_once(self, workshop):
        fork = (
            "import os, time\nkept = bytearray(60 << 20)\nfor _ in range(3):\n    if not os.fork():\n"
            "        time.sleep(1); os._exit(0)\nfor _ in range(3):\n    os.wait()"
        )
        order = workshop.order(sys.executable, "-S", "-E", "-c", fork, memory=150 * MI)
        assert workshop.run(order).reason == "success"

    def test_a_copy_that_stays_below_is_left_alone(self, workshop):
        assert workshop.run(workshop.shell("sleep 0.5", memory=64 * MI)).reason == "success"

    def test_a_new_shim_watches_too(self, workshop):
        order = workshop.order(
            sys.executable,
            *("-S", "-E", "-c"),
            f"import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n{EAT}",
            memory=64 * MI,
        )
        workshop.launch(order)
        kill(workshop.shim(order))
        (workshop.folder / "go").touch()
        assert workshop.end(order).reason == "out-of-memory"


def cage_of(workshop: Workshop, order) -> Cage:
    started = workshop.started(order)
    return Cage(started.memory_cgroup, started.freezer_cgroup)


@pytest.fixture
def caged(workshop: Workshop) -> Workshop:
    """A workshop on a machine where control groups limit memory."""
    order = workshop.order("/bin/true", memory=64 * MI, cgroup=f"jobman-probe-{os.getpid()}")
    workshop.run(order)
    if cage_of(workshop, order).memory is None:
        pytest.skip("no memory control group can be made here")
    return workshop


def group(workshop: Workshop) -> str:
    return f"jobman-test-{os.getpid()}-{len(workshop.orders)}"


class TestMemoryByControlGroup:
    def test_a_copy_that_takes_too_much_is_killed(self, caged):
        end = caged.run(eat(caged, memory=64 * MI, cgroup=group(caged)))
        assert (end.reason, end.signal) == ("out-of-memory", "KILL")
        assert end.message == "used more than the 64 MiB of memory it was given"

    def test_a_child_that_takes_too_much_is_told(self, caged):
        order = caged.order(
            "/bin/sh",
            *("-c", '"$0" -S -E -c "$1" || exit 5', sys.executable, EAT),
            memory=64 * MI,
            cgroup=group(caged),
        )
        assert caged.run(order).reason == "out-of-memory"

    def test_its_group_is_gone_in_the_end(self, caged):
        order = caged.shell("sleep 1000 & exit 0", memory=64 * MI, cgroup=group(caged))
        assert caged.run(order).notes == ()
        cage = cage_of(caged, order)
        assert cage.memory is not None
        assert not cage.memory.exists()
        assert cage.freezer is None or not cage.freezer.exists()

    def test_groups_are_found_by_their_name(self, caged):
        name = group(caged)
        order = caged.shell("touch ready; sleep 1000", memory=64 * MI, cgroup=name)
        caged.launch(order)
        caged.file_exists("ready")
        cage, found = cage_of(caged, order), find(name)
        assert (found.memory, found.freezer) == (cage.memory, cage.freezer)
        caged.stop(order)
        caged.end(order)
        assert (find(name).memory, find(name).freezer) == (None, None)

    def test_a_copy_in_a_group_can_be_frozen_and_thawed(self, caged):
        order = caged.shell(
            "touch ready; while [ ! -e go ]; do sleep 0.02; done; exit 6", memory=64 * MI, cgroup=group(caged)
        )
        caged.launch(order)
        caged.file_exists("ready")
        caged.say(Request(freeze=order.id))
        freezer = cage_of(caged, order).freezer
        assert freezer is not None
        eventually(lambda: is_frozen(freezer), "standing still")
        (caged.folder / "go").touch()
        caged.say(Request(thaw=order.id))
        assert caged.end(order).exit_code == 6

    def test_a_frozen_copy_in_a_group_can_be_stopped(self, caged):
        order = caged.shell("touch ready; sleep 1000", memory=64 * MI, cgroup=group(caged))
        caged.launch(order)
        caged.file_exists("ready")
        caged.say(Request(freeze=order.id))
        freezer = cage_of(caged, order).freezer
        assert freezer is not None
        eventually(lambda: is_frozen(freezer), "standing still")
        caged.stop(order)
        assert caged.end(order).stopped
        assert caged.processes(order) == []

    def test_what_hides_from_a_new_shim_is_found_in_the_group(self, caged):
        hide = "(env -i setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &)"
        order = caged.shell(f"{hide}; sleep 1000", memory=64 * MI, cgroup=group(caged))
        caged.launch(order)
        daemon = caged.file("daemon").strip()
        kill(caged.shim(order))
        caged.stop(order)
        assert caged.end(order).stopped
        assert not Path(f"/proc/{daemon}").exists()

    def test_a_group_that_cannot_be_made_is_done_without(self, workshop):
        end = workshop.run(eat(workshop, memory=64 * MI, cgroup="x" * 300))
        assert end.reason == "out-of-memory"


def is_frozen(freezer: Path) -> bool:
    events, state = freezer / "cgroup.events", freezer / "freezer.state"
    if events.exists():
        return "frozen 1" in events.read_text()
    return state.read_text().strip() == "FROZEN"
