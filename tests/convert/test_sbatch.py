"""What the options of a script become in a document."""

import pytest

from jobman.convert.options import Where
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_options import SBATCH
from jobman.convert.words import Word
from tests.convert.scripts import (
    NOW,
    SRUN_INSIDE,
    codes,
    complaints,
    convert_sbatch,
    converted,
    document,
    part,
    script,
)


def slot(cores, **more):
    kinds = {"gpu": "gpu", "memory": "memory", "storage": "storage"}
    inside = [{"type": "core", "count": cores}]
    inside += [{"type": kinds[kind], "count": count} for kind, count in more.items()]
    return {"type": "slot", "count": 1, "with": inside}


# -- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("-A ocean", "account", "ocean"),
        ("-p debug", "queue", "debug"),
        ("-J first", "name", "first"),
        ("--comment='a b'", "annotations", {"comment": "a b"}),
        ("-C haswell", "requires", {"haswell": True}),
        ("-C 'intel&gpu'", "requires", {"intel": True, "gpu": True}),
        ("-H", "hold", True),
        ("--begin=now+1hour", "start", {"earliest": "+3600s"}),
        ("--begin=16:00", "start", {"earliest": "2031-03-04T16:00:00+01:00"}),
        ("-t 60 --deadline=16:00", "start", {"latest": "2031-03-04T15:00:00+01:00"}),
    ],
)
def test_a_key_of_the_document(line, key, value):
    found = converted(line)
    assert found.document[key] == value
    assert (codes(found), complaints(found)) == ([], [])


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("-t 1:30:00", "duration", "1h30m"),
        ("-D /data", "cwd", "/data"),
        ("-e err.txt", "stderr", "err.txt"),
        ("--export=\"ALL,A=1,B='x,y'\"", "environment", {"A": "1", "B": "x,y"}),
    ],
)
def test_an_attribute(line, key, value):
    found = converted(line)
    assert found.document["tasks"][0]["attributes"] == {key: value}
    assert (codes(found), complaints(found)) == ([], [])


def test_a_script_is_named_after_its_file():
    assert document()["name"] == "job.sh"


def test_a_name_that_no_job_may_have_is_changed_and_kept_for_the_script():
    found = converted("-J 'my job: 1'")
    assert (found.document["name"], codes(found)) == ("my-job--1", ["JC207"])
    assert "export SLURM_JOB_NAME='my job: 1'" in found.document["tasks"][0]["command"][2]


def test_an_array_is_replicas():
    found = part("-a 0-20:5%2")
    assert (found["replicas"], found["parallelism"]) == (5, 2)


def test_no_requeue_is_a_failure_policy():
    assert part("--no-requeue")["on_failure"] == [
        {"reasons": ["node-lost", "preempted"], "action": "fail-task"}
    ]
    assert "on_failure" not in part("--no-requeue --requeue")


def test_a_signal_needs_a_longer_time_limit():
    assert part("-t 10 --signal=B:USR1@120")["signal"] == {"name": "USR1", "before": "2m"}
    assert codes(converted("--signal=B:USR1@120")) == ["JC201"]
    assert codes(converted("-t 1 --signal=B:USR1")) == ["JC201"]


def test_a_signal_that_is_not_for_the_script_is_told():
    assert codes(converted("-t 10 --signal=USR1")) == ["JC203"]
    assert codes(converted("-t 10 -n 2 --signal=USR1", body="srun ./a")) == []


def test_output_without_a_file_for_errors_takes_both():
    attributes = part("-o 'out 100%%-%x.txt' -J abc")["attributes"]
    assert attributes == {"stdout": "out 100%-abc.txt", "stderr": "out 100%-abc.txt"}
    assert part("-o out -e err")["attributes"] == {"stdout": "out", "stderr": "err"}


def test_a_name_of_output_with_the_jobs_number_is_made_by_the_script():
    found = converted("-o 'log $x_%A_%3a.txt' -e err_%j -a 1-2")
    text = found.document["tasks"][0]["command"][2]
    assert (
        'exec >>"log \\$x_${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_'
        '$(printf %03d "${SLURM_ARRAY_TASK_ID:-4294967294}").txt"\n' in text
    )
    assert 'exec 2>>"err_${SLURM_JOB_ID}"\n' in text
    assert codes(found) == ["JC203", "JC203"]


def test_the_command_line_wins_over_the_lines():
    found = document("-n 4 -J old --mem=4G", above="--job-name=new --mem-per-cpu=1G")
    assert found["name"] == "new"
    assert found["tasks"][0]["resources"] == slot(4, memory="4Gi")


