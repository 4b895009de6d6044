"""The section `accounting` of the settings."""

import pytest

from jobman.settings import load_settings, settings_from_text
from jobman.settings.accounting import Accounting, accounting_of
from jobman.spec.problems import SpecError


def accounting(text):
    return accounting_of(settings_from_text(text).values)


def codes(text):
    with pytest.raises(SpecError) as raised:
        settings_from_text(text)
    return [problem.code for problem in raised.value.problems]


def test_without_the_section_a_core_for_an_hour_is_a_unit_and_slices_are_minutes(tmp_path):
    assert accounting_of(load_settings(home=tmp_path).values) == Accounting(slice=60.0, price=1.0, prices={})


def test_everything_that_can_be_written():
    text = "accounting: {slice: 5m, price: 0.5, prices: {small-gpu: 12, small: 0.25}}\n"
    assert accounting(text) == Accounting(slice=300.0, price=0.5, prices={"small-gpu": 12.0, "small": 0.25})


def test_the_users_file_is_laid_over_the_template_key_by_key(tmp_path):
    (tmp_path / ".jobman").mkdir()
    (tmp_path / ".jobman" / "settings.yaml").write_text("accounting: {price: 2}\n")
    settings = load_settings(home=tmp_path)
    assert accounting_of(settings.values) == Accounting(price=2.0)
    assert settings.origins["accounting.price"].endswith("settings.yaml")
    assert settings.as_data()["accounting"] == {"price": 2.0}


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{slices: 60}", "JS101"),
        ("{slice: soon}", "JS206"),
        ("{slice: 0}", "JS208"),
        ("{slice: 10ms}", "JS204"),
        ("{slice: 2d}", "JS204"),
        ("{price: -1}", "JS204"),
        ("{price: cheap}", "JS103"),
        ("{prices: [1, 2]}", "JS103"),
        ("{prices: {small: much}}", "JS103"),
        ("60", "JS103"),
    ],
)
def test_what_is_written_wrongly_is_refused(written, code):
    assert codes(f"accounting: {written}\n") == [code]
