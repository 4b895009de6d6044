"""`jobman task serve`, `agent` and `broker`: how they are used wrongly, and a site made of the three."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = "def double(number: int) -> int:\n    return number * 2\n\n\nlimit = 3\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("broker", "--listen", "nonsense", "--database", "sqlite:///tasks.sqlite"), 2),
        (("broker", "--listen", ":0", "--database", "sqlite:///t.sqlite", "--tls-cert", "a.pem"), 2),
        (("broker", "--listen", ":0", "--database", "sqlite:///t.sqlite", "--settings", "nowhere"), 3),
        (("broker", "--listen", ":0", "--database", "sqlite:///t.sqlite", "--settings", "wrong.yaml"), 3),
        (("agent", "--broker", "./broker", "--image", "i"), 2),
        (("agent", "--broker", "./broker", "--image", "i", "--worker", "./worker", "--", "sh"), 2),
        (("agent", "--broker", "./broker", "--image", "i", "--listen", "./agent", "--", "sh"), 2),
        (("agent", "--broker", "nonsense", "--image", "i", "--", "sh"), 2),
    ],
)
def test_what_is_wrong_is_told_before_anything_begins(jobman, write, words, code):
    write("types: [{type: double}]\n", "wrong.yaml")
    answer = jobman("task", *words)
    assert (answer.code, answer.out, bool(answer.err)) == (code, "", True)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("work", "write module:function"),
        ("nowhere:double", "there is no module `nowhere`"),
        ("work:limit", "cannot be called"),
        ("work:double", "JOBMAN_WORKER_SOCKET"),  # nobody says where
    ],
)
def test_a_function_that_cannot_be_served_is_told(real_jobman, write, function, words):
    write(WORKER, "work.py")
    answer = real_jobman("task", "serve", function)
    assert (answer.code, words in answer.err, "Traceback" in answer.err) == (3, True, False)


@pytest.fixture
def start():
    """Start commands that go on; they end with the test."""
    started = []

    def run(*words, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "jobman.cli.main", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.send_signal(signal.SIGINT)
    for process in started:
        process.communicate(timeout=60)


@pytest.mark.slow
def test_a_broker_an_agent_and_a_function_are_a_site(real_jobman, start, write):
    write(WORKER, "work.py")
    tokens = {"people": "desk", "machines": "operator"}
    write(f"types: [{{type: double, image: doubles}}]\ntokens: {tokens}\n", "site.yaml")
    database = f"sqlite:///{Path.cwd()}/tasks.sqlite"
    place = ("--broker", "./broker")
    broker = start(
        *("task", "broker", "--listen", "./broker", "--database", database, "--settings", "site.yaml")
    )
    assert b"the broker listens at ./broker" in broker.stderr.readline()
    serving = (sys.executable, "-m", "jobman.cli.main", "task", "serve", "work:double")
    start("task", "agent", *place, "--image", "doubles", "--", *serving, JOBMAN_TOKEN="machines")
    answer = real_jobman(
        *("task", "submit", "-t", "double", "--payload", "21", "--results", *place), JOBMAN_TOKEN="people"
    )
    assert (answer.code, '"result":"42"' in answer.out) == (0, True), answer.err
    refused = real_jobman("task", "agents", *place, JOBMAN_TOKEN="people")
    assert refused.code == 6
    agents = real_jobman("task", "agents", *place, "-o", "json", JOBMAN_TOKEN="machines")
    assert [each["image"] for each in agents.data["items"]] == ["doubles"]
