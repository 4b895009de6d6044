"""Logs: the lines of all copies, merged in time, and picked by task, replica, attempt, stream and node."""

from tests.conformance.engines import Engine, Handle


def texts(job: Handle, **filters: object) -> list[str]:
    return [line.text for line in job.logs(**filters)]


def test_lines_of_tasks_that_follow_each_other_come_in_the_order_of_time(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: first, command: [seq, "3"]}
        - {name: second, depends_on: first, command: [seq, "4", "6"]}
    """)
    assert outcome.lines() == ["1", "2", "3", "4", "5", "6"]


def test_lines_can_be_picked(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: sample
          replicas: 2
          retries: 1
          command: [sh, -c, "echo $JOBMAN_REPLICA.$JOBMAN_ATTEMPT; echo oops >&2; test $JOBMAN_ATTEMPT = 2"]
        - {name: after, depends_on: sample, command: [echo, after]}
    """)
    job.wait()
    assert texts(job, task="after") == ["after"]
    assert texts(job, replica="sample.1", stream="stdout") == ["1.1", "1.2"]
    assert texts(job, task="sample", attempt=2, stream="stdout", replica="0") == ["0.2"]
    assert texts(job, stream="stderr") == ["oops"] * 4
    assert texts(job, tail=1) == ["after"]


def test_lines_can_be_picked_by_node(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        tasks:
        - name: wide
          resources: {type: node, count: 2, with: [{type: core, count: 1}]}
          command: [sh, -c, "echo $JOBMAN_NODE_RANK"]
    """,
        virtual="2x4",
    )
    first, second = job.wait().nodes("wide.0")
    assert texts(job, node=first) == ["0"]
    assert texts(job, node=second) == ["1"]


def test_lines_can_be_followed_while_they_are_written_to_the_end_of_the_job(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: talk, command: [sh, -c, "echo one; until test -e go; do sleep 0.02; done; echo two"]}
        - {name: after, depends_on: talk, command: [echo, three]}
    """)
    seen = []
    for line in job.logs(follow=True):
        seen.append(line.text)
        (engine.folder / "go").touch()
    assert seen == ["one", "two", "three"]
    assert job.details().state == "succeeded"


def test_a_line_as_long_as_a_page_comes_whole_or_in_parts_that_say_so(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: talk, command: [sh, -c, "head -c 300000 /dev/zero | tr '\\\\0' x; echo; echo end"]}
    """)
    job.wait()
    lines = list(job.logs())
    assert lines[-1].text == "end"
    assert sum(len(line.text) for line in lines[:-1]) == 300_000
    assert all(line.partial for line in lines[:-2])
