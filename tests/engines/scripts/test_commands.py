"""Commands of a manager: tried again where that may help, and told apart by what went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.engines.scripts.commands import Commands, Failed, NotThere
from jobman.engines.slurm.engine import is_absent, is_transient


def commands(*pauses: float) -> Commands:
    return Commands("Slurm", is_transient, pauses=pauses, is_absent=is_absent)


def complaining(words: str, code: int = 1) -> list[str]:
    return ["bash", "-c", f'echo "{words}" >&2; exit {code}']


def test_an_answer_is_what_was_printed() -> None:
    assert commands().ask("echo", "hello") == "hello\n"


def test_a_text_is_read_from_standard_input() -> None:
    assert commands().ask("cat", text="ü\n") == "ü\n"


def test_a_refusal_is_told_once_in_the_words_of_the_manager() -> None:
    with pytest.raises(Failed) as failed:
        commands(0.0).ask(*complaining("note\nbash: error: Invalid partition name specified"))
    assert str(failed.value) == "bash: Invalid partition name specified"


def test_a_command_that_fails_in_silence_tells_its_exit_code() -> None:
    with pytest.raises(Failed, match="exit code 3"):
        commands().ask("bash", "-c", "exit 3")


def test_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    place = tmp_path / "tries"
    script = (
        f'echo >>{place}; (($(wc -l <{place}) > 2)) && echo yes || {{ echo "Socket timed out" >&2; exit 1; }}'
    )
    assert commands(0.0, 0.0, 0.0).ask("bash", "-c", script) == "yes\n"
    assert place.read_text() == "\n" * 3


def test_who_does_not_answer_for_long_is_not_there() -> None:
    with pytest.raises(NotThere, match=r"Slurm does not answer: .*Unable to contact slurm controller"):
        commands(0.0).ask(*complaining("Unable to contact slurm controller (connect failure)"))


def test_a_command_that_is_not_here_is_told_by_its_name() -> None:
    with pytest.raises(NotThere, match="there is no command no-such-command"):
        commands().ask("no-such-command")


def test_commands_without_a_cluster_are_told_so() -> None:
    with pytest.raises(NotThere, match="Slurm is not set up on this machine: Could not establish"):
        commands().ask(*complaining("bash: fatal: Could not establish a configuration source"))


@pytest.mark.parametrize("words", ["Invalid partition", "Requested node configuration is not available", ""])
def test_a_refusal_does_not_pass(words: str) -> None:
    assert not is_transient(words)
    assert not is_absent(words)
