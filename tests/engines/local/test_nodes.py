"""The nodes of this machine, and of machines that exist only as folders."""

import os
import stat
from pathlib import Path

import pytest

from jobman.engines.local.facts import find_facts, host_name
from jobman.engines.local.gpus import Gpu, find_gpus
from jobman.engines.local.hardware import find_cores, find_memory, find_sockets, find_storage
from jobman.engines.local.nodes import (
    LocalNode,
    VirtualNodesError,
    physical_cores,
    this_machine,
    virtual_nodes,
    visible_gpus,
)
from jobman.plan.nodes import ClusterNode

MI, GI = 2**20, 2**30
V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"
FILES = {
    "proc/meminfo": "MemTotal:       8388608 kB\nMemFree:  1 kB\n",
    "proc/cpuinfo": f"processor : 0\nmodel name : Toy 3000\nflags : fpu {V3}\n\nmodel name : Other\n",
    "proc/self/cgroup": "0::/user/me\n",
    "proc/sys/kernel/hostname": "toy.example.org\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "etc/os-release": 'NAME="Debian GNU/Linux"\nID=debian\n# a comment\nVERSION_ID="12"\n',
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "0\n",
    "sys/devices/system/cpu/cpu2/topology/physical_package_id": "1\n",
    "sys/devices/system/cpu/cpu3/topology/physical_package_id": "1\n",
}
QUOTA, LIMIT = "sys/fs/cgroup/user/cpu.max", "sys/fs/cgroup/user/me/memory.max"


