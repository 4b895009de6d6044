"""`jobman features`: the catalogue, for people and for programs."""

import os
import subprocess
import sys

import yaml

from jobman.plan.features import CATALOGUE


def test_every_feature_has_a_line_of_its_own(jobman):
    answer = jobman("features")
    assert (answer.code, answer.err) == (0, "")
    head, *lines = answer.out.splitlines()
    assert head.split("  ")[0] == "feature"
    assert [line.split()[0] for line in lines] == [feature.id for feature in CATALOGUE]
    assert [line.split()[-1] for line in lines] == [str(feature.section) for feature in CATALOGUE]
    assert all(feature.title in line for feature, line in zip(CATALOGUE, lines, strict=True))


def test_the_data_has_id_title_and_section(jobman):
    data = jobman("features", "-o", "json").data
    assert data == [{"id": each.id, "title": each.title, "section": each.section} for each in CATALOGUE]


def test_json_and_yaml_say_the_same(jobman):
    assert yaml.safe_load(jobman("-o", "yaml", "features").out) == jobman("features", "-o", "json").data


def test_a_closed_pipe_ends_the_command_quietly():
    pipeline = subprocess.run(
        ["bash", "-c", '"$0" -m jobman.cli.main features | head -1; echo "${PIPESTATUS[0]}"', sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
    )
    first, status = pipeline.stdout.splitlines()
    assert first.startswith("feature ")
    assert status == "0"
    assert pipeline.stderr == ""


def test_a_pipe_that_is_closed_before_anything_is_written_ends_the_command_quietly():
    ours, theirs = os.pipe()
    os.close(ours)
    process = subprocess.run(
        [sys.executable, "-m", "jobman.cli.main", "features", "-o", "json"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(theirs)
    assert (process.returncode, process.stderr) == (0, "")
