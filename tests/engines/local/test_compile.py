from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobman.api import loads
from jobman.engines.base import Order, Peer
from jobman.engines.local.compile import compile_order, output_paths
from jobman.engines.local.gpus import Gpu
from jobman.engines.local.nodes import LocalNode
from jobman.engines.local.orders import Stage, Write
from jobman.engines.local.prepared import Copy, Prepared
from jobman.engines.local.runtimes import Runtime
from jobman.engines.local.volumes import Mount
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation, Slot
from jobman.spec.access import Capabilities, Security
from jobman.spec.lifecycle import Hooks, Signal
from jobman.spec.shapes import Flavor, Part
from jobman.spec.steps import Stage as SpecStage
from jobman.spec.steps import Write as SpecWrite
from tests.engines.local.house import make_order

PODMAN = Runtime("podman", "/usr/bin/podman", limits=frozenset(("cpuset", "memory")))
PREPARED = Prepared(id="mark:job-1/task.0/1", folder="/state/a", scratch={"node-0": "/s0", "node-1": "/s1"})


def node(name: str, cores: tuple[int, ...] = (), gpus: tuple[str, ...] = ()) -> LocalNode:
    amounts: dict[str, int | float] = {"core": len(cores), "gpu": len(gpus)}
    return LocalNode(ClusterNode(name=name, amounts=amounts), cores, tuple(map(Gpu, gpus)))


NODES = {"node-0": node("node-0", (4, 5, 6, 7)), "node-1": node("node-1", (8, 9))}


def order(*command: str, **given: Any) -> Order:
    return make_order(*(command or ("./run",)), cwd=Path("/submitted"), **given)


def copies(
    made: Order, prepared: Prepared = PREPARED, nodes: dict[str, LocalNode] = NODES
) -> tuple[Copy, ...]:
    return compile_order(made, prepared, nodes)


def only(made: Order, nodes: dict[str, LocalNode] = NODES, **prepared: Any) -> Copy:
    (copy,) = copies(made, msgspec.structs.replace(PREPARED, **prepared), nodes)
    return copy


# -- variables ---------------------------------------------------------------------------------------


def test_every_copy_finds_its_place_in_its_environment():
    slots = (Slot("node-0", (0, 1)), Slot("node-0", (2, 3)), Slot("node-1", (0, 1)))
    unit = order(slots=slots, replicas=8, index=3, attempt=2, coordinator="localhost:5000")
    found = copies(unit)[2].order.environment
    assert found == {
        "JOBMAN_JOB_ID": "job-1",
        "JOBMAN_JOB_NAME": "example",
        "JOBMAN_TASK": "task",
        "JOBMAN_REPLICA": "3",
        "JOBMAN_REPLICAS": "8",
        "JOBMAN_ATTEMPT": "2",
        "JOBMAN_NODE_RANK": "1",
        "JOBMAN_NNODES": "2",
        "JOBMAN_NODELIST": "node-0,node-1",
        "JOBMAN_RANK": "2",
        "JOBMAN_SIZE": "3",
        "JOBMAN_CORES": "2",
        "JOBMAN_GPUS": "0",
        "JOBMAN_COORDINATOR": "localhost:5000",
        "JOBMAN_SCRATCH": "/s1",
    }


def test_a_task_of_a_group_counts_the_nodes_of_the_group():
    made = order(slots=(Slot("node-1"),), nodes=("node-0", "node-1"))
    found = only(made).order.environment
    assert (found["JOBMAN_NODE_RANK"], found["JOBMAN_NNODES"], found["JOBMAN_SIZE"]) == ("1", "2", "1")
    assert "JOBMAN_COORDINATOR" not in found


@pytest.mark.parametrize(
    ("slot", "cores"),
    [
        (Slot("node-0", (0, 1, 2)), "3"),
        (Slot("node-0", amounts={"core": 0.5}), "1"),
        (Slot("node-0", amounts={"core": 2.5}), "3"),
        (Slot("node-0"), "1"),
    ],
)
def test_cores_are_a_number_that_is_worth_having(slot, cores):
    assert only(order(slots=(slot,))).order.environment["JOBMAN_CORES"] == cores


