"""`jobman sbatch`: options and answers of sbatch, with any engine behind it."""

import pytest

from jobman.convert.sbatch_options import VARIABLES
from tests.cli.stub import Script

SCRIPT = "#!/bin/bash\n#SBATCH -J demo -n 2\necho hello\n"


@pytest.fixture(autouse=True)
def bare_shell(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def script(write):
    return write(SCRIPT, "demo.sh")


def test_it_answers_as_sbatch_does(jobman, service, script):
    assert jobman("sbatch", script) == (0, "Submitted batch job 0001beef\n", "")


def test_parsable_is_the_id_alone(jobman, service, script):
    assert jobman("sbatch", "--parsable", script).out == "0001beef\n"


def test_quiet_says_nothing(jobman, service, script):
    assert jobman("sbatch", "-Q", script) == (0, "", "")


def test_test_only_submits_nothing(jobman, service, script):
    answer = jobman("sbatch", "--test-only", script)
    assert (answer.code, answer.out) == (0, "")
    assert "demo would be submitted; nothing was" in answer.err
    assert service.jobs == {}


def test_wait_ends_with_the_code_of_the_job(jobman, service, script):
    service.scripts["demo"] = Script(state="failed", exit_code=7)
    assert jobman("sbatch", "-W", script) == (7, "Submitted batch job 0001beef\n", "")


def test_a_line_of_the_script_may_ask_for_it_too(jobman, service, write):
    service.scripts["demo"] = Script(state="failed", exit_code=7)
    name = write(SCRIPT.replace("-n 2", "--wait --parsable"), "demo.sh")
    assert jobman("sbatch", name) == (7, "0001beef\n", "")


def test_options_of_the_command_line_win_and_arguments_are_handed_on(jobman, service, script):
    assert jobman("sbatch", "-J", "other", "-c4", script, "-J", "a b").code == 0
    [submission] = service.submissions
    assert [job.details.name for job in service.jobs.values()] == ["other"]
    assert submission.document.endswith('  - demo.sh\n  - "-J"\n  - "a b"\n')


def test_variables_of_the_shell_stand_between_lines_and_command_line(jobman, service, script, monkeypatch):
    monkeypatch.setenv("SBATCH_JOB_NAME", "shell")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "10")
    monkeypatch.setenv("SBATCH_WAIT", "0")
    monkeypatch.setenv("SBATCH_EXCLUSIVE", "1")
    assert jobman("sbatch", "-t", "20", script).code == 0
    [submission] = service.submissions
    assert "name: shell  # SBATCH_JOB_NAME=shell\n" in submission.document
    assert "duration: 20m  # -t 20\n" in submission.document
    assert "exclusive: true" in submission.document


def test_verbose_prints_the_document(jobman, service, script):
    answer = jobman("sbatch", "-v", "--image", "tools:1", script, "a b")
    assert "image: tools:1\n" in answer.err
    assert '  - demo.sh\n  - "a b"\n' in answer.err


def test_a_script_from_standard_input(jobman, service):
    answer = jobman("sbatch", stdin=SCRIPT)
    assert (answer.code, answer.out) == (0, "Submitted batch job 0001beef\n")


def test_wrap_makes_a_script_of_a_command(jobman, service):
    answer = jobman("sbatch", "-v", "--wrap", "echo a | wc -c")
    assert answer.code == 0
    assert "    echo a | wc -c\n" in answer.err
    assert [job.details.name for job in service.jobs.values()] == ["wrap"]


def test_wrap_and_a_script_exclude_each_other(jobman, service, script):
    assert jobman("sbatch", "--wrap", "true", script).code == 2


def test_remarks_go_to_stderr(jobman, service, write):
    name = write(SCRIPT.replace("-n 2", "-p nosuch --mail-user=a@b"), "demo.sh")
    answer = jobman("sbatch", name)
    assert answer.out == "Submitted batch job 0001beef\n"
    assert [line.split(":")[:3] for line in answer.err.splitlines()] == [
        ["demo.sh", "2", " JC206"],
        ["demo.sh", "2", " JC201"],
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--wat"], 2),
        (["-n"], 2),
        (["--ntask=2"], 2),
        ([":", "-n", "2"], 2),
        (["--engine", "nosuch"], 2),
        (["missing.sh"], 3),
        (["-n", "x", "demo.sh"], 3),
        (["wrong.sh"], 3),
        (["plain.txt"], 3),
    ],
)
def test_a_wrong_use_or_script_submits_nothing(jobman, service, script, write, arguments, code):
    write("#!/bin/sh\n#SBATCH --wat\n", "wrong.sh")
    write("echo hello\n", "plain.txt")
    answer = jobman("sbatch", *arguments)
    assert (answer.code, answer.out, service.jobs) == (code, "", {})
    assert answer.err != ""


def test_a_misspelt_option_gets_a_guess(jobman, service):
    assert jobman("sbatch", "--parsabel").err == (
        "jobman: there is no option `--parsabel`\n        did you mean `--parsable`?\n"
    )


@pytest.mark.parametrize("option", ["-h", "--help", "--usage"])
def test_the_help_says_what_becomes_of_every_option(jobman, option):
    answer = jobman("sbatch", option)
    assert (answer.code, answer.err) == (0, "")
    for word in ("--ntasks", "--gres", "Kept for Slurm alone", "jobman's own", "--mail-type"):
        assert word in answer.out


def test_the_version_is_jobmans(jobman):
    assert jobman("sbatch", "-V").out == jobman("--version").out


def test_what_slurm_told_this_shell_is_not_handed_on(jobman, service, script, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("COLOUR", "blue")
    assert jobman("sbatch", script).code == 0
    [submission] = service.submissions
    assert submission.environment["COLOUR"] == "blue"
    assert "SLURM_JOB_ID" not in submission.environment
