"""Nodes, as scontrol of several versions tells of them."""

from __future__ import annotations

import pytest

from jobman.engines.slurm.nodes import fields_of, megabytes, read_nodes, with_types

_GIB = 2**30
LINE = (
    "NodeName=n7 Arch=x86_64 CoresPerSocket=4 CPUAlloc=2 CPUTot=8 AvailableFeatures=amd64,ssd"
    " ActiveFeatures=amd64 Gres=gpu:a100:4(S:0-1),fpga:1 GresUsed=gpu:a100:1(IDX:0),fpga:0"
    " OS=Linux 6.1 #1 SMP State=MIXED TmpDisk=1024 Sockets=2 Partitions=main,short"
    " CfgTRES=cpu=8,mem=62.50G,billing=8 AllocTRES=cpu=2,mem=1000M"
    " Reason=bad fan = hot [root@2026-01-01T00:00:00]"
)


def test_a_node_is_told_with_all_it_has() -> None:
    (node,) = read_nodes(LINE)
    assert (node.name, node.state, node.facts, node.partitions) == ("n7", "up", ("amd64",), ("main", "short"))
    assert node.amounts == {"core": 8, "memory": 62.5 * _GIB, "gpu": 4, "fpga": 1}
    assert node.used == {"core": 2, "memory": 1000 * 2**20, "gpu": 1}
    assert node.uncounted == {"socket": 2, "storage": _GIB}


def test_values_may_have_blanks_in_them() -> None:
    assert fields_of(LINE)["OS"] == "Linux 6.1 #1 SMP"


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("IDLE", "up"),
        ("ALLOCATED", "up"),
        ("MIXED+PLANNED", "up"),
        ("IDLE+DRAIN", "draining"),
        ("MIXED+DRAIN", "draining"),
        ("DOWN", "down"),
        ("DOWN*", "down"),
        ("IDLE*", "down"),
        ("IDLE+NOT_RESPONDING", "down"),
        ("IDLE+POWERED_DOWN", "down"),
        ("IDLE+POWER", "down"),
        ("IDLE+MAINTENANCE", "up"),
        ("MAINT", "up"),
        ("MAINT*", "down"),
        ("RESERVED", "up"),
        ("SOMETHING_NEW", "down"),
    ],
)
def test_a_state_is_one_of_three(word: str, state: str) -> None:
    (node,) = read_nodes(LINE.replace("State=MIXED", f"State={word}"))
    assert node.state == state


@pytest.mark.parametrize(
    ("gres", "amounts"),
    [
        ("(null)", {}),
        ("gpu:4", {"gpu": 4}),
        ("gpu", {"gpu": 1}),
        ("gpu:a100", {"gpu": 1}),
        ("gpu:a100:2,gpu:h100:2", {"gpu": 4}),
        ("shmem:2K", {"shmem": 2048}),
        ("gpu:a100:2(S:0,1),nic:1", {"gpu": 2, "nic": 1}),
    ],
)
def test_generic_resources_are_counted(gres: str, amounts: dict[str, float]) -> None:
    (node,) = read_nodes(f"NodeName=n1 State=IDLE Gres={gres} CfgTRES= AllocTRES=")
    assert node.amounts == amounts


def test_memory_is_told_in_several_units() -> None:
    assert [megabytes(text) for text in ("1024K", "5M", "1.5G", "1T", "7", "")] == [1, 5, 1536, 1024**2, 7, 0]


def test_licences_are_enough_on_every_node() -> None:
    (node,) = read_nodes(LINE)
    named = with_types(node, {"accel": "gres/fpga", "matlab": "license/matlab", "x": "gres/none"})
    assert (named.amounts["accel"], named.amounts["x"]) == (1, 0)
    assert named.amounts["matlab"] > 10**9