def test_what_is_nearer_to_the_document_wins():
    found = only(
        order(environment={"B": "document", "C": "document", "D": "document"}),
        submitted={"A": "shell", "B": "shell"},
        elsewhere={"C": "elsewhere", "E": "elsewhere"},
        secrets={"D": "secret"},
    ).order.environment
    assert {name: found[name] for name in "ABCDE"} == {
        "A": "shell",
        "B": "document",
        "C": "document",
        "D": "secret",
        "E": "elsewhere",
    }


def test_given_gpus_are_visible_by_their_uuid():
    nodes = {"node-0": node("node-0", gpus=("GPU-a", "GPU-b", "GPU-c"))}
    found = only(order(slots=(Slot("node-0", gpus=(0, 2)),)), nodes).order.environment
    assert (found["CUDA_VISIBLE_DEVICES"], found["JOBMAN_GPUS"]) == ("GPU-a,GPU-c", "2")


def test_gpus_that_were_not_given_are_hidden():
    nodes = {"node-0": node("node-0", gpus=("GPU-a",))}
    assert (
        only(order(), nodes, submitted={"CUDA_VISIBLE_DEVICES": "0"}).order.environment[
            "CUDA_VISIBLE_DEVICES"
        ]
        == ""
    )


def test_without_gpus_the_users_own_word_stays():
    assert "CUDA_VISIBLE_DEVICES" not in only(order()).order.environment
    kept = only(order(), submitted={"CUDA_VISIBLE_DEVICES": "0"}).order.environment
    assert kept["CUDA_VISIBLE_DEVICES"] == "0"


def test_make_believe_gpus_have_numbers():
    virtual = LocalNode(ClusterNode(name="node-0", amounts={"gpu": 2}))
    found = only(order(slots=(Slot("node-0", gpus=(1,)),)), {"node-0": virtual}).order.environment
    assert found["CUDA_VISIBLE_DEVICES"] == "1"


def test_named_ports_are_variables():
    found = only(order(), ports=({"web-ui": 5000, "8080": 8080},)).order.environment
    assert found["PORT_WEB_UI"] == "5000"
    assert not [name for name in found if "8080" in name]


def test_peers_are_found_by_task_and_each_replica_where_there_are_several():
    peers = (
        Peer("data-base", 0, "localhost", {"sql": 5432}),
        Peer("worker", 0, "localhost", {"rpc": 1}),
        Peer("worker", 1, "localhost", {"rpc": 2}),
    )
    found = only(order(peers=peers)).order.environment
    reach = {name: value for name, value in found.items() if name.startswith(("JOBMAN_HOST", "JOBMAN_PORT"))}
    assert reach == {
        "JOBMAN_HOST_DATA_BASE": "localhost",
        "JOBMAN_PORT_DATA_BASE_SQL": "5432",
        "JOBMAN_HOST_WORKER": "localhost",
        "JOBMAN_PORT_WORKER_RPC": "1",
        "JOBMAN_HOST_WORKER_0": "localhost",
        "JOBMAN_PORT_WORKER_RPC_0": "1",
        "JOBMAN_HOST_WORKER_1": "localhost",
        "JOBMAN_PORT_WORKER_RPC_1": "2",
    }


# -- the rest of an order ----------------------------------------------------------------------------


def test_copies_have_ids_cores_and_output_of_their_own():
    made = copies(order(slots=(Slot("node-0", (2, 3)), Slot("node-1", (1,)))))
    assert [copy.order.id for copy in made] == ["mark:job-1/task.0/1/0", "mark:job-1/task.0/1/1"]
    assert [copy.order.cores for copy in made] == [(6, 7), (9,)]
    assert output_paths(made[1].order) == {"stdout": "/state/a/1.out", "stderr": "/state/a/1.err"}


def test_paths_begin_in_the_folder_of_submission():
    copy = only(order(unit_cwd="sub", stdout="logs/out", stderr="/var/err"))
    assert copy.order.cwd == "/submitted/sub"
    assert output_paths(copy.order) == {"stdout": "/submitted/sub/logs/out", "stderr": "/var/err"}


