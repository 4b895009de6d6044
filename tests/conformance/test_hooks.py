"""Hooks: commands before, after and at a stop."""

from tests.conformance.engines import Engine


def test_hooks_run_around_the_command(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: work
          command: [sh, -c, "echo work >> order"]
          hooks:
            before: [sh, -c, "echo before >> order"]
            after: sh -c "echo after >> order"
        - {name: look, depends_on: work, command: [cat, order]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("look.0") == ["before", "work", "after"]


def test_what_hooks_write_is_logged(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: [echo, work], hooks: {before: [echo, before], after: [echo, after]}}
    """)
    assert outcome.lines("work.0") == ["before", "work", "after"]


def test_a_failed_before_hook_fails_the_copy_and_the_command_does_not_run(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: [echo, never], hooks: {before: [sh, -c, "exit 12"], after: [echo, after]}}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 12
    assert "never" not in outcome.lines()
    assert "before" in outcome.reason


def test_the_after_hook_runs_whatever_the_outcome(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: bad, command: [sh, -c, "exit 7"], hooks: {after: [echo, after]}}
        - {name: late, command: [sleep, "600"], attributes: {duration: 300ms}, hooks: {after: [echo, after]}}
    """)
    assert outcome.exit_codes("bad.0") == [7]
    assert outcome.lines("bad.0") == ["after"]
    assert outcome.lines("late.0", stream="stdout") == ["after"]
    assert outcome.reasons("late.0") == ["timeout"]


def test_hooks_see_the_variables_of_the_copy(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: work
          command: ["true"]
          attributes: {environment: {NAME: value}}
          hooks: {before: [sh, -c, 'echo "$JOBMAN_TASK $NAME"']}
    """)
    assert outcome.lines() == ["work value"]


def test_on_stop_runs_first_when_a_copy_is_asked_to_stop(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: server
          service: true
          command: [sh, -c, "trap 'echo asked; exit 0' TERM; touch up; while :; do sleep 0.02; done"]
          hooks: {on_stop: [echo, saving]}
        - {name: work, command: [sh, -c, "until test -e up; do sleep 0.02; done"]}
    """)
    assert outcome.lines("server.0", stream="stdout") == ["saving", "asked"]


def test_on_stop_does_not_run_for_a_copy_that_ends_by_itself(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: work, command: [echo, done], hooks: {on_stop: [echo, never]}}
    """)
    assert outcome.lines() == ["done"]


def test_each_attempt_has_its_hooks(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: flaky
          retries: 1
          command: [sh, -c, "test $JOBMAN_ATTEMPT = 2"]
          hooks:
            before: [sh, -c, "echo before $JOBMAN_ATTEMPT"]
            after: [sh, -c, "echo after $JOBMAN_ATTEMPT"]
    """)
    assert outcome.lines() == ["before 1", "after 1", "before 2", "after 2"]
