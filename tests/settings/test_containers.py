"""What runs images on the nodes of a batch system, as the settings say it."""

import pytest

from jobman.settings import settings_from_text
from jobman.settings.flux import flux_of
from jobman.settings.slurm import slurm_of
from jobman.spec.problems import SpecError


@pytest.mark.parametrize("program", ["apptainer", "singularity", "podman", "docker"])
def test_a_program_that_is_known_is_enough(program):
    values = settings_from_text(
        f"slurm: {{container: {program}}}\nflux: {{container: {program}}}\n", "s"
    ).values
    assert slurm_of(values).container == flux_of(values).container == (program,)


def test_any_other_is_written_with_its_words():
    words = '[srun, "--container-image={image}", "--container-workdir={cwd}", "{environment}"]'
    values = settings_from_text(f"slurm: {{container: {words}}}\n", "s").values
    assert slurm_of(values).container == (
        "srun",
        "--container-image={image}",
        "--container-workdir={cwd}",
        "{environment}",
    )


@pytest.mark.parametrize(
    ("code", "written", "words"),
    [
        ("JS212", "podmann", "podman"),
        ("JS212", "enroot", "or all words that run it"),
        ("JS213", "[]", ""),
        ("JS201", "[podman]", "`{image}` stands where the image does"),
        ("JS201", "[podman, run, image]", "`{image}` stands where the image does"),
        ("JS201", '[run, "{image}", "{folder}"]', "{image}, {cwd}, {scratch}, {name}, {environment}, {init}"),
        ("JS201", '[run, "-e={environment}", "{image}"]', "`{environment}` is a word of its own"),
        ("JS103", "{image: a}", "a program that runs images, or a list of words"),
    ],
)
def test_what_would_run_no_image_is_told_with_its_place(code, written, words):
    with pytest.raises(SpecError) as wrong:
        settings_from_text(f"slurm:\n  container: {written}\n", "settings.yaml")
    (problem,) = wrong.value.problems
    assert (problem.code, problem.place and problem.place.line) == (code, 2)
    assert words in f"{problem.message} {problem.advice}"