def test_turns_limits_and_rights_are_handed_on():
    made = only(
        order(
            duration=60.0,
            grace=0.0,
            signal=Signal(name="USR1", before=5.0),
            hooks=Hooks(before=("a",), after=("b",), on_stop=("c",)),
            result_file="result.json",
            security=Security(
                uid=7,
                gid=8,
                groups=(9,),
                umask="0o027",
                capabilities=Capabilities(add=("KILL",), drop=("ALL",)),
            ),
        )
    ).order
    assert (made.duration, made.grace, made.signal, made.signal_before) == (60.0, 0.0, "USR1", 5.0)
    assert (made.before, made.after, made.on_stop, made.result_file) == (
        ("a",),
        ("b",),
        ("c",),
        "result.json",
    )
    assert (made.uid, made.gid, made.groups, made.umask, made.no_new_privileges) == (7, 8, (9,), 0o027, True)
    assert (made.add_capabilities, made.drop_capabilities) == (("KILL",), ("ALL",))


def test_grace_is_half_a_minute_where_nothing_is_said():
    assert only(order()).order.grace == 30.0


@pytest.mark.parametrize("security", [Security(privileged=True), Security(no_new_privileges=False)])
def test_rights_may_be_gained_where_that_is_asked_for(security):
    assert not only(order(security=security)).order.no_new_privileges


def test_what_is_staged_comes_from_the_folder_of_submission():
    steps = (SpecStage(path="in/mesh"), SpecStage(path="a", to="b"), SpecWrite(path="run.sh", content="x"))
    assert only(order(unit_cwd="sub", steps=steps)).order.steps == (
        Stage("/submitted/in/mesh", "in/mesh"),
        Stage("/submitted/a", "b"),
        Write("run.sh", "x", "0644"),
    )


def test_memory_that_was_asked_for_is_the_limit_and_a_share_of_a_whole_node_is_none():
    slot = Slot("node-0", amounts={"memory": 1 << 30})
    asked = only(order(slots=(slot,), alternatives=((Part(slots=1, each={"memory": 1 << 30}),),)))
    whole = only(order(slots=(slot,), alternatives=((Part(nodes=1),),)))
    assert (asked.order.memory, whole.order.memory) == (1 << 30, None)
    assert asked.order.cgroup
    assert whole.order.cgroup is None


def test_the_limit_of_a_flavor_wins_over_its_request():
    flavor = Flavor("small", {"memory": "1Gi"}, {"memory": "2Gi"})
    part = Part(slots=1, each={"memory": 1 << 30}, flavor=flavor)
    made = only(order(slots=(Slot("node-0", amounts={"memory": 1 << 30}),), alternatives=((part,),)))
    assert made.order.memory == 2 << 30


def test_each_slot_has_the_limit_of_its_own_part():
    parts = (Part(slots=2, each={"memory": 100}), Part(slots=1, each={"memory": 200}))
    slots = tuple(Slot("node-0", amounts={"memory": each}) for each in (100, 100, 200))
    made = copies(
        order(slots=slots, alternatives=((Part(slots=9),), parts), allocation=Allocation(1, slots=slots))
    )
    assert [copy.order.memory for copy in made] == [100, 100, 200]


def test_a_document_reaches_the_copy_as_it_was_written():
    text = """
version: 1
tasks:
- name: scan
  command: ["./fit", "--rate={{rate}}", "a b", "", "ü\\n"]
  matrix: {rate: [0.10, 0.01]}
  resources: {type: node, count: 1}
"""
    unit = loads(text).plan().units[0]
    assert unit.command[2:] == ("a b", "", "ü\n")
    made = order()
    assert only(msgspec.structs.replace(made, unit=unit)).order.argv[2:] == ("a b", "", "ü\n")


# -- containers --------------------------------------------------------------------------------------


def contained(made: Order, **prepared: Any) -> Copy:
    return only(made, runtime=PODMAN, private="/dev/shm/x", **prepared)


