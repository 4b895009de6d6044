"""`jobman help` and `--help`: pages of messages, pages of commands, and what to do with a wrong word."""

import pytest

from jobman.cli.commands import FAMILIES
from jobman.spec.codes import CODES

COMMANDS = [name for family in FAMILIES.values() for name in family]


@pytest.mark.parametrize("code", ["JS101", "js101"])
def test_the_page_of_a_message(jobman, code):
    page = CODES["JS101"]
    assert jobman("help", code) == (0, f"JS101: {page.title} (error)\n\n{page.page}\n", "")


def test_every_message_has_a_page(jobman):
    assert [code for code in CODES if not jobman("help", code).out.startswith(f"{code}: ")] == []


def test_no_page_shows_a_template_of_the_catalogue(jobman):
    assert [code for code in CODES if "{{{{" in jobman("help", code).out] == []


def test_the_page_of_a_message_as_data(jobman):
    data = jobman("help", "JS405", "-o", "json").data
    assert (data["id"], data["severity"]) == ("JS405", "warning")
    assert {"title", "message", "advice", "page"} <= set(data)


def test_without_a_topic_every_code_is_listed(jobman):
    answer = jobman("help")
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[0] for line in answer.out.splitlines()] == list(CODES)
    assert [page["id"] for page in jobman("help", "-o", "json").data] == list(CODES)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_a_command(jobman, command):
    answer = jobman("help", command)
    assert (answer.code, answer.err) == (0, "")
    assert f"Usage: jobman {command}" in answer.out
    assert "--help" in answer.out


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_explains_itself(jobman, command, option):
    answer = jobman(command, option)
    assert (answer.code, answer.err) == (0, "")
    assert f"Usage: jobman {command}" in answer.out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_whole_command_explains_itself(jobman, option):
    answer = jobman(option)
    assert (answer.code, answer.err) == (0, "")
    assert [command for command in COMMANDS if f" {command} " not in answer.out] == []


@pytest.mark.parametrize(("topic", "meant"), [("JS11O", "JS110"), ("chek", "check"), ("explian", "explain")])
def test_a_wrong_topic_gets_a_guess(jobman, topic, meant):
    answer = jobman("help", topic)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"jobman: there is no code or command {topic}; did you mean {meant}?\n"


def test_a_topic_like_no_other_is_told_where_to_look(jobman):
    answer = jobman("help", "zzzzzzzz")
    assert (answer.code, answer.out) == (2, "")
    assert "`jobman help` lists the codes" in answer.err


def test_the_version_is_one_line(jobman):
    from jobman import __version__

    assert jobman("--version") == (0, f"jobman {__version__}\n", "")


def test_without_a_command_the_help_is_shown_and_the_use_is_wrong(jobman):
    answer = jobman()
    assert answer.code == 2
    assert "Usage: jobman" in answer.out + answer.err
