"""The scripts that documents become: what is in their heads, and that a shell can read them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.api import load, loads
from jobman.engines.flux.compile import compile_plan
from jobman.engines.flux.engine import Flux
from jobman.engines.flux.features import refusals
from jobman.engines.flux.options import directives, displaced, read_directives
from jobman.engines.scripts.alternatives import leftmost
from jobman.engines.scripts.site import Job
from jobman.settings.flux import FluxSite

JOB = Job(id="4f2a", name="demo", folder="/shared/jobs/4f2a", file="demo.yaml", cwd="/work")
SITE = FluxSite(container=("apptainer", "exec", "{image}"), memory_per_core=2**30)
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
ONE = "name: a, command: x, resources: {type: slot, count: 1}"


def scripts(text: str, site: FluxSite = SITE) -> dict[str, str]:
    plan = loads(f"version: 1\nname: demo\n{text}").plan()
    return {script.name: script.text for script in compile_plan(plan, JOB, site)}


def head(text: str, site: FluxSite = SITE) -> list[str]:
    """The options of the one script of a task, without those that every script has."""
    (script,) = scripts(f"tasks:\n- {text}", site).values()
    return [word for word in read_directives(script) if word.partition("=")[0] not in ALWAYS]


ALWAYS = ("--job-name", "--output", "--cwd")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("{type: slot, count: 1}", "-n1 -c1"),
        ("{type: slot, count: 3, with: [{type: core, count: 2}]}", "-n3 -c2"),
        ("{type: node, count: 2}", "-N2 -n2 --exclusive"),
        ("{type: node, count: 2, with: [{type: core, count: 4}]}", "-N2 -n2 -c4"),
        (
            "{type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 2}]}]}",
            "-N2 -n4 -c2",
        ),
        (
            "{type: slot, count: 1, with: [{type: gpu, count: 2}]}",
            "-n1 -c1 -g2 -o gpu-affinity=per-task",
        ),
        ("{type: slot, count: 1, with: [{type: memory, count: 3Gi}]}", "-n1 -c3"),
    ],
)
def test_a_shape_is_nodes_slots_cores_and_gpus(shape: str, words: str):
    assert head(f"{{name: a, command: x, resources: {shape}}}") == words.split()


def test_a_limit_has_room_for_all_attempts_and_an_end_in_peace():
    assert head(f"{{{ONE}, retries: 1, attributes: {{duration: 60}}}}")[-1] == "-t240s"


def test_a_queue_and_a_bank_come_from_the_settings():
    site = FluxSite(queue="batch", account="physics")
    assert head(f"{{{ONE}}}", site)[-2:] == ["-qbatch", "-Bphysics"]


def test_what_the_document_gives_displaces_what_would_be_there():
    flags = "attributes: {flags: {flux: [--cores-per-slot=8, -q, debug]}}"
    site = FluxSite(queue="batch")
    found = head(f"{{{ONE}, {flags}}}", site)
    assert found == ["-n1", "--cores-per-slot=8", "-q", "debug"]


def test_a_whole_shape_displaces_all_of_it():
    assert displaced(["-N2", "-n4", "-c1", "-t5m"], ["--resources-shape=node=2"]) == ["-t5m"]


@given(st.lists(st.text(st.characters(exclude_characters="\n\x00", codec="utf-8"), min_size=1), max_size=4))
def test_options_in_a_head_are_read_as_they_were_written(values: list[str]):
    words = [f"--job-name={value}" for value in values]
    script = "\n".join(["#!/bin/bash", *directives(words), "true", "#flux: -n9"])
    assert read_directives(script) == words


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_without_flux_every_script_of_an_example_can_be_read_by_a_shell(example: Path, tmp_path: Path):
    """Or it is refused, with a reason."""
    spec = load(example)
    plan = leftmost(spec.plan())
    if refused := refusals(plan, SITE, no_container=True):
        assert all(each.note for each in refused)
        return
    found = compile_plan(plan, JOB, SITE)
    texts = [*(script.text for script in found), Flux({}).by_hand(JOB, found)]
    for number, text in enumerate(texts):
        place = tmp_path / f"{number}.sh"
        place.write_text(text)
        done = subprocess.run(["bash", "-n", place], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
