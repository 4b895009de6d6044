"""Steps: files brought and written before the command."""

from tests.conformance.engines import Engine


def test_a_written_file_has_its_content_and_mode_before_the_command_runs(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: solve
          command: [./run.sh, argument]
          steps:
          - name: write
            path: run.sh
            mode: 0755
            content: |
              #!/bin/sh
              echo "solved $1 '$HOME' \\"quoted\\"" | sed "s|$HOME|home|"
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["solved argument 'home' \"quoted\""]


def test_a_staged_file_is_there_at_the_same_path_or_another(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - name: solve
          command: [cat, input/mesh, near/mesh, table/a, copy/b]
          steps:
          - {name: stage, path: input/mesh}
          - {name: stage, path: input/mesh, to: near/mesh}
          - {name: stage, path: table}
          - {name: stage, path: table, to: copy}
    """,
        files={"input/mesh": "mesh\n", "table/a": "a\n", "table/b": "b\n"},
    )
    assert outcome.lines() == ["mesh", "mesh", "a", "b"]


def test_a_task_of_steps_alone_succeeds(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: files
          steps:
          - {name: write, path: deep/down/settings.ini, content: "level = 3"}
        - {name: look, depends_on: files, command: [cat, deep/down/settings.ini]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.outcomes == {"files": "succeeded", "look": "succeeded"}
    assert outcome.lines("look.0") == ["level = 3"]


def test_a_file_that_is_missing_fails_the_task_before_its_command(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: solve, command: [echo, never], steps: [{name: stage, path: missing.bin, to: there.bin}]}
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("solve.0") == ["stage-failed"]
    assert "missing.bin" in outcome.reason
    assert outcome.lines() == []


def test_a_stage_that_failed_can_be_tried_again(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - name: solve
          command: [cat, there.txt]
          retries: {limit: 100, delay: 100ms, on: {reasons: stage-failed}}
          steps: [{name: stage, path: late.txt, to: there.txt}]
    """)
    job.until("solve.0 retrying")
    (engine.folder / "late.txt").write_text("arrived\n")
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.lines() == ["arrived"]


def test_steps_come_before_the_before_hook(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: solve
          command: [cat, file]
          steps: [{name: write, path: file, content: "written\\n"}]
          hooks: {before: [sh, -c, "echo hooked >> file"]}
    """)
    assert outcome.lines() == ["written", "hooked"]


def test_a_parameter_is_filled_into_what_is_written(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        parameters: {level: 3}
        tasks:
        - name: show
          command: [cat, conf]
          steps: [{name: write, path: conf, content: "level={{level}}\\n"}]
    """)
    assert outcome.lines() == ["level=3"]
