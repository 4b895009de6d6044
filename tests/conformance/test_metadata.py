"""What is kept with a job besides its work."""

from tests.conformance.engines import Engine

DOCUMENT = """
    version: 1
    name: climate-1850
    labels: {team: ocean, example.org/stage: production, empty: ""}
    annotations: {purpose: "Control run, second attempt"}
    managed_by: snakemake
    owner: workflow-17
    queue: batch
    account: ocean-22
    priority: high
    tasks:
    - {name: work, command: ["true"]}
"""


def test_labels_and_annotations_stay_with_the_job(engine: Engine) -> None:
    outcome = engine.run(DOCUMENT)
    assert outcome.state == "succeeded"
    assert outcome.job.name == "climate-1850"
    assert outcome.job.labels == {"team": "ocean", "example.org/stage": "production", "empty": ""}
    assert outcome.job.annotations == {"purpose": "Control run, second attempt"}


def test_queue_account_and_priority_stay_with_the_job(engine: Engine) -> None:
    outcome = engine.run(DOCUMENT)
    assert outcome.job.queue == "batch"
    assert outcome.job.account == "ocean-22"
    assert outcome.job.priority == 1000


def test_the_tool_that_made_it_and_what_it_belongs_to_stay_with_the_job(engine: Engine) -> None:
    outcome = engine.run(DOCUMENT)
    told = str(outcome.job).replace(repr(outcome.job.document), "")
    assert "snakemake" in told
    assert "workflow-17" in told


def test_the_document_is_kept_as_it_was_written(engine: Engine) -> None:
    text = "# why it is like this\nversion: 1\ntasks:\n- {name: work, command: [echo, done]}\n"
    assert engine.run(text).job.document == text


def test_a_job_without_a_name_has_that_of_its_file_and_one_may_be_given(engine: Engine) -> None:
    text = """
        version: 1
        tasks:
        - {name: work, command: [sh, -c, "echo $JOBMAN_JOB_NAME"]}
    """
    assert engine.run(text).lines() == ["scenario"]
    assert engine.run(text, name="given").lines() == ["given"]


def test_every_task_of_the_document_is_listed_with_its_line_and_dependencies(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: first
          command: ["true"]
        - name: second
          depends_on: first
          command: ["true"]
    """)
    tasks = outcome.tasks
    assert [(task.name, task.replicas, task.depends_on) for task in tasks.values()] == [
        ("first", 1, []),
        ("second", 1, ["first"]),
    ]
    assert tasks["first"].line < tasks["second"].line
