"""The page on images says what the settings read, what the commands take and what `-o json` has."""

from typing import Any

import pytest
import typer

from jobman.cli.app import app
from jobman.client.images import answers, errors
from jobman.client.images.wire import PATIENCE
from jobman.settings import settings_from_text
from jobman.settings.registries import Registry
from jobman.spec.records import keys_of
from tests.docs.pages import code_in, fences, rows, text_of

PAGE = "images.md"
DATA = {
    "<!-- an image as data -->": answers.Image,
    "<!-- a failure as data -->": answers.Failed,
    "<!-- details as data -->": answers.Details,
}


def test_every_key_of_a_registry_is_on_the_page_and_no_other():
    shown = [code_in(row[0])[0] for row in rows(PAGE, "<!-- keys of a registry -->")]
    assert sorted(shown) == sorted(keys_of(Registry))


def test_settings_on_the_page_can_be_used():
    (fence,) = fences(PAGE, "yaml")
    settings = settings_from_text(fence.text)
    assert settings.site().image_prefix == "harbor.example.org/lab/"
    assert [each.name for each in settings.values["registries"].values()] == ["lab", "plain"]


@pytest.mark.parametrize("title", DATA)
def test_every_key_of_an_answer_is_on_the_page_and_no_other(title):
    shown = [code for row in rows(PAGE, title) for code in code_in(row[0])]
    assert sorted(shown) == sorted(DATA[title].__struct_fields__)


def test_the_keys_of_inner_answers_are_on_the_page():
    text = text_of(PAGE)
    inner = {*answers.Vulnerabilities.__struct_fields__, *answers.Platform.__struct_fields__}
    assert [name for name in inner if f"`{name}`" not in text] == []


def test_every_option_stands_on_the_page():
    known: Any = typer.main.get_command(app)
    options = {
        word
        for name in ("images", "image-details")
        for parameter in known.load(name).params
        for word in parameter.opts
        if word.startswith("--") and word not in ("--output", "--help")
    }
    assert [option for option in options if f"`{option}" not in text_of(PAGE)] == []


def test_exit_codes_are_those_of_the_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.RegistryError)}
    assert {int(row[0]) for row in rows(PAGE, "## When it fails")} == codes


def test_the_patience_is_that_of_the_code():
    assert f"for {PATIENCE:.0f} seconds" in text_of(PAGE)
