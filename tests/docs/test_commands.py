"""Every command of jobman that a page shows exists, with the options it is shown with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer

from jobman.cli.app import app
from jobman.cli.commands import FAMILIES, HIDDEN
from tests.docs.pages import PAGES, fences, inline

_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[A-Za-z])(?![\w-])")
_SHOWN = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*jobman (.*)$", re.M)
_PLACEHOLDERS = ("COMMAND", "…", "...")


def shown_on(page) -> Iterator[str]:
    """What follows `jobman` wherever the page shows a command."""
    for fence in fences(page):
        if fence.kind in ("console", "sh", ""):
            yield from _SHOWN.findall(fence.text)
    for code in inline(page):
        yield from (found[1] for found in [_SHOWN.match(code.replace("\\|", "|"))] if found)


@cache
def directory() -> Any:
    return typer.main.get_command(app)


@cache
def command(name: str) -> Any:
    return directory().load(name)


def options_of(found: Any) -> set[str]:
    return {text for parameter in found.params for text in (*parameter.opts, *parameter.secondary_opts)}


def complaints(shown: str) -> list[str]:
    """What of a command there is not."""
    own, _, _ = shown.partition(" -- ")
    words = own.split()
    known = options_of(directory()) | {"-h", "--help"}
    while words and (words[0].startswith("[") or words[0].startswith("-")):
        # Global options before the command, as in the synopsis.
        words.pop(0)
        if words and not words[0].startswith(("[", "-")) and words[0] not in all_names():
            words.pop(0)
    if not words or words[0] in _PLACEHOLDERS:
        return [option for option in _OPTION.findall(own) if option not in known]
    name = words[0]
    if name not in all_names():
        return [name]
    found = command(name)
    known |= options_of(found)
    rest = words[1:]
    while hasattr(found, "commands") and rest and rest[0][0] not in "[-":
        named = rest.pop(0).split("|")
        missing = [each for each in named if each not in found.commands]
        if missing:
            return [f"{name} {each}" for each in missing]
        known |= {option for each in named for option in options_of(found.commands[each])}
        found = found.commands[named[0]]
    return [f"{name} {option}" for option in _OPTION.findall(own) if option not in known]


@cache
def all_names() -> set[str]:
    return {name for family in FAMILIES.values() for name in family} | set(HIDDEN)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_commands_that_exist(page):
    assert {shown: found for shown in shown_on(page) if (found := complaints(shown))} == {}


def test_pages_show_commands_at_all():
    assert sum(len(list(shown_on(page))) for page in PAGES) > 100


@pytest.mark.parametrize(
    "shown", ["sumbit FILE", "run --virtul 4x4 FILE", "service stahp", "gate close JOB G", "task dead bury"]
)
def test_a_command_that_does_not_exist_would_be_noticed(shown):
    assert complaints(shown)


def test_every_command_stands_on_the_page_of_the_command_line():
    page = next(page for page in PAGES if page.name == "cli.md")
    shown = {name for text in shown_on(page) for name in re.findall(r"[\w-]+", text)}
    assert {name for family in FAMILIES.values() for name in family} - shown == set()
