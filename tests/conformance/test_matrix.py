"""A matrix: one replica per combination, with its values as variables and in the command."""

from tests.conformance.engines import Engine


def test_there_is_one_replica_per_combination_numbered_by_the_names_of_the_axes(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: scan
          matrix: {rate: [0.10, 0.01], model: [linear, cubic]}
          command: [sh, -c, "echo $JOBMAN_REPLICA {{model}} $model {{rate}} $rate"]
    """)
    assert outcome.counts == {"succeeded": 4}
    assert [outcome.lines(f"scan.{number}") for number in range(4)] == [
        ["0 linear linear 0.10 0.10"],
        ["1 linear linear 0.01 0.01"],
        ["2 cubic cubic 0.10 0.10"],
        ["3 cubic cubic 0.01 0.01"],
    ]


def test_axes_are_filled_in_wherever_they_may_stand(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: scan
          matrix: {case: [a, b]}
          steps:
          - {name: write, path: "in-{{case}}", content: "input {{case}}\\n"}
          command: [cat, "in-{{case}}"]
          attributes: {stdout: "out-{{case}}", environment: {CASE: "<{{case}}>"}}
          hooks: {after: [sh, -c, "echo $CASE > result-{{case}}"]}
          result_file: "result-{{case}}"
        - {name: look, depends_on: scan, command: [cat, out-a, out-b]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("look.0") == ["input a", "input b"]
    assert outcome.attempts("scan.0")[0].result == "<a>\n"
    assert outcome.attempts("scan.1")[0].result == "<b>\n"


def test_a_matrix_obeys_parallelism(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: scan, matrix: {x: [1, 2], y: [1, 2]}, parallelism: 1, command: [sleep, "0.05"]}
    """)
    assert outcome.starts() == ["scan.0", "scan.1", "scan.2", "scan.3"]
    assert outcome.most_at_once("scan") == 1


def test_one_failed_combination_fails_the_task(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: scan, matrix: {code: [0, 3, 16]}, command: [sh, -c, "exit $(({{code}} % 16))"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 3
    assert outcome.counts == {"succeeded": 2, "failed": 1}