def test_what_is_given_nothing_is_taken_back():
    assert "requires" not in document("-C haswell", above="--constraint=")


# -- shapes of one script -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("", slot(1)),
        ("-n 8", slot(8)),
        ("-N 1 -n 4 -c 2", slot(8)),
        ("--ntasks-per-node=3", slot(3)),
        ("-c 4 --mem=2G", slot(4, memory="2Gi")),
        ("-n 2 -c 2 --mem-per-cpu=512", slot(4, memory="2Gi")),
        ("--gres=gpu:2 --mem-per-gpu=1G --cpus-per-gpu=3", slot(6, gpu=2, memory="2Gi")),
        ("-n 2 --gpus-per-task=1", slot(2, gpu=2)),
        ("-G 2", slot(1, gpu=2)),
        ("--tmp=10G", slot(1, storage="10Gi")),
        (
            "--exclusive -c 2",
            {"type": "node", "count": 1, "exclusive": True, "with": [{"type": "core", "count": 2}]},
        ),
    ],
)
def test_the_place_of_a_script_on_one_node(line, shape):
    found = converted(line)
    assert found.document["tasks"][0]["resources"] == shape
    assert (codes(found), complaints(found)) == ([], [])


# -- shapes of copies ---------------------------------------------------------------------------------------


def slots(count, cores=1, **more):
    return {**slot(cores, **more), "count": count}


def node(count, *inside):
    return {"type": "node", "count": count, "with": list(inside)}


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("-n 4", slots(4)),
        ("-n 4 -c 2 --mem-per-cpu=1G", slots(4, 2, memory="2Gi")),
        ("-N 2 -n 8", node(2, slots(4))),
        ("-N 2 --ntasks-per-node=4 --mem=8G", node(2, slots(4), {"type": "memory", "count": "8Gi"})),
        ("-n 6 --ntasks-per-node=2", node(3, slots(2))),
        ("-N 2 -n 4 --gpus-per-node=2", node(2, slots(2), {"type": "gpu", "count": 2})),
        ("-N 2 -n 4 --gpus-per-task=1", node(2, slots(2, gpu=1))),
        (
            "-N 1 -n 4 --ntasks-per-socket=2",
            node(1, {"type": "socket", "count": 2, "with": [slots(2)]}),
        ),
        ("-N 3", node(3, slots(1))),
    ],
)
def test_a_final_srun_becomes_copies_in_slots(line, shape):
    found = converted(line, body="srun ./a.out")
    assert found.document["tasks"][0]["resources"] == shape
    assert (codes(found), complaints(found)) == ([], [])


def test_copies_that_do_not_divide_are_two_kinds_of_nodes():
    found = document("-N 2 -n 3", body="srun ./a.out")
    assert found["resources"] == {"part-0": node(1, slots(2)), "part-1": node(1, slots(1))}
    assert found["tasks"][0]["resources"] == "part-0&part-1"


def test_parts_of_a_heterogeneous_job_stand_side_by_side():
    found = converted("-N 1 -n 2 -t 5", "hetjob", "-N 2 -c 4 --gpus-per-node=1", body=SRUN_INSIDE)
    assert found.document["resources"] == {
        "part-0": node(1, slots(2)),
        "part-1": node(2, slots(1, 4), {"type": "gpu", "count": 1}),
    }
    assert found.document["groups"][0]["resources"] == "part-0&part-1"
    assert complaints(found) == []
    assert codes(converted("-N1", "packjob", "-t 5", body="true")) == ["JC203", "JC201"]


# -- what is told -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--mail-type=END", "JC201"),
        ("-d afterok:17", "JC201"),
        ("--get-user-env", "JC201"),
        ("--mem-per-gpu=1G", "JC201"),
        ("--deadline=16:00", "JC201"),
        ("-t 5000-0", "JC201"),
        ("-t 5 --begin=16:00 --deadline=15:00", "JC201"),
        ("--qos=high", "JC202"),
        ("-L matlab", "JC202"),
        ("-w n1", "JC202"),
        ("-p a,b", "JC202"),
        ("-C 'a|b'", "JC202"),
        ("--nice", "JC202"),
        ("--ntasks-per-socket=2", "JC202"),
        ("--nodes=2-4 -n 2", "JC203"),
        ("--gres=gpu:a100:2", "JC202"),
        ("--gres=nic:2", "JC202"),
        ("--exclusive=user", "JC202"),
        ("--mem=0", "JC202"),
        ("--export=NONE", "JC203"),
        ("--export=A=1", "JC203"),
        ("-N 3 -n 1", "JC203"),
    ],
)
def test_what_is_not_carried_or_differs_is_told(line, code):
    found = converted(line, body="srun ./a" if "2-4" in line else "true")
    assert (codes(found), complaints(found)) == ([code], [])


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("-q high", "--qos=high"),
        ("--nice", "--nice"),
        ("-p a,b", "--partition=a,b"),
        ("--gres=gpu:a100:2", "--gres=gpu:a100:2"),
        ("--mem=0", "--mem=0"),
    ],
)
def test_what_is_kept_for_slurm_stands_in_its_flags(line, flag):
    assert part(line)["attributes"]["flags"] == {"slurm": [flag]}


