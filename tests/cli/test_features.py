"""`jobman features`: the catalogue, for people and for programs."""

import os
import subprocess
import sys

import yaml

from jobman.engines.matrix import MATRIX
from jobman.plan.features import CATALOGUE


def test_every_feature_has_a_line_of_its_own(jobman):
    answer = jobman("features")
    assert (answer.code, answer.err) == (0, "")
    head, *lines = answer.out.splitlines()
    assert head.split("  ")[0] == "feature"
    assert [line.split()[0] for line in lines] == [feature.id for feature in CATALOGUE]
    assert [line.split()[-1 - len(MATRIX)] for line in lines] == [str(each.section) for each in CATALOGUE]
    assert all(feature.title in line for feature, line in zip(CATALOGUE, lines, strict=True))


def test_every_engine_that_is_built_has_a_column_and_no_other(jobman):
    head, *lines = jobman("features").out.splitlines()
    assert head.split()[-len(MATRIX) :] == list(MATRIX)
    assert list(MATRIX) == ["local", "kubernetes", "kubernetes-managed", "slurm", "flux"]
    for feature, line in zip(CATALOGUE, lines, strict=True):
        assert line.split()[-len(MATRIX) :] == [engine[feature.id].how for engine in MATRIX.values()]


def test_the_data_has_id_title_section_and_engines(jobman):
    data = jobman("features", "-o", "json").data
    assert [(each["id"], each["title"], each["section"]) for each in data] == [
        (feature.id, feature.title, feature.section) for feature in CATALOGUE
    ]
    grow = next(each for each in data if each["id"] == "group.grow")
    assert grow["engines"]["local"]["how"] == "refused"
    assert "cannot grow" in grow["engines"]["local"]["note"]
    assert grow["engines"]["kubernetes"] == {"how": "emulated", "note": "each task asks for its own share"}


def test_json_and_yaml_say_the_same(jobman):
    found = yaml.load(jobman("-o", "yaml", "features").out, Loader=yaml.CSafeLoader)
    assert found == jobman("features", "-o", "json").data


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
