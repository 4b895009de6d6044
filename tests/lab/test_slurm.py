"""The Slurm of the lab, as everybody's tests count on it: what its nodes have, and what it refuses."""

from __future__ import annotations

import os
import subprocess

import pytest

from lab.components import FOLDER, MISSING

pytestmark = pytest.mark.component("slurm")


def slurm(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of Slurm, on the usual cluster."""
    environment = {**os.environ, "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def script(variant: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`lab/slurm`."""
    environment = {**os.environ, "JOBMAN_LAB_SLURM": variant}
    return subprocess.run(
        [FOLDER / "slurm", *words], env=environment, capture_output=True, text=True, timeout=60
    )


def test_half_of_the_nodes_are_fast_and_a_quarter_has_gpus():
    lines = slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%N %f %G").stdout.splitlines()
    fast, plain, gpus = "amd64,ssd (null)", "amd64 (null)", "amd64 gpu:4"
    what = [fast] * 4 + [plain] * 2 + [gpus] * 2
    assert sorted(lines) == [f"n{number} {each}" for number, each in enumerate(what, start=1)]


REFUSED = [
    ("-N4 --constraint=ssd", "-N5 --constraint=ssd"),
    ("-N2 --gres=gpu:4", "-N1 --gres=gpu:5"),
    ("-N1 -n2 --ntasks-per-socket=1", "-N1 -n3 --ntasks-per-socket=1"),
    ("--sockets-per-node=2", "--sockets-per-node=3"),
    ("--mem=60G", "--mem=80G"),
    ("--tmp=10000", "--tmp=20000"),
    ("--partition=short --time=30", "--partition=short --time=31"),
    ("--array=1-20000", "--array=1-20001"),
]


@pytest.mark.parametrize(("fits", "exceeds"), REFUSED)
def test_nodes_and_partitions_have_sizes(fits: str, exceeds: str):
    test = ("sbatch", "--test-only", "--wrap=true")
    assert slurm(*test, *fits.split()).returncode == 0
    assert slurm(*test, *exceeds.split()).returncode == 1


def test_copies_have_gpus_of_their_own():
    tell = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]
    given = slurm("srun", "-N1", "-n2", "--gpus-per-task=1", *tell).stdout.split()
    assert len(set(given)) == 2
    assert set(given) <= {"0", "1", "2", "3"}


def test_memory_is_dealt_out_and_not_enforced():
    greedy = "print(len(bytearray(50_000_000)))"
    assert slurm("srun", "-n1", "--mem=1", "python3", "-c", greedy).stdout == "50000000\n"


def test_there_are_only_the_variants_it_knows():
    done = script("nonsense", "up")
    assert done.returncode == MISSING
    assert done.stdout == "there is no Slurm named nonsense, only faults, accounting and large\n"


@pytest.mark.parametrize("words", [("ctld", "stop"), ("node", "stop", "n1")])
def test_nobody_breaks_the_one_that_all_count_on(words: tuple[str, ...]):
    done = script("", *words)
    assert done.returncode == MISSING
    assert done.stdout == "others count on this Slurm: JOBMAN_LAB_SLURM=faults means another\n"
