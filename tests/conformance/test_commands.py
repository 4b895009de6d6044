"""Commands: how they are read, how they end, and what is seen of them."""

import pytest

from tests.conformance.engines import Engine


def test_a_command_that_exits_with_zero_succeeds(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: hello, command: [echo, hello]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.exit_code == 0
    assert outcome.counts == {"succeeded": 1}
    assert outcome.outcomes == {"hello": "succeeded"}
    assert outcome.lines("hello.0") == ["hello"]
    assert outcome.tells("submitted", "hello.0 started", "hello.0 succeeded", "job-succeeded")


def test_a_job_ends_with_the_exit_code_of_the_command_that_failed(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: broken, command: [sh, -c, "echo not today >&2; exit 42"]}
    """)
    assert outcome.state == "failed"
    assert outcome.exit_code == 42
    assert "broken.0" in outcome.reason
    assert "42" in outcome.reason
    assert outcome.reasons("broken.0") == ["exit"]
    assert outcome.lines("broken.0", stream="stderr") == ["not today"]


def test_a_command_ended_by_a_signal_has_failed_with_128_and_its_number(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: shot, command: [sh, -c, "kill -KILL $$"]}
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("shot.0") == ["signal"]
    assert outcome.attempts("shot.0")[0].signal == 9
    assert outcome.exit_code == 128 + 9
    assert "SIGKILL" in outcome.reason


def test_a_program_that_does_not_exist_cannot_be_started(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: typo, command: [no-such-program-anywhere, --help]}
    """)
    assert outcome.state == "failed"
    assert outcome.reasons("typo.0") == ["launch-failed"]
    assert "no-such-program-anywhere" in outcome.reason


def test_a_list_is_handed_over_as_it_is(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: args
          command: [printf, "[%s]\\n", "two words", "$HOME", "*", "", "{{.Names}}", "a;b|c", "ü"]
    """)
    assert outcome.lines("args.0") == [
        "[two words]",
        "[$HOME]",
        "[*]",
        "[]",
        "[{{.Names}}]",
        "[a;b|c]",
        "[ü]",
    ]


def test_a_text_is_split_as_a_shell_would_and_no_shell_is_run(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - name: args
          command: printf "[%s]\\n" "two words" 'single $HOME' back\\ slash plain
    """)
    assert outcome.lines("args.0") == ["[two words]", "[single $HOME]", "[back slash]", "[plain]"]


def test_output_and_errors_are_told_apart(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: talk, command: [sh, -c, "echo one; echo two >&2; echo three"]}
    """)
    assert outcome.lines("talk.0", stream="stdout") == ["one", "three"]
    assert outcome.lines("talk.0", stream="stderr") == ["two"]


def test_a_last_line_without_an_end_is_not_lost(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: talk, command: [printf, "first\\n\\nlast"]}
    """)
    assert outcome.lines("talk.0") == ["first", "", "last"]


def test_bytes_that_are_no_text_do_not_hurt_the_log(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: talk, command: [sh, -c, "printf 'a\\\\377b\\\\n'; echo after"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("talk.0") == ["a\N{REPLACEMENT CHARACTER}b", "after"]


def test_a_thousand_lines_come_in_their_order(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: count, command: [seq, "1000"]}
    """)
    assert outcome.lines("count.0") == [str(number) for number in range(1, 1001)]


def test_a_command_that_reads_its_input_finds_the_end(engine: Engine) -> None:
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: reader, command: [sh, -c, "cat; echo done"]}
    """)
    assert outcome.lines("reader.0") == ["done"]


def test_what_a_command_leaves_in_the_background_ends_with_it(engine: Engine) -> None:
    """That no process is left is looked at behind every scenario."""
    outcome = engine.run("""
        version: 1
        tasks:
        - {name: parent, command: [sh, -c, "sleep 600 & echo gone"]}
    """)
    assert outcome.state == "succeeded"
    assert outcome.lines("parent.0") == ["gone"]


def test_a_parameter_has_a_default_and_can_be_set(engine: Engine) -> None:
    document = """
        version: 1
        parameters: {word: hello, times: 2, who: "{{user.name}}"}
        tasks:
        - {name: say, command: [echo, "{{word}}", "{{who}}"], replicas: "{{times}}"}
    """
    as_written = engine.run(document)
    assert as_written.lines() == ["hello ada"] * 2
    overridden = engine.run(document, parameters={"word": "good bye", "times": 1})
    assert overridden.lines() == ["good bye ada"]


def test_every_document_of_a_file_is_a_job_of_its_own(engine: Engine) -> None:
    first, second = engine.submit_all("""
        version: 1
        name: first
        tasks:
        - {name: only, command: [echo, one]}
        ---
        version: 1
        name: second
        tasks:
        - {name: only, command: [sh, -c, "exit 3"]}
    """)
    assert first.wait().lines() == ["one"]
    assert second.wait().exit_code == 3
    assert first.details().state == "succeeded"
    assert [first.details().name, second.details().name] == ["first", "second"]


def test_a_wrong_document_is_refused_with_its_problems(engine: Engine) -> None:
    from jobman.client import Refused

    with pytest.raises(Refused) as refused:
        engine.submit_all("""
            version: 1
            tasks:
            - {name: hello, comand: [echo, hello]}
        """)
    assert refused.value.code == "bad-document"
    assert refused.value.exit_code == 3
    assert "JS101" in {problem["code"] for problem in refused.value.failure.problems}