@pytest.mark.parametrize(
    "line",
    [
        "-n 0",
        "-N x",
        "-t 1h",
        "--mem=4.5G",
        "-a 5-1",
        "--signal=NOSUCH",
        "--begin=soon",
        "--gpus=a:b",
        "-c -1",
    ],
)
def test_a_value_that_sbatch_would_refuse_is_an_error(line):
    found = converted(line)
    assert (codes(found), found.ok) == (["JC105"], False)


def test_strict_makes_errors_of_remarks():
    found = converted("--mail-type=END", strict=True)
    assert (found.ok, found.problems[0].severity) == (False, "error")


@pytest.mark.parametrize(
    ("line", "feature"), [("-p debug", "queue"), ("-A a", "account"), ("--begin=16:00", "start.earliest")]
)
def test_what_the_engine_refuses_is_left_out_and_told(line, feature):
    found = converted(line, refused={feature: "there is no such thing here"})
    assert codes(found) == ["JC206"]
    assert feature.partition(".")[0] not in found.document


@pytest.mark.parametrize(
    ("line", "feature"),
    [("--tmp=1G", "shape.storage"), ("-N1 -n2 --ntasks-per-socket=1", "shape.socket")],
)
def test_what_the_engine_does_not_count_is_not_asked_for(line, feature):
    found = converted(line, body="srun ./a", refused={feature: "nothing of the kind is counted"})
    assert codes(found) == ["JC206"]
    assert feature.partition(".")[2] not in str(found.document["tasks"][0]["resources"])


def test_a_queue_that_there_is_not_is_left_out_and_told():
    found = converted("-p debug", queues=("interactive", "batch"))
    assert codes(found) == ["JC206"]
    assert "there are `interactive` and `batch`" in found.problems[0].message
    assert document("-p batch", queues=("interactive", "batch"))["queue"] == "batch"


def test_what_is_no_script_is_an_error():
    assert codes(convert_sbatch("job.sh", "echo hello\n", NOW)) == ["JC108"]
    assert codes(convert_sbatch("job.sh", "", NOW)) == ["JC108"]


def test_lines_that_end_as_on_dos_are_an_error():
    assert codes(convert_sbatch("job.sh", script().replace("\n", "\r\n"), NOW)) == ["JC114"]


def test_a_comment_stays_in_its_line():
    given, _ = SBATCH.read([Word("--comment=a\nb: " + "c" * 99, 0, 0)], Where(), Remarks())
    found = convert_sbatch("job.sh", script(), NOW, given=given)
    assert "  # --comment=a b: ccc" in found.text()
    assert complaints(found) == []


def test_a_script_that_is_too_long_is_an_error():
    assert codes(convert_sbatch("job.sh", script(body="#" * 200_000), NOW)) == ["JC109"]


def test_options_of_the_command_itself_are_handed_on():
    found = converted("--wait", above="--parsable")
    assert found.asked == {"wait": None, "parsable": None}


# -- the text -----------------------------------------------------------------------------------------------


def test_the_text_says_where_lines_came_from():
    text = converted("-J abc -n 2", "-t 5").text()
    assert "name: abc  # line 2: -J abc\n" in text
    assert "    duration: 5m  # line 3: -t 5\n" in text
    assert text.splitlines()[4].endswith("# line 2")


def test_braces_of_the_script_are_no_parameters():
    found = converted(body="docker ps --format '{{.Names}} {{ID}}'\necho {{name}}")
    assert found.document["parameters"] == {"brace": "{"}
    assert "{{.Names}} {{brace}}{ID}}" in found.document["tasks"][0]["command"][2]
    assert complaints(found) == []
