"""Shapes as options of sbatch and srun."""

from __future__ import annotations

import pytest

from jobman.engines.slurm import shape
from jobman.engines.slurm.features import refusals
from jobman.settings.slurm import SlurmSite
from jobman.spec.shapes import Alternative
from tests.engines.scripts.running import plan_of

NAMES = {"fpga": "gres/fpga", "matlab": "license/matlab", "nic": "nic"}
SHAPES = {
    "{type: slot, count: 1}": "--ntasks=1 --cpus-per-task=1",
    "{type: slot, count: 4, with: [{type: core, count: 2}]}": "--ntasks=4 --cpus-per-task=2",
    "{type: node, count: 2}": "--nodes=2 --ntasks-per-node=1 --exclusive",
    "{type: node, count: 2, with: [{type: slot, count: 3, with: [{type: core, count: 2}]}]}": (
        "--nodes=2 --ntasks-per-node=3 --cpus-per-task=2"
    ),
    "{type: node, count: 1, with: [{type: core, count: 4}, {type: gpu, count: 2}]}": (
        "--nodes=1 --ntasks-per-node=1 --cpus-per-task=4 --gres=gpu:2"
    ),
    "{type: slot, count: 2, with: [{type: gpu, count: 1}]}": "--ntasks=2 --cpus-per-task=1 --gpus-per-task=1",
    "{type: node, count: 1, with: [{type: memory, count: 1Gi}, {type: core, count: 1}]}": (
        "--nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --mem=1024M"
    ),
    "{type: slot, count: 2, with: [{type: core, count: 2}, {type: memory, count: 1Gi}]}": (
        "--ntasks=2 --cpus-per-task=2 --mem-per-cpu=512M"
    ),
    "{type: node, count: 1, with: [{type: core, count: 1}, {type: storage, count: 10Mi}]}": (
        "--nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --tmp=10M"
    ),
    "{type: node, count: 2, with: [{type: core, count: 1}, {type: fpga, count: 1}, {type: nic, count: 2}]}": (
        "--nodes=2 --ntasks-per-node=1 --cpus-per-task=1 --gres=fpga:1,nic:2"
    ),
    "{type: node, count: 2, with: [{type: core, count: 1}, {type: matlab, count: 3}]}": (
        "--nodes=2 --ntasks-per-node=1 --cpus-per-task=1 --licenses=matlab:6"
    ),
}


def parts_of(written: str) -> Alternative:
    return plan_of(f"- {{name: t, command: ['true'], resources: {written}}}").units[0].alternatives[0]


@pytest.mark.parametrize("written", SHAPES)
def test_a_shape_is_asked_for_in_the_words_of_slurm(written: str) -> None:
    assert " ".join(shape.allocation(parts_of(written), NAMES)) == SHAPES[written]


def test_what_asks_for_nothing_is_one_task() -> None:
    assert shape.allocation((), NAMES) == ["--ntasks=1"]


def test_copies_of_a_step_take_their_part_of_the_allocation() -> None:
    written = "{type: node, count: 2, with: [{type: slot, count: 3, with: [{type: core, count: 2}]}]}"
    assert " ".join(shape.step(parts_of(written))) == (
        "--nodes=2 --ntasks=6 --ntasks-per-node=3 --exact --cpus-per-task=2"
    )


def test_whole_nodes_are_not_divided_among_steps() -> None:
    assert "--exact" not in shape.step(parts_of("{type: node, count: 2}"))


def test_a_type_that_nobody_named_is_told() -> None:
    parts = parts_of("{type: node, count: 1, with: [{type: core, count: 1}, {type: fpga, count: 1}]}")
    assert list(shape.known_types(parts, {})) == ["fpga"]
    assert list(shape.known_types(parts, NAMES)) == []


def test_who_asks_for_such_a_type_is_told_where_its_name_belongs() -> None:
    plan = plan_of("- {name: t, command: ['true'], resources: {type: fpga, count: 1}}")
    (found,) = refusals(plan, SlurmSite())
    assert (found.feature, found.units) == ("shape.site-type", ("t",))
    assert "`slurm.resources` of the settings does not say what fpga is called" in found.note
    assert refusals(plan, SlurmSite(resources=NAMES)) == []
