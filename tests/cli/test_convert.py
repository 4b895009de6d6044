"""`jobman convert`: the document on stdout or in a file, remarks on stderr, errors with exit code 3."""

import json
from pathlib import Path

import pytest
import yaml

SCRIPT = """\
#!/bin/bash
#SBATCH -J demo -n 2 -t 5
#SBATCH --mail-type=END
echo hello
"""


@pytest.fixture
def script(write):
    return write(SCRIPT, "demo.sh")


def test_the_document_goes_to_stdout_and_remarks_to_stderr(jobman, script):
    answer = jobman("convert", script)
    assert answer.code == 0
    assert yaml.safe_load(answer.out)["name"] == "demo"
    assert answer.err == (
        "demo.sh:3: JC201: `--mail-type=END` is not carried over: jobman sends no mail; "
        "`jobman wait JOB` ends when the job does\n"
    )


def test_what_comes_out_passes_the_check(jobman, script):
    assert jobman("convert", script, "--to", "demo.yaml").out == ""
    assert jobman("check", "--strict", "demo.yaml") == (0, "demo.yaml: ok (1 task)\n", "")


def test_arguments_of_the_script_stand_behind_it(jobman, script):
    answer = jobman("convert", script, "one", "two words")
    assert yaml.safe_load(answer.out)["tasks"][0]["command"][-2:] == ["one", "two words"]


def test_a_document_in_json(jobman, script):
    plain = yaml.safe_load(jobman("convert", script).out)
    assert jobman("convert", script, "-o", "json").data == plain
    assert jobman("convert", script, "--to", "demo.json").code == 0
    assert json.loads(Path("demo.json").read_text()) == plain


def test_standard_input(jobman):
    answer = jobman("convert", "-", stdin=SCRIPT)
    assert answer.code == 0
    assert answer.err.startswith("<stdin>:3: JC201: ")


def test_strict_makes_errors_of_remarks(jobman, script):
    answer = jobman("convert", "--strict", script)
    assert (answer.code, answer.out) == (3, "")
    assert "demo.sh:3:9: error JC201: " in answer.err


def test_errors_are_shown_with_their_line(jobman, write):
    answer = jobman("convert", write(SCRIPT.replace("--mail-type=END", "--ntassks=2"), "wrong.sh"))
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.splitlines() == [
        "wrong.sh:3:9: error JC101: there is no option `--ntassks`",
        "    3 | #SBATCH --ntassks=2",
        "      |         ^^^^^^^^^^^",
        "      help: did you mean `--ntasks`?",
    ]


def test_errors_as_data(jobman, write):
    answer = jobman("convert", write(SCRIPT.replace("-n 2", "-n x"), "wrong.sh"), "-o", "json")
    assert (answer.code, answer.codes) == (3, ["JC105", "JC201"])


@pytest.mark.parametrize("text", ["version: 1\ntasks: []\n", "hello\n"])
def test_what_is_neither_script_nor_jobspec(jobman, write, text):
    answer = jobman("convert", write(text, "other"))
    assert (answer.code, answer.out) == (3, "")
    assert "error JC111" in answer.err


@pytest.mark.parametrize("file", ["missing.sh", "."])
def test_a_file_that_cannot_be_read(jobman, file):
    assert jobman("convert", file).code == 3


def test_a_place_that_cannot_be_written(jobman, script):
    answer = jobman("convert", script, "--to", "no/such/folder.yaml")
    assert answer.code == 1
    assert "jobman: cannot write no/such/folder.yaml" in answer.err


def test_the_jobspec_of_flux(jobman, write):
    name = write(
        '{"version": 1, "resources": [{"type": "slot", "count": 2, "label": "t",'
        ' "with": [{"type": "core", "count": 1}]}], "tasks": [{"command": ["true"], "slot": "t",'
        ' "count": {"per_slot": 1}}], "attributes": {"system": {"duration": 60}}}',
        "job.json",
    )
    answer = jobman("convert", name)
    assert (answer.code, answer.err) == (0, "")
    assert yaml.safe_load(answer.out)["tasks"][0]["attributes"] == {"duration": "1m"}


def test_every_remark_has_a_page(jobman):
    from jobman.convert.codes import CONVERSION_CODES

    assert [code for code in CONVERSION_CODES if not jobman("help", code).out.startswith(f"{code}: ")] == []
