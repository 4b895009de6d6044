"""Results: what a copy leaves in its result file is kept with the job."""

from tests.conformance.engines import Engine


def test_a_result_is_kept_with_its_attempt(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: fit, command: [sh, -c, "echo '{\\"error\\": 0.1}' > result.json"], result_file: result.json}
    """)
    assert outcome.attempts("fit.0")[0].result == '{"error": 0.1}\n'


def test_of_a_long_result_the_end_is_kept(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: fit, command: [sh, -c, "seq 100000 > result"], result_file: result}
    """)
    result = outcome.attempts("fit.0")[0].result
    assert result is not None
    assert result.endswith("99999\n100000\n")
    assert 4000 < len(result) <= 4096


def test_no_result_file_is_no_result_and_no_failure(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: fit, command: ["true"], result_file: never-written}
    """)
    assert outcome.state == "succeeded"
    assert outcome.attempts("fit.0")[0].result is None


def test_a_failed_attempt_has_its_result_too(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: fit, command: [sh, -c, "echo half > result; exit 1"], result_file: result}
    """)
    assert outcome.state == "failed"
    assert outcome.attempts("fit.0")[0].result == "half\n"


def test_a_result_file_is_inherited(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        result_file: far
        tasks:
        - {name: inherits, command: [sh, -c, "echo one > far"]}
        - {name: replaces, command: [sh, -c, "echo two > near"], result_file: near}
    """)
    assert outcome.attempts("inherits.0")[0].result == "one\n"
    assert outcome.attempts("replaces.0")[0].result == "two\n"
