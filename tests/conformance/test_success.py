"""Success policies: done early, and the rest is stopped."""

from tests.conformance.engines import Engine, beats


def test_the_first_success_is_enough_and_the_rest_is_stopped(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: search
          replicas: 4
          success: {count: 1}
          command: [sh, -c, "test $JOBMAN_REPLICA = 2 || exec sleep 600; echo found"]
        - {name: after, depends_on: search, command: ["true"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts_of("search") == {"succeeded": 1, "cancelled": 3}
    assert outcome.lines("search.2") == ["found"]
    assert outcome.tells("search.2 succeeded", "search.0 cancelled", "after.0 started")


def test_the_leader_decides(engine: Engine) -> None:
    outcome = engine.run(
        """
        version: 1
        parameters: {while: 1s}
        tasks:
        - name: team
          replicas: 3
          success: {replicas: 0}
          command:
          - sh
          - -c
          - |
            test $JOBMAN_REPLICA = 0 || { touch worker-$JOBMAN_REPLICA; exit 5; }
            until test -e worker-1 -a -e worker-2; do sleep 0.02; done
            sleep {{while}}
    """,
        parameters={"while": beats(engine, 2)},
    )
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.replicas == {"team.0": "succeeded", "team.1": "failed", "team.2": "failed"}


def test_a_failed_leader_fails_the_task_and_the_others_are_stopped(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: team
          replicas: 3
          success: {replicas: 0}
          command: [sh, -c, "test $JOBMAN_REPLICA = 0 && exit 5; sleep 600"]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 5
    assert outcome.counts_of("team") == {"failed": 1, "cancelled": 2}


def test_a_quorum_counts_only_the_replicas_it_names(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: vote
          replicas: 5
          success: {replicas: [0-2], count: 2}
          command:
          - sh
          - -c
          - |
            case $JOBMAN_REPLICA in
              1|2) until test -e vote-0 -a -e vote-3 -a -e vote-4; do sleep 0.02; done; sleep 3;;
              *) touch vote-$JOBMAN_REPLICA; test $JOBMAN_REPLICA != 0;;
            esac
    """)
    assert outcome.state == "succeeded"
    assert outcome.replicas["vote.0"] == "failed"
    assert outcome.tells("vote.3 succeeded", "vote.1 succeeded")
    assert outcome.counts_of("vote")["succeeded"] == 4


def test_a_quorum_that_cannot_be_reached_fails_the_task(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: vote
          replicas: 4
          success: {count: 3}
          command: [sh, -c, "test $JOBMAN_REPLICA -lt 2 && exit 2; sleep 600"]
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 2
    assert outcome.counts_of("vote") == {"failed": 2, "cancelled": 2}


def test_the_documents_success_ends_the_job_early(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        success: {count: 1}
        tasks:
        - {name: slow, command: [sleep, "600"]}
        - {name: quick, command: [echo, found]}
        - {name: later, depends_on: slow, command: [echo, never]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.replicas["quick.0"] == "succeeded"
    assert outcome.lines() == ["found"]


def test_a_group_may_be_done_early_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        groups:
        - name: race
          replicas: 3
          success: {count: 1}
          resources: {type: slot, count: 1}
          tasks:
          - {name: run, command: [sh, -c, 'mkdir first 2>/dev/null || sleep 600']}
    """)
    assert outcome.state == "succeeded"
    assert outcome.counts_of("race") == {"succeeded": 1, "cancelled": 2}
