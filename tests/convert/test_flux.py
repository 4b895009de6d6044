"""Flux's own jobspec and its batch scripts; what the real Flux prints where it is."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.convert.scripts import NOW, codes, complaints, convert

# What `flux run -N2 -n4 -c2 -t 5m …` and `flux batch` of version 0.88 print with --dry-run, shortened.
TASK = {"command": ["./app", "-x"], "slot": "task", "count": {"per_slot": 1}}
SLOT = {"type": "slot", "count": 2, "with": [{"type": "core", "count": 2}], "label": "task"}
SHELL = {"rlimit": {"cpu": -1, "nofile": 20000}, "mpi": "none"}


def jobspec(*resources, task=TASK, options=None, user=None, **system):
    """A jobspec with these resources and system attributes."""
    shell = {"options": {**SHELL, **(options or {})}}
    attributes = {"system": {"duration": 300.0, "shell": shell, **system}}
    if user is not None:
        attributes["user"] = user
    return {
        "resources": list(resources or [{"type": "node", "count": 2, "with": [SLOT]}]),
        "tasks": [task],
        "attributes": attributes,
        "version": 1,
    }


def read(data):
    return convert("job.json", json.dumps(data), NOW)


def test_a_program_on_its_slots():
    found = read(jobspec(cwd="/work", job={"name": "app"}, queue="batch", bank="ocean"))
    assert found.document == {
        "version": 1,
        "name": "app",
        "queue": "batch",
        "account": "ocean",
        "tasks": [
            {
                "name": "app",
                "resources": {
                    "type": "node",
                    "count": 2,
                    "with": [{"type": "slot", "count": 2, "with": [{"type": "core", "count": 2}]}],
                },
                "attributes": {"duration": "5m", "cwd": "/work"},
                "command": ["./app", "-x"],
            }
        ],
    }
    assert (codes(found), complaints(found)) == ([], [])


def test_yaml_is_read_as_well():
    text = """\