@pytest.fixture(autouse=True)
def no_gpus_of_our_own(monkeypatch):
    monkeypatch.setattr("jobman.engines.local.gpus._NVML", "libnvidia-ml.so.none")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def machine(tmp_path):
    """A folder that looks like the root of a machine."""

    def make(**changed):
        root = tmp_path / "root"
        for name, text in {**FILES, **changed}.items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        return root

    return make


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program on the PATH."""

    def make(name, script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", str(folder))

    return make


# -- cores, memory, storage, sockets ------------------------------------------------------------------------


def test_cores_are_those_this_process_may_run_on(machine):
    assert find_cores(machine(), {5, 2, 9}) == (3, (2, 5, 9))


@pytest.mark.parametrize(
    ("files", "amount"),
    [
        ({QUOTA: "250000 100000\n"}, 2),
        ({QUOTA: "50000 100000\n"}, 1),
        ({QUOTA: "max 100000\n"}, 4),
        ({QUOTA: "900000 100000\n"}, 4),
        ({QUOTA: "300000 100000\n", "sys/fs/cgroup/user/me/cpu.max": "200000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "200000 100000\n", "proc/self/cgroup": "0::/gone/elsewhere\n"}, 2),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/docker/x\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
    ],
)
def test_a_quota_allows_fewer_cores_and_then_none_by_number(machine, files, amount):
    numbers = (0, 1, 2, 3) if amount == 4 else ()
    assert find_cores(machine(**files), range(4)) == (amount, numbers)


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({}, 8 * GI),
        ({LIMIT: f"{GI}\n"}, GI),
        ({LIMIT: "max\n"}, 8 * GI),
        ({LIMIT: f"{GI + 1}\n"}, GI),
        ({LIMIT: f"{64 * GI}\n"}, 8 * GI),
        (
            {
                "proc/self/cgroup": "4:memory:/jobs/a\n0::/\n",
                "sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": f"{2 * GI}\n",
            },
            2 * GI,
        ),
        ({"proc/meminfo": "nothing of use\n"}, None),
    ],
)
def test_memory_is_the_machines_or_what_the_control_group_may_use(machine, files, memory):
    assert find_memory(machine(**files)) == memory


def test_sockets_are_those_of_the_cores_that_may_be_used(machine):
    root = machine()
    assert (find_sockets(root, range(4)), find_sockets(root, {2, 3}), find_sockets(root, {9})) == (2, 1, None)


def test_storage_is_the_size_of_a_file_system_even_of_a_folder_to_come(tmp_path):
    size = find_storage(tmp_path)
    assert size is not None
    assert size % MI == 0
    assert find_storage(tmp_path / "not" / "yet") == size


# -- facts --------------------------------------------------------------------------------------------------


def test_facts_are_found(machine, program):
    program("podman", "exit 0")
    found = find_facts((), machine(), "x86_64")
    found.pop("python.version")
    assert found == {
        "io.archspec.cpu.target": "amd64",
        "io.archspec.cpu.level": "x86_64_v3",
        "hardware.cpu.model": "Toy 3000",
        "hardware.gpu.available": "no",
        "os.name": "linux",
        "os.distribution": "debian",
        "os.version": "12",
        "os.kernel": "6.1.0-18-amd64",
        "host.name": "toy",
        "container.podman": "yes",
        "container.docker": "no",
        "container.apptainer": "no",
        "container.singularity": "no",
    }


@pytest.mark.parametrize(
    ("flags", "level"),
    [("fpu", "x86_64_v1"), (V2, "x86_64_v2"), (V3, "x86_64_v3"), (V4, "x86_64_v4"), ("avx512f", "x86_64_v1")],
)
def test_the_level_of_a_processor_is_the_highest_it_has_all_of(machine, flags, level):
    root = machine(**{"proc/cpuinfo": f"flags : {flags}\n"})
    assert find_facts((), root, "x86_64")["io.archspec.cpu.level"] == level


def test_arm_has_a_family_and_no_level(machine):
    found = find_facts((), machine(), "aarch64")
    assert found["io.archspec.cpu.target"] == "arm64"
    assert "io.archspec.cpu.level" not in found


def test_a_machine_that_says_nothing_of_itself_still_has_a_name(tmp_path):
    assert host_name(tmp_path) == "localhost"
    assert find_facts((), tmp_path, "riscv64")["io.archspec.cpu.target"] == "riscv64"
    assert find_cores(tmp_path, {0}) == (1, (0,))
    assert find_memory(tmp_path) is None


# -- GPUs ---------------------------------------------------------------------------------------------------

SMI = "printf '%s\\n' 'GPU-aa, Toy A100, 40960' 'GPU-bb, Toy A100, 40960' 'GPU-cc, Toy A100, [N/A]'"
A100 = [Gpu(f"GPU-{name}", "Toy A100", 40 * GI) for name in ("aa", "bb")]


def test_gpus_are_listed_by_nvidia_smi(program, tmp_path):
    program("nvidia-smi", SMI)
    assert find_gpus(tmp_path) == (*A100, Gpu("GPU-cc", "Toy A100", 0))


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        ("1", ["GPU-bb"]),
        ("2,0", ["GPU-cc", "GPU-aa"]),
        ("GPU-b", ["GPU-bb"]),
        ("", []),
        ("-1", []),
        ("0,7,1", ["GPU-aa"]),
        ("NoDevFiles", []),
    ],
)
def test_only_visible_gpus_are_ours(program, tmp_path, monkeypatch, visible, uuids):
    program("nvidia-smi", SMI)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.uuid for gpu in find_gpus(tmp_path)] == uuids


@pytest.mark.parametrize("script", ["echo no devices were found; exit 6", "echo nonsense", "exit 0"])
def test_a_driver_that_does_not_work_means_no_gpus(program, tmp_path, script):
    program("nvidia-smi", script)
    assert find_gpus(tmp_path) == ()


def test_a_library_that_is_not_nvidias_means_no_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr("jobman.engines.local.gpus._NVML", "libc.so.6")
    assert find_gpus(tmp_path) == ()


def test_gpus_of_amd_are_found_in_sysfs(machine):
    nodes = "sys/class/kfd/kfd/topology/nodes"
    root = machine(
        **{
            "dev/kfd": "",
            f"{nodes}/0/properties": "cpu_cores_count 8\nsimd_count 0\n",
            f"{nodes}/1/properties": "cpu_cores_count 0\nsimd_count 256\nunique_id 255\n",
            f"{nodes}/1/name": "toy-mi300\n",
            f"{nodes}/1/mem_banks/0/properties": f"heap_type 1\nsize_in_bytes {GI}\n",
        }
    )
    assert find_gpus(root) == (Gpu("GPU-00000000000000ff", "toy-mi300", GI, "amd"),)


# -- nodes --------------------------------------------------------------------------------------------------


def test_a_machine_is_one_node(machine, program, tmp_path):
    program("nvidia-smi", SMI)
    (found,) = this_machine({"site.rack": "r7"}, root=machine(), allowed={1, 3}, scratch=tmp_path)
    assert found.name == "toy"
    assert found.cores == (1, 3)
    assert len(found.gpus) == 3
    storage = found.node.amounts["storage"]
    assert found.node.amounts == {"core": 2, "socket": 2, "memory": 8 * GI, "storage": storage, "gpu": 3}
    assert found.node.facts["site.rack"] == "r7"
    assert found.node.facts["hardware.gpu.model"] == "Toy A100"
    assert found.node.labels == found.node.facts


def test_facts_of_the_settings_win(machine):
    (found,) = this_machine({"host.name": "elsewhere"}, root=machine(), allowed={0})
    assert found.node.facts["host.name"] == "elsewhere"


def test_this_machine_has_cores_memory_and_a_name(tmp_path):
    (found,) = this_machine(scratch=tmp_path)
    assert 1 <= found.node.amounts["core"] <= len(os.sched_getaffinity(0))
    assert found.node.amounts["memory"] > 0
    assert found.node.amounts["storage"] > 0
    assert found.name
    assert found.node.facts["os.name"] == "linux"
    assert set(physical_cores(found, range(len(found.cores)))) <= os.sched_getaffinity(0)


def toy(cores=16, gpus=()):
    facts = {"host.name": "toy", "hardware.gpu.available": "yes" if gpus else "no"}
    node = ClusterNode(name="toy", amounts={"core": cores, "memory": 8 * GI, "storage": GI}, facts=facts)
    return LocalNode(node, tuple(range(100, 100 + cores)), tuple(gpus))


def test_virtual_nodes_share_the_machine():
    found = virtual_nodes("4x4", toy())
    assert [each.name for each in found] == ["node-0", "node-1", "node-2", "node-3"]
    assert {each.node.amounts["memory"] for each in found} == {2 * GI}
    assert found[0].node.amounts == {"core": 4, "memory": 2 * GI, "storage": GI // 4}
    assert found[0].node.facts["host.name"] == "toy"


def test_virtual_cores_are_real_ones_where_there_are_enough():
    assert [each.cores for each in virtual_nodes("2x3", toy(8))] == [(100, 101, 102), (103, 104, 105)]
    assert physical_cores(virtual_nodes("2x3", toy(8))[1], (0, 2)) == (103, 105)


def test_nothing_is_pinned_where_there_are_more_virtual_cores_than_real_ones():
    assert physical_cores(virtual_nodes("4x4", toy(8))[0], (0, 1)) == ()


def test_virtual_gpus_are_dealt_over_real_ones():
    found = virtual_nodes("2x1x3", toy(gpus=A100))
    assert [visible_gpus(each, (0, 1, 2)) for each in found] == [
        ("GPU-aa", "GPU-bb", "GPU-aa"),
        ("GPU-bb", "GPU-aa", "GPU-bb"),
    ]
    assert found[0].node.facts["hardware.gpu.model"] == "Toy A100"


def test_virtual_gpus_may_be_make_believe():
    (found,) = virtual_nodes("1x1x2", toy())
    assert found.node.amounts["gpu"] == 2
    assert found.node.facts["hardware.gpu.available"] == "yes"
    assert visible_gpus(found, (0, 1)) == ("0", "1")


def test_virtual_nodes_without_gpus_have_none():
    (found,) = virtual_nodes("1x1", toy(gpus=A100))
    assert "gpu" not in found.node.amounts
    assert found.gpus == ()
    assert found.node.facts["hardware.gpu.available"] == "no"


@pytest.mark.parametrize("text", ["4X4", " 4x4 ", "4x4x0"])
def test_forms_of_virtual_nodes(text):
    assert len(virtual_nodes(text, toy())) == 4


@pytest.mark.parametrize("text", ["", "4", "4x", "x4", "4x4x", "4x4x1x1", "-1x4", "4x4.5", "four", "４x４"])
def test_what_is_no_virtual_node_gets_an_example(text):
    with pytest.raises(VirtualNodesError, match="such as 4x4 or 4x4x2"):
        virtual_nodes(text, toy())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0x4", "0 nodes: write a number from 1 to 10,000"),
        ("10001x4", "10,001 nodes: write a number from 1 to 10,000"),
        ("4x0", "0 cores on a node: write a number from 1 to 1,024"),
        ("4x2000", "2,000 cores on a node"),
        ("4x4x65", "65 GPUs on a node: write a number from 0 to 64"),
    ],
)
def test_too_many_virtual_nodes_are_refused_with_the_limit(text, words):
    with pytest.raises(ValueError, match=words):
        virtual_nodes(text, toy())


def test_virtual_nodes_of_this_machine_need_nothing_but_their_number():
    assert [each.name for each in virtual_nodes("2x1")] == ["node-0", "node-1"]


def test_the_root_of_this_machine_is_read_by_default():
    assert host_name() == (
        Path("/proc/sys/kernel/hostname").read_text().strip().partition(".")[0] or "localhost"
    )
