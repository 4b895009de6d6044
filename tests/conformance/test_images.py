"""Container images: a task runs in its image, and finds there what it would find outside."""

import os
from typing import Any

import pytest

from tests.conformance.engines import Engine

pytestmark = [pytest.mark.component("podman"), pytest.mark.slow]


Lab = dict[str, Any]


@pytest.fixture
def lab(engine: Engine) -> Lab:
    """The image of the lab or of the cluster, and what podman has to know to run it."""
    variable = "JOBMAN_LAB_KUBE_IMAGE" if engine.name.startswith("kubernetes") else "JOBMAN_LAB_IMAGE"
    return {
        "parameters": {"image": os.environ[variable]},
        "environment": {"CONTAINERS_CONF": os.environ["CONTAINERS_CONF"]},
    }


def test_a_task_runs_in_its_image_and_the_nearest_wins(engine: Engine, lab: Lab) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {image: busybox}
        image: example.org/not-this-one:1
        tasks:
        - {name: inside, image: "{{image}}", command: [sh, -c, "readlink /proc/self/exe"]}
    """,
        **lab,
    )
    assert outcome.state == "succeeded"
    assert "busybox" in outcome.lines("inside.0")[0]


def test_a_container_has_the_variables_the_exit_code_and_the_output_of_its_copy(
    engine: Engine, lab: Lab
) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {image: busybox}
        image: "{{image}}"
        tasks:
        - name: inside
          replicas: 2
          attributes: {environment: {WORD: hello}}
          command: [sh, -c, "echo $WORD from $JOBMAN_REPLICA; echo oops >&2; exit 5"]
    """,
        **lab,
    )
    assert outcome.state == "failed"
    assert outcome.exit_code == 5
    assert outcome.lines("inside.1", stream="stdout") == ["hello from 1"]
    assert outcome.lines("inside.1", stream="stderr") == ["oops"]


def test_volumes_are_mounted_into_the_container(engine: Engine, lab: Lab) -> None:
    (engine.folder / "data").mkdir()
    (engine.folder / "data" / "input").write_text("input\n")
    outcome = engine.run(
        """
        version: 1
        parameters: {image: busybox, data: /data}
        image: "{{image}}"
        tasks:
        - name: inside
          command: [sh, -c, "cat /data/input; echo kept > /room/file; cat /room/file; echo no > /data/output"]
          volumes:
          - {name: data, kind: host, path: "{{data}}", to: /data, read_only: true}
          - {name: room, kind: scratch, to: /room}
    """,
        parameters={**lab["parameters"], "data": engine.folder / "data"},
        environment=lab["environment"],
    )
    assert outcome.state == "failed"
    assert outcome.lines(stream="stdout") == ["input", "kept"]
    assert not (engine.folder / "data" / "output").exists()


def test_a_container_is_stopped_with_its_copy(engine: Engine, lab: Lab) -> None:
    job = engine.submit(
        """
        version: 1
        parameters: {image: busybox}
        tasks:
        - name: inside
          image: "{{image}}"
          grace: 1s
          command: [sh, -c, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"]
    """,
        **lab,
    )
    job.until_line("up")
    job.cancel()
    outcome = job.wait()
    assert outcome.state == "cancelled"
    assert "saved" in outcome.lines()


def test_an_image_that_cannot_be_had_is_said(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: inside, image: "localhost/no-such-image:1", command: ["true"]}
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("inside.0") == ["launch-failed"]
    assert "no-such-image" in outcome.reason
