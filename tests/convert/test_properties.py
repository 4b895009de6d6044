"""Whatever options are combined, what comes out is a document that `check` has nothing against."""

import json
import string
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobman.convert.writing import write
from tests.convert.scripts import NOW, complaints, convert, convert_sbatch, converted, script

NUMBERS = st.integers(1, 64).map(str)
SIZES = st.sampled_from(["1", "100M", "3G", "1T", "512K", "0"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
WORDS = st.text(string.ascii_letters + string.digits + "_-.,:|&*[]()%/@", min_size=1, max_size=12)
VALUES = {
    **dict.fromkeys(("nodes", "ntasks", "ntasks-per-node", "ntasks-per-socket", "cpus-per-task"), NUMBERS),
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "cpus-per-gpu"), NUMBERS),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu", "tmp"), SIZES),
    "nodes": st.sampled_from(["1", "2", "3", "2-4", "7"]),
    "gres": st.sampled_from(["gpu", "gpu:2", "gpu:a100:1", "nic:2", "gpu:1,nic", "none"]),
    "array": st.sampled_from(["0-9", "1,3,7", "0-20:5%2", "4", "1-3,8-20:4%1"]),
    "time": st.sampled_from(["1", "30", "90:30", "1:00:00", "2-12", "UNLIMITED", "9999-0"]),
    "begin": st.sampled_from(["now", "now+1hour", "16:00", "2031-05-06", "tomorrow", "noon"]),
    "deadline": st.sampled_from(["16:00", "now+2hours", "2031-05-06T10:00", "2030-01-01"]),
    "signal": st.sampled_from(["USR1", "B:TERM@10", "10@3600", "R:INT@0"]),
    "export": st.sampled_from(["ALL", "NONE", "A=1", "ALL,A=b c", "JOBMAN_X=1,B", "1A=2"]),
    "output": WORDS,
    "error": WORDS,
    **dict.fromkeys(("job-name", "comment", "chdir", "account", "partition", "constraint"), TEXTS | WORDS),
    **dict.fromkeys(("qos", "licenses", "nodelist", "dependency", "mail-user", "hint"), TEXTS),
    **dict.fromkeys(("hold", "exclusive", "requeue", "no-requeue", "nice", "contiguous"), st.none()),
}
OPTIONS = st.fixed_dictionaries({}, optional=VALUES)
BODIES = st.sampled_from(
    [
        "true",
        "srun ./a",
        "srun ./a\nsrun ./b",
        "mpirun ./a",
        "export A=1\nsrun -n 4 ./a",
        "echo {{x}} '{{y.z}}'",
    ]
)


def line_of(name, value):
    if value is None:
        return f"--{name}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'--{name}="{escaped}"'


@given(OPTIONS, BODIES)
def test_a_script_that_is_converted_passes_the_check(options, body):
    found = converted(*(line_of(name, value) for name, value in options.items()), body=body)
    if found.ok:
        assert complaints(found) == []
    else:
        assert {problem.code for problem in found.problems if problem.severity == "error"} <= {
            "JC105",
            "JC110",
        }


@given(
    OPTIONS, BODIES, st.sampled_from(["queue", "account", "shape.socket", "start.earliest", "start.latest"])
)
def test_so_does_one_for_an_engine_that_has_less(options, body, refused):
    lines = [line_of(name, value) for name, value in options.items()]
    found = converted(*lines, body=body, refused={refused: "not here"}, queues=("batch",))
    assert not found.ok or complaints(found) == []


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200))
def test_any_text_behind_the_first_line_is_a_script(body):
    found = convert_sbatch("job.sh", script(body=f"true\n{body}"), NOW)
    assert found.ok
    assert complaints(found) == []


VALUE = st.recursive(
    st.text(max_size=20) | st.booleans() | st.integers(0, 999),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(
            st.text(string.ascii_letters, min_size=1, max_size=8), inner, min_size=1, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "tasks", "resources", "start", "x"]), VALUE, min_size=1))
def test_what_is_written_is_what_is_read(document):
    assert yaml.load(write(document, {}), yaml.CSafeLoader) == document


# -- whatever is written ------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=40), max_size=4))
def test_no_line_of_options_is_too_odd(lines):
    found = convert_sbatch("job.sh", script(*lines), NOW)
    assert found.ok or found.problems


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=40), max_size=4))
def test_no_directive_of_flux_is_too_odd(lines):
    text = "\n".join(["#!/bin/sh", *(f"# flux: {line}" for line in lines), "true", ""])
    found = convert("job.sh", text, NOW)
    assert found.ok or found.problems


PLAIN = st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | st.text(max_size=5)
DATA = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
)
JOBSPEC: dict[str, Any] = {
    "version": 1,
    "resources": [
        {
            "type": "node",
            "count": 2,
            "exclusive": True,
            "with": [{"type": "slot", "count": 2, "label": "t", "with": [{"type": "core", "count": 1}]}],
        }
    ],
    "tasks": [{"command": ["app"], "slot": "t", "count": {"total": 3}}],
    "attributes": {
        "user": {"note": "x"},
        "system": {
            "duration": 300.5,
            "cwd": "/",
            "environment": {"A": "1"},
            "queue": "batch",
            "bank": "b",
            "job": {"name": "n"},
            "dependencies": [{"scheme": "begin-time", "value": "1930000000"}, {"scheme": "x", "value": "1"}],
            "constraints": {"properties": ["a"]},
            "files": {"script": {"data": "#!/bin/sh\ntrue\n", "encoding": "utf-8"}},
            "shell": {
                "options": {
                    "signal": {"signum": 10, "timeleft": 60},
                    "output": {"stdout": {"type": "file", "path": "x"}},
                    "mpi": "none",
                }
            },
        },
    },
}


def places(value, path=()):
    """Every place in a value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    inner = list(value) if isinstance(value, list) else dict(value)
    inner[path[0]] = replaced(value[path[0]], path[1:], new)
    return inner


@given(st.sampled_from([path for path in places(JOBSPEC) if path]), DATA)
def test_no_jobspec_is_too_odd(path, new):
    found = convert("job.json", json.dumps(replaced(JOBSPEC, path, new)), NOW)
    if found.ok:
        assert complaints(found) == []
    else:
        assert found.problems
