"""What copies find: variables, the working directory, and where their output goes."""

from tests.conformance.engines import Engine


def test_every_copy_is_told_what_it_is(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        name: study
        tasks:
        - name: sample
          replicas: 2
          command: [sh, -c, "env | grep ^JOBMAN_"]
          resources: {type: node, count: 1, with: [{type: core, count: 2}]}
    """,
        virtual="2x2",
    )
    told = outcome.values("sample.1")
    assert told["JOBMAN_JOB_ID"] == outcome.job.id
    assert told["JOBMAN_JOB_NAME"] == "study"
    assert told["JOBMAN_TASK"] == "sample"
    assert (told["JOBMAN_REPLICA"], told["JOBMAN_REPLICAS"]) == ("1", "2")
    assert told["JOBMAN_ATTEMPT"] == "1"
    assert (told["JOBMAN_NODE_RANK"], told["JOBMAN_NNODES"]) == ("0", "1")
    assert told["JOBMAN_NODELIST"] == ",".join(outcome.nodes("sample.1"))
    assert (told["JOBMAN_RANK"], told["JOBMAN_SIZE"]) == ("0", "1")
    assert (told["JOBMAN_CORES"], told["JOBMAN_GPUS"]) == ("2", "0")


def test_scratch_is_a_folder_to_write_in_that_is_gone_afterwards(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: writer
          command: [sh, -c, 'echo draft > "$JOBMAN_SCRATCH/draft" && cat "$JOBMAN_SCRATCH/draft"']
        - name: looker
          depends_on: writer
          command: [sh, -c, 'test ! -e "$JOBMAN_SCRATCH/draft" && echo clean']
    """)
    assert outcome.lines("writer.0") == ["draft"]
    assert outcome.lines("looker.0") == ["clean"]


def test_variables_merge_one_by_one_and_the_nearest_wins(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        attributes: {environment: {FAR: document, NEAR: document, NUMBER: 012}}
        groups:
        - name: inner
          attributes: {environment: {NEAR: group}}
          tasks:
          - name: task
            command: [sh, -c, "echo $FAR $NEAR $OWN $NUMBER"]
            resources: tiny
            attributes: {environment: {OWN: "two words"}}
    """)
    assert outcome.lines() == ["document group two words 012"]


def test_the_environment_of_submission_reaches_the_command(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        attributes: {environment: {SHADOWED: by the document}}
        tasks:
        - {name: task, command: [sh, -c, 'echo "$CARRIED, $SHADOWED"']}
    """,
        environment={"CARRIED": "by hand", "SHADOWED": "by nobody"},
    )
    assert outcome.lines() == ["by hand, by the document"]


def test_a_command_runs_where_it_was_submitted(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        tasks:
        - {name: task, command: [cat, here.txt]}
    """,
        files={"here.txt": "found\n"},
    )
    assert outcome.lines() == ["found"]


def test_cwd_says_where_a_command_runs_and_a_relative_one_is_below(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        attributes: {cwd: below}
        tasks:
        - {name: inherits, command: [cat, file]}
        - {name: absolute, command: [pwd], attributes: {cwd: /}}
    """,
        files={"below/file": "deep\n"},
    )
    assert outcome.lines("inherits.0") == ["deep"]
    assert outcome.lines("absolute.0") == ["/"]


def test_a_working_directory_that_does_not_exist_is_said(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: lost, command: [pwd], attributes: {cwd: nowhere}}
    """)
    assert outcome.reasons("lost.0") == ["launch-failed"]
    assert "nowhere" in outcome.reason


def test_output_goes_to_the_files_that_are_named_and_is_logged_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: writer
          command: [sh, -c, "echo out; echo err >&2"]
          attributes: {stdout: run.out, stderr: run.err}
        - name: reader
          depends_on: writer
          command: [sh, -c, "echo $(cat run.out) and $(cat run.err)"]
    """)
    assert outcome.lines("reader.0") == ["out and err"]
    assert outcome.lines("writer.0", stream="stdout") == ["out"]
    assert outcome.lines("writer.0", stream="stderr") == ["err"]


def test_both_streams_may_go_to_one_file(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: writer
          command: [sh, -c, "echo one; echo two >&2; echo three"]
          attributes: {stdout: both.log, stderr: both.log}
        - {name: reader, depends_on: writer, command: [cat, both.log]}
    """)
    assert outcome.lines("reader.0") == ["one", "two", "three"]
    assert outcome.lines("writer.0") == ["one", "two", "three"]


def test_a_watched_task_holds_back_what_stands_below_it(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: above, command: [sh, -c, "until test -e seen; do sleep 0.02; done"]}
        - {name: watched, command: [touch, seen], attributes: {watch: true}}
        - {name: below, command: ["true"]}
    """)
    assert outcome.tells("watched.0 succeeded", "below.0 started")


def test_a_watched_group_has_its_tasks_one_after_the_other(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: steps
          resources: {type: slot, count: 3}
          attributes: {watch: true}
          tasks:
          - {name: first, command: [sleep, "0.1"], resources: tiny}
          - {name: second, command: [sleep, "0.1"], resources: tiny}
          - {name: third, command: ["true"], resources: tiny}
    """)
    assert outcome.tells(
        "steps.0/first.0 succeeded",
        "steps.0/second.0 started",
        "steps.0/second.0 succeeded",
        "steps.0/third.0 started",
    )


def test_flags_for_other_engines_change_nothing(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        attributes:
          flags:
            slurm: ["--comment=scenario"]
            flux: ["-o", "verbose=0"]
            kubernetes: {terminationGracePeriodSeconds: 5}
        tasks:
        - {name: task, command: [echo, done]}
    """)
    assert outcome.lines() == ["done"]