def test_a_contained_copy_is_the_client_of_its_container():
    slot = Slot("node-0", (0, 1), amounts={"memory": 1 << 20})
    part = Part(slots=1, each={"core": 2, "memory": 1 << 20})
    made = order(
        "prog", "a b", image="img:1", slots=(slot,), alternatives=((part,),), security=Security(uid=5)
    )
    copy = contained(made, submitted={"PATH": "/bin", "EDITOR": "vi"}, client={"CONTAINERS_CONF": "/c"})
    assert copy.container is not None
    assert copy.order.argv[:2] == ("/usr/bin/podman", "run")
    assert copy.order.argv[-3:] == ("img:1", "prog", "a b")
    assert (copy.container.cores, copy.container.memory) == ((4, 5), 1 << 20)
    assert (copy.order.memory, copy.order.cgroup, copy.order.uid) == (None, None, None)
    assert not copy.order.no_new_privileges
    assert copy.order.environment["PATH"] == "/bin"
    assert copy.order.environment["CONTAINERS_CONF"] == "/c"
    assert "EDITOR" not in copy.order.environment
    assert "PATH" not in copy.container.variables


def test_memory_is_looked_at_from_outside_where_the_runtime_cannot_limit_it():
    part = Part(slots=1, each={"memory": 100})
    made = order(image="img", slots=(Slot("node-0", amounts={"memory": 100}),), alternatives=((part,),))
    assert only(made, runtime=Runtime("podman", "podman")).order.memory == 100


def test_an_image_brings_its_own_folder_to_run_in():
    copy = contained(order(image="img"))
    assert copy.container is not None
    assert copy.container.workdir is None
    assert [mount.to for mount in copy.container.mounts] == ["/s0"]
    assert copy.order.cwd == "/submitted"


def test_a_folder_that_is_asked_for_is_shared_with_the_container():
    copy = contained(order(image="img", unit_cwd="sub", result_file="r.json"))
    assert copy.container is not None
    assert copy.container.workdir == copy.order.cwd == "/submitted/sub"
    assert Mount("cwd", "/submitted", "/submitted") in copy.container.mounts
    assert copy.order.result_file == "/submitted/sub/r.json"


def test_a_folder_of_the_image_is_not_looked_for_here():
    copy = contained(order(image="img", unit_cwd="/opt/app"))
    assert copy.container is not None
    assert (copy.container.workdir, copy.order.cwd) == ("/opt/app", "/submitted")
    assert [mount.to for mount in copy.container.mounts] == ["/s0"]


def test_files_of_steps_are_seen_in_the_container():
    steps = (SpecWrite(path="run.sh", content=""), SpecStage(path="mesh", to="/tmp/mesh"))
    copy = contained(order(image="img", steps=steps))
    assert copy.container is not None
    assert copy.container.workdir == "/submitted"
    assert [mount.to for mount in copy.container.mounts] == ["/s0", "/submitted", "/tmp/mesh"]


def test_a_result_in_a_volume_is_found_where_the_volume_is():
    mounts = ((Mount("out", "/disk/out", "/out"),),)
    assert (
        contained(order(image="img", result_file="/out/a/r"), mounts=mounts).order.result_file
        == "/disk/out/a/r"
    )


def test_hooks_run_in_containers_too():
    copy = contained(order(image="img", hooks=Hooks(before=("a",), after=("b",), on_stop=("c",))))
    assert copy.container is not None
    name = copy.container.name
    assert f"{name}-before" in copy.order.before
    assert f"{name}-after" in copy.order.after
    assert copy.order.on_stop[-5:] == ("/usr/bin/podman", name, "30", "/state/a/0.started", "c")
    assert copy.beside(("check",)) == ("/usr/bin/podman", "exec", name, "check")


@pytest.mark.parametrize("given", [{"no_container": True}, {"local": True}, {"image": None}])
def test_without_a_container_the_command_is_run_as_it_is(given):
    from jobman.engines.local.compile import is_contained

    assert not is_contained(order(**{"image": "img", **given}))