version: 1
resources: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]
tasks: [{command: [app], slot: a, count: {per_slot: 1}}]
attributes: {system: {duration: 0}}
"""
    found = convert("job.yaml", text, NOW)
    assert found.document["tasks"][0]["command"] == ["app"]
    assert "attributes" not in found.document["tasks"][0]


@pytest.mark.parametrize(
    ("system", "key", "value"),
    [
        ({"constraints": {"properties": ["a", "b"]}}, "requires", {"a": True, "b": True}),
        (
            {"dependencies": [{"scheme": "begin-time", "value": "1930000000.5"}]},
            "start",
            {"earliest": "2031-02-27T23:06:40+00:00"},
        ),
    ],
)
def test_a_key_of_the_document(system, key, value):
    found = read(jobspec(**system))
    assert found.document[key] == value
    assert (codes(found), complaints(found)) == ([], [])


def test_the_environment_comes_without_what_flux_set_for_itself():
    found = read(jobspec(environment={"A": "1", "FLUX_EXEC_PATH": "/x", "PWD": "/", "B": "{{x}}"}))
    assert found.document["tasks"][0]["attributes"]["environment"] == {"A": "1", "B": "{{brace}}{x}}"}


def test_shell_options_that_mean_something():
    output = {"stdout": {"type": "file", "path": "out.txt"}}
    found = read(jobspec(options={"output": output, "signal": {"timeleft": 30.0, "signum": 12}}))
    [task] = found.document["tasks"]
    assert task["attributes"]["stdout"] == task["attributes"]["stderr"] == "out.txt"
    assert task["signal"] == {"name": "USR2", "before": "30s"}
    assert (codes(found), complaints(found)) == ([], [])


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"dependencies": [{"scheme": "afterok", "value": "ƒabc"}]}, "JC201"),
        ({"constraints": {"hostlist": ["n1"]}}, "JC201"),
        ({"constraints": {"properties": ["^a"]}}, "JC202"),
        ({"options": {"cpu-affinity": "per-task"}}, "JC202"),
        ({"options": {"output": {"stdout": {"type": "file", "path": "{{id}}.txt"}}}}, "JC201"),
        ({"files": {"data.txt": {"data": "x"}}}, "JC201"),
        ({"preemptible-after": 10}, "JC201"),
    ],
)
def test_what_is_not_carried_is_told(more, code):
    found = read(jobspec(**more))
    assert (codes(found), complaints(found)) == ([code], [])


def test_fewer_copies_than_slots_take_fewer_slots():
    node = {"type": "node", "count": 4, "with": [{**SLOT, "count": 2}]}
    found = read(jobspec(node, task={**TASK, "count": {"total": 5}}))
    assert found.document["tasks"][0]["resources"] == "part-0&part-1"
    counts = [(part["count"], part["with"][0]["count"]) for part in found.document["resources"].values()]
    assert counts == [(1, 2), (3, 1)]
    assert (codes(found), complaints(found)) == (["JC203"], [])


@pytest.mark.parametrize(
    "data",
    [
        {**jobspec(), "version": 2},
        jobspec({"type": "rack", "count": 1}),
        jobspec({"type": "slot", "count": 1, "with": [{"type": "node", "count": 1}]}),
        jobspec({"type": "node", "count": 0}),
        jobspec(task={**TASK, "count": {"per_slot": 2}}),
        jobspec(task={**TASK, "count": {"total": 99}}),
        jobspec(task={"slot": "task"}),
        jobspec(SLOT, SLOT),
        jobspec(job="abc"),
        {**jobspec(), "attributes": []},
    ],
)
def test_what_is_no_jobspec_is_an_error(data):
    assert codes(read(data)) == ["JC112"]


@pytest.mark.parametrize("text", ["", "hello", "version: 1\ntasks: []\n", "{", "[1, 2]", "a: [b"])
def test_what_is_neither_is_told(text):
    assert codes(convert("file", text, NOW)) == ["JC111"]


def test_the_jobspec_of_a_batch_script_leads_a_group():
    text = "#!/bin/bash\nflux run hostname\n"
    task = {**TASK, "command": ["flux", "broker", "{{tmpdir}}/script"]}
    output = {"stdout": {"type": "file", "path": "flux-{{id}}.out"}}
    files = {"script": {"mode": 33216, "data": text, "encoding": "utf-8"}}
    found = read(jobspec(task=task, files=files, job={"name": "lead"}, options={"output": output}))
    [group] = found.document["groups"]
    assert group["tasks"][0]["command"] == [
        "/bin/bash",
        "-c",
        "# -- script --\nflux run hostname\n",
        "script",
    ]
    assert (codes(found), complaints(found)) == (["JC203"], [])


# -- scripts ------------------------------------------------------------------------------------------------


def script(*lines, body="./alone", mark="# flux:"):
    return "\n".join(["#!/bin/bash", *(f"{mark} {line}" for line in lines), body, ""])


def read_script(*lines, **more):
    return convert("job.sh", script(*lines, **more), NOW)


def test_a_script_on_one_node_is_a_task():
    found = read_script("-n 4 -c 2", "--time-limit=90 --job-name=alone", "-q debug")
    [task] = found.document["tasks"]
    assert task["resources"] == {"type": "slot", "count": 1, "with": [{"type": "core", "count": 8}]}
    assert task["attributes"] == {"duration": "1h30m"}
    assert (found.document["name"], found.document["queue"]) == ("alone", "debug")
    assert (codes(found), complaints(found)) == ([], [])


def test_a_script_that_starts_steps_leads_a_group():
    found = read_script("-N2", body="flux run -n2 ./app")
    [group] = found.document["groups"]
    assert group["resources"]["exclusive"] is True
    assert (codes(found), complaints(found)) == (["JC203"], [])
    assert found.problems[0].place.line == 3


def test_options_of_a_script():
    lines = ["--env=A=1", "--env=B='x y'", "--output=o --error=e", "--requires=a,b", "-t 1h --signal=USR2@5m"]
    found = read_script(*lines, "--begin-time=+2h", "-B ocean")
    [task] = found.document["tasks"]
    assert task["attributes"]["environment"] == {"A": "1", "B": "x y"}
    assert (task["attributes"]["stdout"], task["attributes"]["stderr"]) == ("o", "e")
    assert task["signal"] == {"name": "USR2", "before": "5m"}
    assert found.document["start"] == {"earliest": "+7200s"}
    assert (found.document["account"], found.document["requires"]) == ("ocean", {"a": True, "b": True})
    assert (codes(found), complaints(found)) == ([], [])


def test_long_texts_stand_between_triple_quotes():
    found = convert(
        "job.sh",
        '#!/bin/sh\n#FLUX: --setattr=user.note="""\n#FLUX:   two\n#FLUX:   lines\n#FLUX: """\ntrue\n',
        NOW,
    )
    flags = found.document["tasks"][0]["attributes"]["flags"]
    assert flags == {"flux": ["--setattr=user.note=two\nlines"]}


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\n# flux: -n1\ntrue\n# flux: -c2\n",
        "#!/bin/sh\n# flux: -n1\n#flux: -c2\n",
        "#!/bin/sh\n# flux: 'a\n",
        "#!/bin/sh\n# flux: hello\n",
        '#!/bin/sh\n# flux: --setattr=a="""\ntrue\n',
    ],
)
def test_directives_that_flux_would_refuse_are_errors(text):
    assert codes(convert("job.sh", text, NOW)) == ["JC113"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--wat", "JC101"),
        ("-n x", "JC105"),
        ("-t soon", "JC105"),
        ("--dependency=afterok:1", "JC201"),
        ("--env-remove=A", "JC201"),
        ("--urgency=20", "JC202"),
        ("--requires=host:n1", "JC202"),
    ],
)
def test_what_is_wrong_or_not_carried_is_told(line, code):
    assert codes(read_script(line)) == [code]


def test_directives_are_mere_comments_in_what_comes_out():
    command = read_script("-n 1", body="echo flux: 1").document["tasks"][0]["command"]
    assert command[2] == "# -- job.sh --\n# flux-option: -n 1\necho flux: 1\n"


def test_a_comment_switches_a_directive_off():
    assert codes(read_script("# --wat", "-n 1")) == []


@pytest.mark.component("flux")
@pytest.mark.parametrize(
    "words",
    [
        ["run", "-N2", "-n4", "-c2", "-t5m", "--output=x", "--requires=a,b", "hostname"],
        ["run", "-N4", "-n5", "--begin-time=+1h", "hostname"],
        ["submit", "-n3", "-g1", "--exclusive", "-N3", "-o", "cpu-affinity=per-task", "hostname"],
        ["batch", "-N2", "--wrap", "hostname"],
        ["batch", "-n2", "-c3", "--job-name=x", "--wrap", "flux", "run", "hostname"],
    ],
)
def test_what_the_real_flux_prints_can_be_read(words):
    flux = Path(os.environ["JOBMAN_LAB_FLUX_BIN"]) / "flux"
    done = subprocess.run(
        [flux, words[0], "--dry-run", *words[1:]], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = convert("job.json", done.stdout, NOW)
    assert found.ok
    assert complaints(found) == []
