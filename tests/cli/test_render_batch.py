"""`jobman -e slurm render`: scripts as text, as data and as files, without a Slurm to ask."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ONE = "resources: {type: slot, count: 1}"
HELLO = f"version: 1\nname: hello\ntasks: [{{name: say, command: [echo, hello], {ONE}}}]\n"
CHAIN = (
    "version: 1\nname: chain\ntasks:\n"
    f"- {{name: first, command: [echo], {ONE}}}\n"
    f"- {{name: second, depends_on: first, command: [echo], {ONE}}}\n"
    f"- {{name: submit, gates: [go], command: [echo], {ONE}}}\n"
)
EITHER = (
    "version: 1\nresources:\n  many: {type: node, count: 9999}\n  one: {type: node, count: 1}\n"
    "tasks: [{name: say, command: [echo], resources: many|one}]\n"
)
CLOSED = HELLO.replace("name: say,", "name: say, scheduler: fluence,")


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch, tmp_path):
    """A machine without the commands of Slurm."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.fixture
def render(jobman):
    def run(*arguments, **more):
        return jobman("-e", "slurm", "render", *arguments, **more)

    return run


def test_each_script_stands_below_its_name_and_the_one_that_submits_them_comes_last(render, write):
    answer = render(write(CHAIN))
    assert (answer.code, answer.err) == (0, "")
    titles = [line.split()[2] for line in answer.out.splitlines() if line.startswith("# ====")]
    scripts = [f"scripts/{name}.sh" for name in ("first", "second", "submit", "_plain")]
    assert titles == [*scripts, "submit.sh"]


def test_the_same_document_is_rendered_the_same_and_elsewhere_it_is_another_job(render, write, monkeypatch):
    name = write(HELLO)
    first = render(name).out
    assert first == render(name).out
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert render(f"../{name}", "-o", "json").data["id"] not in first


def test_the_data_say_what_waits_for_what(render, write, bare_home):
    data = render(write(CHAIN), "-o", "json").data
    assert list(data) == ["id", "name", "folder", "scripts", "submit"]
    assert data["folder"] == str(bare_home / ".jobman" / "jobs" / "slurm" / data["id"])
    assert [(each["name"], each["after"], each["held"]) for each in data["scripts"]] == [
        ("first", [], False),
        ("second", [{"when": "ok", "name": "first"}], False),
        ("submit", [], True),
    ]
    assert yaml.safe_load(render(write(CHAIN), "-o", "yaml").out) == data


def test_several_documents_are_a_list(render, write):
    data = render(write(f"{HELLO}---\n{HELLO}"), "-o", "json").data
    assert [each["name"] for each in data] == ["hello", "hello"]
    assert data[0]["id"] != data[1]["id"]


def test_the_settings_say_where_jobs_leave_word(jobman, write, tmp_path):
    settings = write("slurm: {folder: $JOBMAN_STATE/jobs, partition: long}\n", "settings.yaml")
    data = jobman("-s", settings, "-e", "slurm", "render", write(HELLO), "-o", "json").data
    assert data["folder"].startswith(f"{tmp_path / 'state'}/jobs/slurm/")
    assert "\n#SBATCH --partition=long\n" in data["scripts"][0]["text"]


def test_files_are_written_and_can_be_run(render, write):
    answer = render(write(CHAIN), "--to", "out")
    assert answer.out.split() == [
        *(f"out/scripts/{name}.sh" for name in ("first", "second", "submit", "_plain")),
        "out/submit.sh",
        "out/about.json",
    ]
    assert all(os.access(path, os.X_OK) == path.endswith(".sh") for path in answer.out.split())
    assert render(write(CHAIN), "--to", "out").code == 0
    assert render(write(HELLO), "--to", "out").code == 1


def test_where_slurm_refuses_nothing_is_left_of_what_was_submitted_by_hand(
    render, write, bare_home, monkeypatch
):
    render(write(CHAIN), "--to", "out")
    monkeypatch.setenv("PATH", os.defpath)
    refusing = "sbatch() { return 1; }; export -f sbatch; out/submit.sh"
    done = subprocess.run(["bash", "-c", refusing], capture_output=True)
    assert done.returncode != 0
    assert b"nothing is submitted" in done.stderr
    assert list((bare_home / ".jobman" / "jobs" / "slurm").iterdir()) == []


def test_where_slurm_cannot_be_asked_the_leftmost_alternative_is_taken(render, write):
    answer = render(write(EITHER))
    assert answer.code == 0
    assert "#SBATCH --nodes=9999" in answer.out
    assert answer.err == "jobman: Slurm cannot be asked from here: of alternatives the leftmost is rendered\n"


def test_what_slurm_cannot_do_is_refused_with_reason_and_task(render, write):
    answer = render(write(CLOSED))
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.startswith(
        "jobman: the slurm engine cannot do what is asked\n        scheduler (say): "
    )
    data = render(write(CLOSED), "-o", "json").data
    assert [each["feature"] for each in data["refused"]] == ["scheduler"]


def test_of_several_documents_all_refusals_are_told_and_nothing_is_rendered(render, write):
    answer = render(write(f"{HELLO}---\n{CLOSED}"), "--to", "out")
    assert (answer.code, answer.out, Path("out").exists()) == (4, "", False)
    assert "scheduler (hello: say): " in answer.err


def test_an_image_needs_a_program_or_is_left_out(render, write):
    name = write(HELLO.replace("name: say,", "name: say, image: 'a:1',"))
    assert render(name).code == 4
    assert render(name, "--no-container").code == 0


@pytest.mark.parametrize("option", [("-n", "lab"), ("--job-set",)])
def test_options_of_a_cluster_mean_nothing_here(render, write, option):
    answer = render(write(HELLO), *option)
    assert (answer.code, answer.out) == (2, "")
    assert "means nothing on slurm" in " ".join(answer.err.split())


def test_options_of_scripts_mean_nothing_on_a_cluster(jobman, write):
    answer = jobman("render", "-e", "kubernetes", write(HELLO), "--no-container")
    assert (answer.code, answer.out) == (2, "")


def test_a_machine_without_slurm_is_told_so_by_satisfy(jobman, write):
    answer = jobman("-e", "slurm", "satisfy", write(HELLO))
    assert (answer.code, answer.out) == (5, "")
    assert "Slurm is not on this machine: there is no command scontrol" in answer.err


def test_nodes_that_are_described_are_matched_without_asking_slurm(jobman, write):
    nodes = write("- {name: n1, cores: 8}\n", "nodes.yaml")
    assert jobman("-e", "slurm", "satisfy", write(HELLO), "--nodes", nodes).code == 0
