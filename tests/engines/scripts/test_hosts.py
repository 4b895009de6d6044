"""Lists of hosts, as Slurm itself writes and reads them."""

from __future__ import annotations

import os
import subprocess

import pytest

from jobman.engines.scripts.hosts import expanded

LISTS = {
    "n1": ["n1"],
    "n[1-3]": ["n1", "n2", "n3"],
    "n[1,3],login": ["n1", "n3", "login"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "r[1-2]n[1-2]": ["r1n1", "r1n2", "r2n1", "r2n2"],
    "a-[1-2],b": ["a-1", "a-2", "b"],
    "n[1-2,05-06]": ["n1", "n2", "n05", "n06"],
}


@pytest.mark.parametrize("text", LISTS)
def test_a_list_is_every_host_of_it(text: str) -> None:
    assert expanded(text) == LISTS[text]


def test_a_number_may_stand_in_the_middle() -> None:
    assert expanded("a-[1-2]-x") == ["a-1-x", "a-2-x"]


@pytest.mark.parametrize("text", ["", "n[", "n[]", "n[x-y]", "]"])
def test_what_is_no_list_breaks_nothing(text: str) -> None:
    assert isinstance(expanded(text), list)


@pytest.mark.component("slurm")
@pytest.mark.parametrize("text", LISTS)
def test_slurm_reads_a_list_in_the_same_way(text: str) -> None:
    environment = {**os.environ, "SLURM_CONF": os.environ["JOBMAN_LAB_SLURM_CONF"]}
    done = subprocess.run(
        ["scontrol", "show", "hostnames", text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == expanded(text)
